"""A model in PyTorch beside its file, to be timed: in eager, and compiled by torch.compile.

Both run without gradients, in eval mode, on as many threads as the file; what they change in the model is put back.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch

from anyshape.declaration.calls import as_tensor, flatten_outputs
from anyshape.declaration.targets import Target
from anyshape.model.limits import Limit
from anyshape.model.oracle import Outcome
from anyshape.model.request import Request
from anyshape.model.survey import make_boundaries
from anyshape.runtime.model_call import as_numpy
from anyshape.runtime.session import Array
from anyshape.sizes.notation import Sizes
from anyshape.stages.model_comparison import ModelSubject, conditions_claimed, leaves_by_input, run_example
from anyshape.testbench.timed_calls import TimedCall, TimedCalls, TimedWay
from anyshape.testbench.timed_sizes import SizesOffered
from anyshape.torchkit import capture
from anyshape.torchkit.reasons import reason_of, said_with_place
from anyshape.torchkit.state import evaluating, put_back
from anyshape.verification.given_file import GivenFile
from anyshape.verification.model_reference import array_of

EAGER, COMPILED = "eager", "compile"


@contextlib.contextmanager
def calls_beside_model(
    file: GivenFile, request: Request, *, threads: int, seed: int, compiles: bool
) -> Iterator[TimedCalls]:
    """Inside, the model can be called at any size, on so many threads."""
    before, module = torch.get_num_threads(), request.target.module
    with capture.quiet(), evaluating(module), put_back(module), torch.no_grad():
        torch.set_num_threads(threads)
        try:
            yield _calls_of(file, run_example(request, seed), compiles=compiles)
        finally:
            torch.set_num_threads(before)


def _calls_of(file: GivenFile, subject: ModelSubject, *, compiles: bool) -> TimedCalls:
    request, reference = subject.request, subject.reference
    claimed = map(partial(Limit, of_export=True), conditions_claimed(file, subject))
    boundaries = make_boundaries(reference, request, subject.start).with_limits(list(claimed))
    is_random = not file.compares_values or reference.is_random(subject.example)
    ways, leaf_of = _ways_to_run(request.target, compiles=compiles), leaves_by_input(file, request)

    def call_at(sizes: Sizes) -> TimedCall | str:
        outcome = reference.run(sizes)
        if outcome.error is not None:
            return f"PyTorch fails there: {said_with_place(outcome.error)}"
        feeds = {port.name: as_numpy(outcome.leaves[leaf_of[port.name]], port.dtype) for port in file.interface.inputs}
        bound = {name: _bound_way(way, subject, outcome) for name, way in ways.items()}
        return TimedCall(feeds, [array_of(output) for output in outcome.outputs], bound)

    offered = SizesOffered(
        subject.start, request.spec.ranges, boundaries.admit, lambda sizes: reference.effort(sizes).work
    )
    notes = (*request.notes, *file.doubts)
    return TimedCalls(offered, call_at, not is_random, notes, on_cpu=_is_on_cpu(request.target))


def _is_on_cpu(target: Target) -> bool:
    held = itertools.chain(target.module.parameters(), target.module.buffers())
    return all(tensor.device.type == "cpu" for tensor in held)


def _ways_to_run(target: Target, *, compiles: bool) -> dict[str, Callable[..., Any]]:
    """A scripted model has been compiled already, in its own way."""
    if not compiles or target.is_scripted:
        return {EAGER: target.call}
    return {EAGER: target.call, COMPILED: torch.compile(target.call, dynamic=True)}


def _bound_way(way: Callable[..., Any], subject: ModelSubject, outcome: Outcome) -> TimedWay:
    """On copies: a model may write to its inputs, which others are run on, too."""
    leaves = {name: one.clone() if isinstance(one, torch.Tensor) else one for name, one in outcome.leaves.items()}
    args, kwargs = subject.request.signature.build(leaves)
    is_elsewhere = not _is_on_cpu(subject.request.target)

    def call() -> Any:
        returned = way(*args, **kwargs)
        if is_elsewhere:
            torch.accelerator.synchronize()  # else only the asking is timed
        return returned

    def outputs() -> list[Array] | str:
        try:
            return [array_of(as_tensor(value)) for _, value in flatten_outputs(call())]
        except Exception as error:  # noqa: BLE001  the user's own model, and whatever a compiler says of it
            return f"fails: {reason_of(error)}"

    return TimedWay(call, outputs)
