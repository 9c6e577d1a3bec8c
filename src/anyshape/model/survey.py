"""What is known before the first strategy runs: how the model behaves, its limits, and the sizes to trace at."""

from __future__ import annotations

import contextlib
import itertools
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from anyshape.declaration.calls import is_float8
from anyshape.errors import DeclarationError
from anyshape.model import oracle as references
from anyshape.model.kept_state import building_sizes, kept_lengths, table_lengths
from anyshape.model.labels import notes_on_labels, output_names
from anyshape.model.limits import Boundaries, UnmadeCallError
from anyshape.model.oracle import Outcome, Reference
from anyshape.model.request import Request
from anyshape.results.progress import without_line
from anyshape.runtime.custom_ops import CustomOps
from anyshape.runtime.releases import Release
from anyshape.sizes import budgets
from anyshape.sizes.conditions import fitting_sizes
from anyshape.sizes.notation import Sizes, parse_condition
from anyshape.source.spans import Span, span_of_definition
from anyshape.testbench.judgement import Tolerance
from anyshape.testbench.plan import Tier, trace_sizes
from anyshape.torchkit.capture import export_questions
from anyshape.torchkit.reasons import said_with_place
from anyshape.torchkit.recorder import TooManyReadsError
from anyshape.torchkit.silence import heard_thread

Progress = Callable[[str], None]


@dataclass(frozen=True)
class ExportOptions:
    """How to export and check, as the user asked for it."""

    destination: Path | None
    opset: int
    opset_is_fixed: bool
    external_data: bool | None
    metadata: Mapping[str, str]
    narrow: bool
    unchecked: tuple[str, ...]
    tolerance: Tolerance
    seconds: float | None
    tier: Tier
    seed: int
    providers: Sequence[str] | None
    custom_ops: CustomOps
    extra: Mapping[str, Any]
    notes: tuple[str, ...]
    tell: Progress = lambda _: None
    prints: bool = True
    """Whether what the model prints in its first run is shown."""
    runtime: Release | None = None
    """The oldest that the file is to serve, where one was named."""
    may_edit: bool = False
    """Whether safe edits of findings may stand in for the model's own code."""
    own_translations: tuple[str, ...] = ()
    """Operators that the call's own `custom_translation_table` translates."""
    training: tuple[str, ...] = ()
    """Parts of the model that were in training mode."""
    compares_values: bool = True
    """Whether the model gives the same for the same inputs; else its shapes and types alone are checked."""
    given_up: tuple[str, ...] = ()
    """What was given up before: dims that a narrower try leaves static."""


@dataclass(frozen=True)
class Survey:
    """What is known before the first strategy runs: the reference, the model's limits, the size to trace at."""

    request: Request
    options: ExportOptions
    reference: Reference
    boundaries: Boundaries
    traced: Sizes
    first: Outcome
    home: Span
    notes: tuple[str, ...]
    start: Sizes
    """The sizes of the example, moved into the declared ones."""


def take_survey(request: Request, options: ExportOptions) -> Survey:
    """Run the example, find which dims move, and choose the sizes to trace at."""
    options.tell("running the model")
    reference = make_reference(request, options.seed)
    with export_questions() as asked:
        start, example = start_sizes(reference, request, prints=options.prints)
    reference.outputs_wanted = len(example.outputs) if request.are_labels else None
    labels = notes_on_labels(request, output_names(request, example.names))
    boundaries = make_boundaries(reference, request, start)
    boundaries.probe()
    traced = start if boundaries.pins else _trace_sizes(reference, request, boundaries, start)
    boundaries.rebase(traced)
    first = reference.run(traced) if traced != start else example
    if not boundaries.pins and references.may_be_provoked(request.target, request.signature):
        boundaries.probe_tables(lambda sizes: reference.effort(sizes).work <= budgets.WORK_OF_A_TRIAL)
    notes = [*options.notes, *request.notes, *labels, *blind_spots(request.target.module)]
    complex_inputs = [leaf.name for leaf in request.signature.leaves if leaf.is_complex]
    notes += [f"`{name}` is complex, ONNX inputs are real: the file takes {_PAIRS}({name})" for name in complex_inputs]
    notes += [f"output `{name}` is complex: the file gives {_PAIRS}()" for name in sorted(reference.module.in_pairs)]
    notes += [f"{one.path}:{one.line} asks is_in_onnx_export(): {_TWO_ANSWERS}" for one in asked]
    if options.training:
        parts = ", ".join(f"`{name or request.target.name}`" for name in options.training[:3])
        more = f" and {len(options.training) - 3} more" if len(options.training) > 3 else ""
        notes.append(f"{parts}{more} in training mode: exported and compared in eval mode")
    home = span_of_definition(request.target.source)
    return Survey(request, options, reference, boundaries, traced, first, home, tuple(notes), start)


