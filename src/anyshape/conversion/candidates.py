"""What passes between the ways to an ONNX model and the checker: the job that a way is given, and its candidate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import onnx_ir as ir
import torch

from anyshape.conversion.graph import finish
from anyshape.declaration.calls import Adapter
from anyshape.declaration.spec import Spec
from anyshape.model.labels import input_ports, output_names
from anyshape.model.oracle import Outcome
from anyshape.model.survey import Survey, model_constants
from anyshape.results.attempt import Attempt, Guard, MadeOfDim
from anyshape.sizes.notation import Expression, Sizes
from anyshape.source.spans import Span
from anyshape.testbench.plan import spread_sizes


@dataclass(frozen=True)
class Job:
    """What every strategy starts from: the adapter, its inputs at the traced sizes, and the declaration."""

    adapter: Adapter
    leaves: tuple[tuple[str, Any], ...]
    spec: Spec
    opset: int
    opset_is_fixed: bool = False
    """Whether the user asked for this opset."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of torch's translation that the user gave, such as `custom_translation_table`."""
    spread: Callable[[], Sequence[Sizes]] = tuple
    """Sizes that stand for all that were declared, those of the leaves first: where branches may part."""
    values_at: Callable[[Sizes], tuple[Any, ...] | None] = lambda _: None
    """The leaves' values at other sizes, with the module as it was handed over; None where the module does not run."""
    rewrites: bool = True
    """Whether the graph is rewritten to run faster, if the user lets it be optimised."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.leaves)


@dataclass(frozen=True)
class Candidate:
    """An ONNX model that nobody has checked yet, and what its trace assumed."""

    model: ir.Model
    opset: int
    guards: tuple[Guard, ...] = ()
    branches: tuple[Guard, ...] = ()
    """Conditions of which the file serves both sides."""
    operators: Counter[str] = field(default_factory=Counter)
    """What the traced program computes with, and how often; empty where there is none."""
    outputs: tuple[tuple[Expression | None, ...], ...] | None = None
    records_guards: bool = True
    """Whether the strategy would have noticed a decision on values; a trace of real tensors does not."""
    repairs: tuple[str, ...] = ()
    """What was replaced during the trace, a sentence each."""
    suspects: tuple[int, ...] = ()
    """Sizes at which a repair may not hold."""
    texts: tuple[Span, ...] = ()
    """Where the trace gave the text of a value that it does not have."""
    made: tuple[MadeOfDim, ...] = ()
    program: torch.export.ExportedProgram | None = field(default=None, compare=False, repr=False)
    """What was traced, to be written again in a plainer form; None where the form is the trace's business, too."""


Conversion = tuple[Candidate | None, Attempt]
"""What a way gives: a candidate or none, and how it went."""


# ---- the job of one export


def make_job(
    survey: Survey, outcome: Outcome | None = None, constants: Iterable[int] = (), telling: Sequence[Sizes] = ()
) -> Job:
    """The job at the sizes to trace at, or at those of another run.

    Sizes around `constants` count, too, and the `telling` ones at which other files were wrong.
    """
    request, options = survey.request, survey.options
    outcome = outcome or survey.first
    names = request.spec.inputs(request.signature)
    constants = {*model_constants(request.target.module), *constants}
    admit = survey.boundaries.holds
    spread = partial(spread_sizes, request.spec.ranges, outcome.sizes, constants, admit, options.seed, telling)
    return Job(
        Adapter(request.target, request.signature, names, survey.reference.module.reshaped),
        tuple((name, _traceable(outcome.leaves[name])) for name in names),
        request.spec,
        options.opset,
        options.opset_is_fixed,
        options.extra,
        spread,
        partial(_values_at, survey, names),
    )


def _traceable(value: Any) -> Any:
    """A trace makes a Python float a constant; a tensor without axes stays an input."""
    return torch.tensor(value, dtype=torch.float32) if isinstance(value, float) else value


def _values_at(survey: Survey, names: Sequence[str], sizes: Sizes) -> tuple[Any, ...] | None:
    outcome = survey.reference.run(sizes) if survey.boundaries.holds(sizes) else None
    return tuple(_traceable(outcome.leaves[name]) for name in names) if outcome is not None and outcome.runs else None


def give_names(survey: Survey, candidate: Candidate) -> None:
    """Give the candidate the user's names and the opset that was asked for; NewerOpsetError where it lacks something.

    Output axes that vary stay open until all runs have shown what they are.
    """
    request, spec = survey.request, survey.request.spec
    inputs = []
    for (leaf, value), port in zip(make_job(survey).leaves, input_ports(request), strict=True):
        tensor = torch.as_tensor(value, device=None if isinstance(value, torch.Tensor) else "cpu")
        rows = zip(spec.axes.get(leaf, ()), tensor.shape, strict=True)
        axes: list[int | Expression | None] = [size if e is None else e for e, size in rows]
        inputs.append((port, axes, ir.tensor_adapters.from_torch_dtype(tensor.dtype)))
    # a way may write an older one than it was asked for, as TorchScript does
    opset = survey.options.opset if survey.options.opset_is_fixed else candidate.opset
    finish.finish(candidate.model, opset, inputs, output_names(request, survey.first.names))
