"""The rule `mixed-batch`: f(cat(a, b)) must be cat(f(a), f(b)), or one sample's result depends on the others.

A healthy model costs four runs in eager. Whoever is suspected is heard again: in float64, at two contents, and against
its own rounding noise.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch

from anyshape.declaration.spec import Spec
from anyshape.diagnosis.meeting_place import Split, distance, moving_axes, places, scale
from anyshape.errors import DeclarationError
from anyshape.model.oracle import Outcome, Reference
from anyshape.results.finding import Finding
from anyshape.sizes import budgets
from anyshape.source.spans import Span
from anyshape.testbench.batches import axis_of, batch_dims
from anyshape.testbench.judgement import FACTOR
from anyshape.torchkit.recorder import Call, followed

_SUSPICIOUS = 1e-5
"""Which part of the largest value is no rounding any more."""
_WITHOUT_FLOAT64 = 0.05
"""The same where the model does not run in float64."""

Outputs = tuple[torch.Tensor, ...]


def mixed_samples(reference: Reference, spec: Spec, sizes: Mapping[str, int], home: Span) -> list[Finding]:
    """A warning for every expression that mixes the samples of a batch; the other dims stay at these sizes."""
    with _without_fast_paths():
        dims = batch_dims(spec.dims, spec.axes.values())
        return [one for dim in dims for one in _warnings_for(reference, spec, sizes, dim, home)]


@contextlib.contextmanager
def _without_fast_paths() -> Iterator[None]:
    """The fast paths of attention decide for a whole batch, and leave other values at masked places."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(value=False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(value=before)


def _warnings_for(reference: Reference, spec: Spec, sizes: Mapping[str, int], dim: str, home: Span) -> list[Finding]:
    for split in _splits(spec, sizes, dim, _SUSPICIOUS):
        # the second content has ragged masks and no two samples alike, even where the example is all ones
        telling = _cut_call(reference, spec, sizes, dim, split, 1)
        runs = None if telling is None else _outputs_of_calls(reference, telling, torch.float32)
        if telling is None or runs is None:
            continue  # the model refuses a part
        if not _moves(telling, runs):
            return []
        first = _certain_mixing(reference, telling)
        plain = _cut_call(reference, spec, sizes, dim, split, 0) if first is not None else None
        if first is None or plain is None:
            return []
        if _certain_mixing(reference, plain) is None and not _samples_are_alike(plain, spec):
            return []  # only where padding is ragged, say
        return _warnings_about(reference, spec, first, home)
    return []


# ---- a call cut into two smaller calls along its batch


@dataclass(frozen=True)
class BatchCut:
    """One call with a whole batch, and two with a part of it each: only their names and leaves are used."""

    dim: str
    split: Split
    whole: Outcome
    one: Outcome
    two: Outcome

    @property
    def calls(self) -> tuple[Outcome, Outcome, Outcome]:
        return self.whole, self.one, self.two


def _splits(spec: Spec, sizes: Mapping[str, int], dim: str, tolerance: float) -> Iterator[Split]:
    """Small parts, unlike each other; then larger ones, for a model that wants two samples or a multiple."""
    declared, example = spec.ranges[dim], max(sizes[dim], 1)
    least = max(declared.lo, 1)
    for first, second in dict.fromkeys(
        [(2, 1), (3, 2), (least + declared.step, least), (2 * example, example), (1, 1)]
    ):
        if all(size in declared for size in (first, second, first + second)):
            yield Split(first, second, tolerance)


def _cut_call(
    reference: Reference, spec: Spec, sizes: Mapping[str, int], dim: str, split: Split, content: int
) -> BatchCut | None:
    """A call with a batch of this content and its parts; None where the model does not run on the whole."""
    try:
        whole = reference.run({**sizes, dim: split.total}, content)
    except DeclarationError:
        return None  # a `make_inputs` that cannot make this size is told about elsewhere
    if not whole.runs:
        return None
    one = _part_of_call(whole, spec, dim, 0, split.first)
    return BatchCut(dim, split, whole, one, _part_of_call(whole, spec, dim, split.first, split.second))