_PAIRS = "pairs of real and imaginary parts, as torch.view_as_real"
_TWO_ANSWERS = "yes for the file, no for the model that it is compared with"


def make_reference(request: Request, seed: int) -> Reference:
    asked = request.target, request.signature, request.spec
    if request.make_inputs is not None:
        return references.from_make_inputs(*asked, request.make_inputs, seed=seed)
    return references.from_example(*asked, seed=seed)


@contextlib.contextmanager
def _model_heard() -> Iterator[None]:
    """Inside, what is printed is seen; warnings are torch's, about our own ways to run a model."""
    with without_line(), heard_thread(), warnings.catch_warnings(action="ignore"):
        yield
        sys.stdout.flush()


def start_sizes(reference: Reference, request: Request, *, prints: bool = True) -> tuple[Sizes, Outcome]:
    """The example's sizes, moved into the declared ones, and what the model does there.

    What it prints is shown this once, and in none of the hundreds of runs that follow.
    """
    start = request.spec.start
    with _model_heard() if prints else contextlib.nullcontext():
        outcome = reference.run(start)
    if (error := outcome.error) is not None:
        if isinstance(error, UnmadeCallError):
            raise DeclarationError(str(error)) from error.__cause__
        where = f" at {references.describe(start)}" if start else ""
        ended = "was stopped" if isinstance(error, TooManyReadsError) else "fails"
        raise DeclarationError(f"the model {ended} on the example{where}: {said_with_place(error)}") from error
    if not outcome.outputs:
        raise DeclarationError(f"`{request.target.name}` returns no tensor")
    for name, output in zip(outcome.names, outcome.outputs, strict=True):
        if is_float8(output.dtype):
            kind = str(output.dtype).removeprefix("torch.")
            raise DeclarationError(f"output `{name}` is {kind}, which numpy lacks: return it as float16")
        if output.layout is not torch.strided:
            raise DeclarationError(f"output `{name}` is sparse, ONNX outputs are dense: return .to_dense() of it")
    return start, outcome


def make_boundaries(reference: Reference, request: Request, base: Mapping[str, int]) -> Boundaries:
    return Boundaries(
        lambda sizes: reference.run(sizes).error, request.spec.ranges, base, table_lengths(request.target.module),
        where=request.spec.where, volume=reference.volume,
    )  # fmt: skip


def model_constants(module: torch.nn.Module) -> set[int]:
    """The lengths of parameters and buffers: a size that equals one of them looks like it."""
    tensors = [*module.parameters(), *module.buffers()]
    return {int(size) for tensor in tensors for size in tensor.shape if size > 1}


def _apart(request: Request, start: Sizes) -> Sizes:
    """Where relations between dims may forbid to move one of them, sizes that differ are found together."""
    if not request.spec.where:
        return start
    differ = [parse_condition(f"{a} != {b}") for a, b in itertools.combinations(start, 2)]
    try:
        return fitting_sizes(start, request.spec.ranges, (*request.spec.where, *differ))
    except DeclarationError:
        return start


def _trace_sizes(reference: Reference, request: Request, boundaries: Boundaries, start: Sizes) -> Sizes:
    def works(sizes: Sizes) -> bool:
        return boundaries.holds(sizes) and reference.run(sizes).runs

    module, ranges = request.target.module, request.spec.ranges
    apart = _apart(request, start)  # knows the relations that were declared, and none of the model's own
    plain = trace_sizes(apart if works(apart) else start, ranges, model_constants(module), works)
    return building_sizes(reference, plain, ranges, boundaries.admit, kept_lengths(module))


_INITIAL_STD = 0.02
_FEWEST = 4


def blind_spots(module: nn.Module) -> list[str]:
    """A note where the linear layers look untrained: all weights with one small standard deviation, all biases zero."""
    layers = [part for part in module.modules() if isinstance(part, nn.Linear) and part.weight.numel() >= 64]
    if len(layers) < _FEWEST or not all(_looks_initial(layer) for layer in layers):
        return []
    note = "the weights look freshly initialised (standard deviation 0.02, biases zero): small errors may not show"
    return [f"{note}; check again with trained weights"]


def _looks_initial(layer: nn.Linear) -> bool:
    bias = layer.bias
    if bias is not None and bool(bias.detach().any()):
        return False
    spread = float(layer.weight.detach().to(torch.float32).std())
    return abs(spread - _INITIAL_STD) < 0.15 * _INITIAL_STD
