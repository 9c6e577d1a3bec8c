"""From the line where two sizes meet to the line that wrote the number.

`x + bias` is where `batch` must be 3; `torch.zeros(3, 10)` is why. From every size that a tracked run turned into a
number, the tensors are followed back to a call that was given that number, to a table that the module holds, or to an
input; or the model's own Python compared a size.

Where nothing fails (a mean divided by a literal, a loop over a literal count), PyTorch runs at other sizes and gives
what nobody meant, so no check against PyTorch can see it. What gives it away is that a number equals, in the example,
just the size that stands in its place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch

from anyshape.diagnosis.open_trace import Assumed, Track
from anyshape.sizes import budgets, expressions
from anyshape.sizes.notation import Condition, Expression, parse_condition, parse_expression
from anyshape.source.sites import Site
from anyshape.torchkit.recorder import Call, CallTrack

Kind = Literal["number", "table", "input", "decision", "mean", "loop", "unknown"]

TAKES_SIZES = frozenset((
    "view", "reshape", "expand", "broadcast_to", "repeat", "tile", "unflatten", "interpolate", "upsample", "narrow",
    "zeros", "ones", "full", "empty", "rand", "randn", "randint", "arange", "range", "linspace", "logspace", "eye",
    "new_zeros", "new_ones", "new_full", "new_empty", "split", "tensor_split", "chunk", "split_with_sizes", "fold",
    "tril_indices", "triu_indices", "one_hot", "resize_", "pad", "as_strided", "repeat_interleave", "unfold",
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "adaptive_max_pool3d", "affine_grid", "hann_window", "hamming_window", "blackman_window",
    "topk", "layer_norm", "rms_norm", "empty_strided", "randperm", "max_unpool2d",
))  # fmt: skip
"""Functions of torch whose plain numbers are sizes."""


@dataclass(frozen=True)
class Want:
    """A size that is a number and should be this expression; `axis` counts from the right where it is known."""

    expression: Expression
    size: int
    axis: int = 0


@dataclass(frozen=True, eq=False)
class Cause:
    """One place in the model's code that turns dims into numbers."""

    kind: Kind
    site: Site
    conditions: tuple[Condition, ...]
    """What must hold here."""
    wants: tuple[Want, ...] = ()
    call: Call | None = None
    """The call that was given the numbers, or that uses the table."""
    name: str = ""
    """The table or the input."""
    seen: Site | None = None
    """Where it shows, if elsewhere."""

    @property
    def table(self) -> str:
        """The name of the table in the user's module."""
        return self.name.removeprefix("model.")

    @property
    def layer(self) -> str:
        """The layer whose weight fixes the size: one that no expression of the source takes apart."""
        owner, _, weight = self.table.rpartition(".")
        return owner if self.kind == "table" and weight in ("weight", "bias") and owner else ""

    @property
    def dims(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for condition in self.conditions for name in condition.names))