def _part_of_call(whole: Outcome, spec: Spec, dim: str, start: int, size: int) -> Outcome:
    sizes = {**whole.sizes, dim: size}
    leaves = dict(whole.leaves)
    for name, row in spec.axes.items():
        axis = axis_of(dim, row)
        if axis is not None:
            leaves[name] = leaves[name].narrow(axis, start, size).contiguous()
    leaves |= {name: expression.value(sizes) for name, expression in spec.scalars.items()}
    return replace(whole, sizes=sizes, leaves=leaves, outputs=())


def _samples_are_alike(cut: BatchCut, spec: Spec) -> bool:
    """An example of ones or zeros: samples that are copies of each other can be mixed unseen."""
    for name, row in spec.axes.items():
        axis, leaf = axis_of(cut.dim, row), cut.whole.leaves[name]
        if axis is not None and not torch.equal(leaf, leaf.narrow(axis, 0, 1).expand_as(leaf)):
            return False
    return True


# ---- does one sample move when another stands beside it?


@dataclass(frozen=True)
class _Move:
    output: int
    name: str
    amount: float
    is_float: bool
    only_later: bool
    """Whether samples move only when others stand before them."""

    @property
    def sentence(self) -> str:
        moves = f"moves by {self.amount:.2g}" if self.is_float and math.isfinite(self.amount) else "changes"
        return f"`{self.name}` of a sample {moves} when another stands {'before' if self.only_later else 'beside'} it"


@dataclass(frozen=True)
class _Mixing:
    """A model that mixes, with the arithmetic in which that is certain."""

    cut: BatchCut
    dtype: torch.dtype
    moves: Sequence[_Move]


def _outputs_of_calls(reference: Reference, cut: BatchCut, dtype: torch.dtype) -> list[Outputs] | None:
    found = [reference.computed_in(dtype, call) for call in cut.calls]
    complete = [outputs for outputs in found if outputs is not None and len(outputs) == len(cut.whole.names)]
    return complete if len(complete) == len(found) else None


def _moves(cut: BatchCut, runs: Sequence[Outputs]) -> list[_Move]:
    """The outputs that follow the batch on one axis, and are not those of the parts side by side."""
    found = (_move(cut, index, *results) for index, results in enumerate(zip(*runs, strict=True)))
    return [move for move in found if move is not None]


def _move(cut: BatchCut, index: int, whole: torch.Tensor, one: torch.Tensor, two: torch.Tensor) -> _Move | None:
    first, second = cut.split.first, cut.split.second
    axes = moving_axes(whole, one, two) if whole.dim() == one.dim() == two.dim() else []
    # the batch twice: pairs of samples, on purpose; not at all: a loss; other sizes: they depend on values
    if len(axes) != 1 or [t.shape[axes[0]] for t in (whole, one, two)] != [first + second, first, second]:
        return None
    head, tail = whole.narrow(axes[0], 0, first), whole.narrow(axes[0], first, second)
    earlier, later = distance(head, one), distance(tail, two)
    allowed = cut.split.tolerance * scale(whole)
    stays, follows = not bool((earlier > allowed).any()), bool((later > allowed).any())
    if stays and (not follows or _only_counts(tail, two, later > allowed)):
        return None
    amount = max(float(earlier.max()), float(later.max()))
    return _Move(index, cut.whole.names[index], amount, whole.is_floating_point(), stays)


def _only_counts(tail: torch.Tensor, two: torch.Tensor, moved: torch.Tensor) -> bool:
    """Whether later samples differ by one whole number: an output that counts samples, or points at them."""
    steps = (tail.double() - two.double())[moved]
    return bool((steps - steps[0].round()).abs().max() < _SUSPICIOUS)


def _certain_mixing(reference: Reference, cut: BatchCut) -> _Mixing | None:
    """What float64 says as well, in two runs alike, and beyond what rounding alone does to the model."""
    for dtype, tolerance in ((torch.float64, _SUSPICIOUS), (torch.float32, _WITHOUT_FLOAT64)):
        runs = _outputs_of_calls(reference, cut, dtype)
        if runs is not None:
            cut = replace(cut, split=replace(cut.split, tolerance=tolerance))
            again = reference.computed_in(dtype, cut.whole)
            moves = _moves(cut, runs) if again is not None and all(map(_is_same, runs[0], again)) else []
            certain = [move for move in moves if move.amount > FACTOR * _noise(reference, cut, move.output)]
            return _Mixing(cut, dtype, certain) if certain else None
    return None


