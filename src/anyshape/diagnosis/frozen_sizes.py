"""Sizes that were written as numbers where nothing fails: a mean divided by a literal, a loop over a literal count.

PyTorch runs at other sizes and gives what nobody meant, so no check against PyTorch can see it. What gives it away is
that a number equals, in the example, just the size that stands in its place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch

from anyshape.diagnosis.causes import Cause, Want, function_name
from anyshape.sizes import budgets
from anyshape.sizes.notation import Condition, Expression, parse_condition, parse_expression
from anyshape.torchkit.recorder import Call, CallTrack

InDims = Callable[[Any], Expression | None]
_SCALING = {"div", "true_divide", "__truediv__", "truediv", "mul", "multiply", "__mul__", "__rmul__", "div_", "mul_"}
_SAME_SUM = {"squeeze", "unsqueeze", "view", "reshape", "float", "to", "contiguous", "flatten", "transpose"}
_READING = {"__getitem__", "select", "narrow", "index_select"}
_SMALLEST = 2
"""A size of one is not told from other ones."""


def frozen(track: CallTrack, in_dims: InDims, example: Mapping[str, int]) -> list[Cause]:
    """Every number that stands where a size of the example stands, without a check that would show it."""
    return [*_means(track, in_dims, example), *_loops(track, in_dims, example)]


# ---- a mean


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


# ---- a loop


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