class Blame:
    """Follows assumptions of a tracked run back to their causes."""

    def __init__(self, track: Track, meaning: expressions.Meaning, inputs: Sequence[str]) -> None:
        self._track = track
        self._meaning = meaning
        self._inputs = inputs

    def causes(self) -> list[Cause]:
        """Every place that makes a size a number, each once, in the order in which they run."""
        found: dict[tuple[Any, ...], Cause] = {}
        for assumed in self._track.assumed:
            condition = expressions.to_condition(assumed.condition, self._meaning)
            if condition is None or assumed.site is None or is_trivial(condition):
                continue
            for cause in self._causes(assumed, condition):
                key = (cause.site.code, cause.site.instruction, cause.kind, cause.name)
                found[key] = _merged_cause(found[key], cause) if key in found else cause
        return list(found.values())

    def expression_of(self, size: Any) -> Expression | None:
        """A size in dims; None for a plain number, and where it has no such form."""
        if not isinstance(size, torch.SymInt):
            return None
        return expressions.to_expression(size, self._meaning)

    def _causes(self, assumed: Assumed, condition: Condition) -> list[Cause]:
        wants = wanted(condition)
        assert assumed.site is not None
        if assumed.call is None:
            here = Cause("decision", assumed.site, (condition,), wants=tuple(wants[:1]))
            return self._of_operands(assumed.at_hand, wants, here) if wants else [here]
        if condition.relation != "==":
            return []
        here = Cause("unknown", assumed.site, (condition,), call=assumed.call)
        if _takes_sizes(assumed.call) and any(numbers_of(assumed.call)):
            fitting = [want for want in wants if want.size in numbers_of(assumed.call)]
            return [replace(here, kind="number", wants=tuple(fitting[:1]))]
        return self._of_operands(_tensor_operands(assumed.call), wants, here) if wants else []

    def _of_operands(self, operands: Sequence[torch.Tensor], wants: Sequence[Want], here: Cause) -> list[Cause]:
        """The operands in which an axis is the number, followed back to where they got it."""
        causes: list[Cause] = []
        want = next((one for one in wants if _axes_of_size(operands, one.size)), wants[0])
        fixed = self._fixed_axes(operands, want)
        for operand, axis in fixed:
            # of the operands of a call the first is to blame; of what a layer was given, all may be
            if here.call is None or operand is fixed[0][0]:
                cause = self._of_tensor(operand, replace(want, axis=axis), here, depth=0)
                seen = None if cause is None or _is_same_place(cause.site, here.site) else here.site
                causes += [replace(cause, seen=seen)] if cause is not None else []
        return causes or [replace(here, wants=(want,))]

    def _fixed_axes(self, operands: Sequence[torch.Tensor], want: Want) -> list[tuple[torch.Tensor, int]]:
        """Axes that are this number and stand opposite to the size in question, else the first that is."""
        fixed = _axes_of_size(operands, want.size)
        opposite = {
            axis
            for operand in operands
            for axis, size in _axes_from_the_right(operand)
            if (expression := self.expression_of(size)) and agree(expression, want.expression)
        }
        return [one for one in fixed if one[1] in opposite] or fixed[:1]

    def _of_tensor(self, tensor: torch.Tensor, want: Want, here: Cause, depth: int) -> Cause | None:
        if (name := self._track.held.get(id(tensor))) is not None:
            return replace(here, kind="table", name=name, wants=(want,))
        if (position := self._track.inputs.get(id(tensor))) is not None:
            return replace(here, kind="input", name=self._inputs[position], wants=(want,))
        call = self._track.maker_of(tensor)
        if call is None or call.site is None or depth > budgets.FURTHEST_CAUSE:
            return None
        there = replace(here, site=call.site, call=call)
        made_here = replace(there, kind="number", wants=(want,))
        if not _tensor_operands(call) or (_takes_sizes(call) and want.size in numbers_of(call)):
            return made_here
        return self._of_operand(tensor, call, want, there, depth) or (made_here if any(numbers_of(call)) else None)

    def _of_operand(self, tensor: torch.Tensor, call: Call, want: Want, there: Cause, depth: int) -> Cause | None:
        """The operand of a call from which its result has the axis."""
        for operand, axis in _axes_before(tensor, _tensor_operands(call), want):
            cause = self._of_tensor(operand, replace(want, axis=axis), there, depth + 1)
            if cause is not None:
                return cause if cause.kind == "table" else replace(cause, wants=(want,))
        return None


def wanted(condition: Condition) -> list[Want]:
    """Which size must be which number: without common factors, and as it was asked."""
    plain = [
        Want(one, other.value({}))
        for one, other in ((condition.left, condition.right), (condition.right, condition.left))
        if condition.relation == "==" and one.names and not other.names
    ]
    found = expressions.solved(condition)
    return list(dict.fromkeys((*([] if found is None else [Want(*found)]), *plain)))


def is_trivial(condition: Condition) -> bool:
    """`batch == batch`: the same dim on two inputs."""
    return condition.left == condition.right or condition.relation == "!="