def _is_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return one.shape == other.shape and not bool(distance(one, other).any())


def _noise(reference: Reference, cut: BatchCut, output: int) -> float:
    """How far roundings move this output: a choice between near equals turns over by them."""
    plain = reference.computed_in(torch.float32, cut.whole)
    if plain is None:
        return 0.0
    jittered = [reference.jittered(cut.whole, seed) for seed in range(budgets.JITTERS_FOR_MIXING)]
    alike = [run[output] for run in jittered if run is not None and run[output].shape == plain[output].shape]
    return max((float(distance(plain[output], value).max()) for value in alike), default=0.0)


# ---- what is told


def _warnings_about(reference: Reference, spec: Spec, heard: _Mixing, home: Span) -> list[Finding]:
    met = _calls_where_samples_meet(reference, heard)
    found: dict[Span | None, Finding] = {}
    for move in heard.moves:
        call = met.get(move.output)
        found.setdefault(call.span if call else None, _warning_about(spec, heard.cut, move, call, home))
    return list(found.values())


def _calls_where_samples_meet(reference: Reference, heard: _Mixing) -> dict[int, Call]:
    """For the outputs in which samples are mixed: the user's call where they met."""
    whole, one, two = (followed(partial(reference.computed_in, heard.dtype, call)) for call in heard.cut.calls)
    if whole[0] is None or one[0] is None or two[0] is None:
        return {}
    met = places(whole[1], (one[1], two[1]), heard.cut.split)
    return {index: met[id(output)] for index, output in enumerate(whole[0]) if id(output) in met}


def _warning_about(spec: Spec, cut: BatchCut, move: _Move, call: Call | None, home: Span) -> Finding:
    dim, sizes, span = cut.dim, cut.whole.sizes, call.span if call else None
    message = f"samples of `{dim}` are mixed"
    label = "the result of one sample depends on others here" if span else ""
    notes = (f"f(cat(a, b)) differs from cat(f(a), f(b)): {move.sentence}",)
    helps = tuple(_helps(call, dim, spec)) if call else ()
    return Finding("mixed-batch", message, span or home, label, notes, helps, "warning", (dim,), breaks_at=sizes)


_SHAPING = ("view", "reshape", "flatten", "unflatten", "view_as", "reshape_as")
_LAYERS = {
    "multi_head_attention_forward": "attention",
    **dict.fromkeys(("lstm", "gru", "rnn_tanh", "rnn_relu"), "recurrent"),
}
_ALONG = (
    "softmax", "log_softmax", "softmin", "mean", "sum", "std", "var", "norm", "vector_norm", "normalize", "sort",
    "argsort", "topk", "cumsum", "cumprod", "max", "min", "amax", "amin", "argmax", "argmin", "logsumexp", "median",
    "prod", "flip", "roll", "diff",
)  # fmt: skip


def _helps(call: Call, dim: str, spec: Spec) -> Iterator[str]:
    name = call.name
    if name in _SHAPING:
        yield (
            f"`{name}` keeps the order of the elements: let `{dim}` stay the axis that it is, "
            "and move axes with transpose or permute"
        )
    elif name in _LAYERS:
        is_first = any(axis_of(dim, row) == 0 for row in spec.axes.values())
        layer = f"the {_LAYERS[name]} layer"
        yield f"make {layer} with batch_first={is_first}: it takes the axis of `{dim}` for the sequence"
    elif name == "scaled_dot_product_attention":
        yield f"put the axis of `{dim}` first: attention looks along the last axis but one"
    elif name in _ALONG and not call.names_axes:
        yield f"give `{name}` a `dim`: without one it takes all samples together"
    elif name in _ALONG:
        yield f"let `{name}` work along another axis than that of `{dim}`"
    elif name in ("batch_norm", "instance_norm"):
        yield "keep running statistics (track_running_stats=True), or normalise each sample alone (nn.GroupNorm)"