def numbers_of(call: Call) -> list[int]:
    """The plain whole numbers that a call was given."""
    return [n for n in _flat_values((call.args, list(call.kwargs.values()))) if type(n) is int]


def _tensor_operands(call: Call) -> list[torch.Tensor]:
    return [value for value in _flat_values((call.args, list(call.kwargs.values()))) if isinstance(value, torch.Tensor)]


def _flat_values(value: Any) -> Iterator[Any]:
    if isinstance(value, (tuple, list)):  # torch.Size is a tuple
        for one in value:
            yield from _flat_values(one)
    elif isinstance(value, slice):
        yield from (value.start, value.stop)
    else:
        yield value


def _takes_sizes(call: Call) -> bool:
    return function_name(call.function) in TAKES_SIZES


def function_name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", ""))


def _axes_from_the_right(tensor: torch.Tensor) -> Iterable[tuple[int, Any]]:
    return ((axis - tensor.dim(), size) for axis, size in enumerate(tensor.shape))


def _axes_of_size(operands: Sequence[torch.Tensor], size: int) -> list[tuple[torch.Tensor, int]]:
    """Axes that are this number."""
    axes = ((operand, *one) for operand in operands for one in _axes_from_the_right(operand))
    return [(operand, axis) for operand, axis, one in axes if isinstance(one, int) and one == size]


def _axes_before(tensor: torch.Tensor, operands: Sequence[torch.Tensor], want: Want) -> list[tuple[torch.Tensor, int]]:
    """Axes of operands that are the wanted number, first the one that became the axis in question.

    Where an operand has as many such axes as the result, they keep their order; else a broadcast keeps the place.
    """
    axes = [axis for _, axis in _axes_of_size([tensor], want.size)]
    order = axes.index(want.axis) if want.axis in axes else 0

    def is_other(one: tuple[torch.Tensor, int]) -> bool:
        its = [axis for _, axis in _axes_of_size([one[0]], want.size)]
        return its.index(one[1]) != order if len(its) == len(axes) else one[1] != want.axis

    return sorted(_axes_of_size(operands, want.size), key=is_other)


def _is_same_place(one: Site, other: Site) -> bool:
    return (one.code, one.instruction) == (other.code, other.instruction)


def _merged_cause(first: Cause, second: Cause) -> Cause:
    wants = {(w.expression, w.size, w.axis): w for w in (*first.wants, *second.wants)}
    conditions = tuple(dict.fromkeys((*first.conditions, *second.conditions)))
    ordered = tuple(sorted(wants.values(), key=lambda want: want.axis))
    return replace(first, wants=ordered, conditions=conditions)


# primes: expressions that differ hardly ever agree at both
_PROBES = ((5, 7, 11, 13, 17, 19, 23, 29), (31, 2, 37, 3, 41, 43, 47, 53))


def agree(one: Expression, other: Expression) -> bool:
    """Whether two expressions are the same size, however they are written."""
    names = sorted({*one.names, *other.names})
    if set(one.names) != set(other.names) or len(names) > len(_PROBES[0]):
        return one == other
    probes = [dict(zip(names, sizes, strict=False)) for sizes in _PROBES]
    return all(_value_at(one, sizes) == _value_at(other, sizes) for sizes in probes)


def _value_at(expression: Expression, sizes: Mapping[str, int]) -> int | None:
    try:
        return expression.value(sizes)
    except ZeroDivisionError:
        return None


# ---- numbers where nothing fails

InDims = Callable[[Any], Expression | None]
_SCALING = {"div", "true_divide", "__truediv__", "truediv", "mul", "multiply", "__mul__", "__rmul__", "div_", "mul_"}
_SAME_SUM = {"squeeze", "unsqueeze", "view", "reshape", "float", "to", "contiguous", "flatten", "transpose"}
_READING = {"__getitem__", "select", "narrow", "index_select"}
_SMALLEST = 2
"""A size of one is not told from other ones."""


def frozen(track: CallTrack, in_dims: InDims, example: Mapping[str, int]) -> list[Cause]:
    """Every number that stands where a size of the example stands, without a check that would show it."""
    return [*_means(track, in_dims, example), *_loops(track, in_dims, example)]


def _means(track: CallTrack, in_dims: InDims, example: Mapping[str, int]) -> Iterator[Cause]:
    """`x.sum(dim=1) / 10` where the axis has ten entries in the example."""
    for call in track.calls:
        if function_name(call.function) not in _SCALING or call.site is None:
            continue
        summed = _sum_of(track, call)
        size = _product_in_dims(in_dims(one) or one for one in _summed_sizes(summed)) if summed is not None else None
        if size is not None and _is_scaled_by(call, size.value(example)):
            yield _cause_at("mean", call, size, size.value(example))


def _sum_of(track: CallTrack, call: Call) -> Call | None:
    """The sum that a number scales."""
    for _ in range(budgets.MOST_VIEWS_FOLLOWED):
        tensors = [value for value in call.args if isinstance(value, torch.Tensor)]
        made = track.maker_of(tensors[0]) if len(tensors) == 1 else None
        if made is None or function_name(made.function) == "sum":
            return made
        if function_name(made.function) not in _SAME_SUM:
            return None
        call = made
    return None


def _summed_sizes(call: Call) -> list[Any]:
    """The sizes of the axes that a sum runs over."""
    tensor = call.args[0]
    axes = call.kwargs.get("dim", call.args[1] if len(call.args) > 1 else None)
    if axes is None:
        return list(tensor.shape)
    return [tensor.shape[axis] for axis in (axes if isinstance(axes, (tuple, list)) else (axes,))]


def _product_in_dims(sizes: Iterable[Any]) -> Expression | None:
    """The product as an expression; None where no dim is in it."""
    factors = [str(size) for size in sizes if str(size) != "1"]
    found = parse_expression(" * ".join(f"({factor})" for factor in factors)) if factors else None
    return found if found is not None and found.names else None


def _is_scaled_by(call: Call, size: int) -> bool:
    numbers = [value for value in call.args if type(value) in (int, float)]
    divides = "div" in function_name(call.function)
    wanted = size if divides else 1 / size
    return size >= _SMALLEST and any(math.isclose(number, wanted, rel_tol=1e-9) for number in numbers)


def _loops(track: CallTrack, in_dims: InDims, example: Mapping[str, int]) -> Iterator[Cause]:
    """`x[i]` for i = 0, 1, 2 at one place, where the axis has three entries in the example."""
    at: dict[tuple[Any, ...], list[tuple[Call, int]]] = {}
    for call in track.calls:
        if call.site is None or function_name(call.function) not in _READING:
            continue
        for axis, index in _plain_indices(call):
            size = in_dims(call.args[0].shape[axis])
            if size is not None and size.names:
                at.setdefault((call.site.code, call.site.instruction, axis, size), []).append((call, index))
    for (_, _, _, size), reads in at.items():
        count = size.value(example)
        if count >= _SMALLEST and [index for _, index in reads] == list(range(count)):
            yield _cause_at("loop", reads[0][0], size, count)


def _plain_indices(call: Call) -> Iterator[tuple[int, int]]:
    """Axis and plain index of what is read."""
    tensor, *rest = call.args
    if function_name(call.function) == "__getitem__":
        place = rest[0] if isinstance(rest[0], tuple) else (rest[0],)
        if all(isinstance(one, slice) or type(one) is int for one in place):
            yield from ((axis, one) for axis, one in enumerate(place) if type(one) is int and axis < tensor.dim())
    elif function_name(call.function) == "select" and len(rest) == 2 and all(type(one) is int for one in rest):
        yield rest[0] % tensor.dim(), rest[1]


def _cause_at(kind: Any, call: Call, size: Expression, count: int) -> Cause:
    assert call.site is not None
    condition: Condition = parse_condition(f"{size} == {count}")
    return Cause(kind, call.site, (condition,), (Want(size, count),), call)
