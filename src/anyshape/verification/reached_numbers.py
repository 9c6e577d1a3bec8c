"""Contents for numbers that the model or its file compares values with, where no drawn value is on their other side.

`x > 1e8` never holds for values as they are drawn, and `ids == 50256` hardly ever. Inputs that are compared themselves
are given that number and others beside it; what is compared further on is reached by making all floats larger or
smaller, by as much as it takes. Ids reach the last row of a table, and integers that are divided are negated, too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from typing import Any

import numpy as np
import onnx_ir as ir
import torch

from anyshape.model.oracle import Outcome, Reference
from anyshape.onnxfile.graph import every_node
from anyshape.onnxfile.size_formulas import SizeFormulas
from anyshape.sizes import budgets
from anyshape.testbench.plan import Budget
from anyshape.torchkit.compared_numbers import Comparison
from anyshape.verification.branches_taken import computed_from
from anyshape.verification.contents import Content, ValueChange, kind_of_change, largest_magnitude

_PLACES = (
    "Gather", "GatherND", "GatherElements", "ScatterND", "ScatterElements", "OneHot", "Slice", "Range", "Reshape",
    "Expand", "Tile", "Pad", "Split", "TopK", "Loop", "Scan", "If",
)  # fmt: skip
"""Operators that take integers for indices or sizes, or whose bodies may."""
_ORDERS = ("Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Clip", "Max", "Min")


def contents_at_numbers(
    reference: Reference, base: Outcome, model: ir.Model, names: Mapping[str, str], budget: Budget
) -> Iterator[Content]:
    """A few, for the leaves of this call that have a name in the file."""
    if budget.refuses(effort := reference.effort(base.sizes)) is not None:
        return
    budget.charge(effort)
    kinds = {leaf: kind_of_change(base.leaves[leaf]) for leaf in names}
    leaves = {leaf: base.leaves[leaf] for leaf, kind in kinds.items() if kind in ("floating", "integer")}
    asked = reference.compared_numbers(base)
    known = {np.float32(one.number) for one in asked}
    in_file = _numbers_of_file(model, {leaf: names[leaf] for leaf in leaves}, base)
    of_file = [one for one in in_file if np.float32(one.number) not in known]
    compared = {(one.number, one.is_integer): one for one in (*asked, *of_file) if math.isfinite(one.number)}
    found = chain.from_iterable(_contents_for(reference, base, one, leaves) for one in compared.values())
    yield from islice({(one.leaves, one.words): one for one in found}.values(), budgets.MOST_NUMBERS_REACHED)
    integers = {leaf: names[leaf] for leaf, kind in kinds.items() if kind == "integer"}
    yield from _last_rows(model, integers, base)
    yield from _negated_operands(model, integers, base)


def _contents_for(
    reference: Reference, base: Outcome, compared: Comparison, leaves: Mapping[str, Any]
) -> Iterator[Content]:
    if direct := tuple(leaf for leaf, value in leaves.items() if _is_compared_itself(value, compared)):
        if not (compared.has_both_sides and compared.holds_number):
            yield Content(direct, _change_to_hold(compared))
        return
    floats = tuple(leaf for leaf, value in leaves.items() if kind_of_change(value) == "floating")
    if floats and not (compared.has_both_sides or compared.is_integer or compared.is_about_equality):
        scale = _scale_to_reach(reference, base, compared, {leaf: leaves[leaf] for leaf in floats})
        if scale is not None:
            yield Content(floats, ValueChange(f"{scale:.3g} times as large", lambda values: values * scale, grows=True))


def _is_compared_itself(value: Any, compared: Comparison) -> bool:
    """Whether these are the values that are compared: they have the same ends."""
    values = torch.as_tensor(value)
    if values.is_floating_point() is compared.is_integer or not _can_be_held(compared, values.dtype):
        return False
    return (float(values.min()), float(values.max())) == (compared.lowest, compared.highest)


def _can_be_held(compared: Comparison, dtype: torch.dtype) -> bool:
    """Whether a type has the number and those beside it; of floats their squares, too, as in a variance."""
    if compared.is_integer:
        return torch.iinfo(dtype).min < compared.number < torch.iinfo(dtype).max
    return compared.is_about_equality or (2 * compared.number) ** 2 <= torch.finfo(dtype).max


def _change_to_hold(compared: Comparison) -> ValueChange:
    """Every other value is the number, or one beside it unless only equality matters."""
    number = compared.number
    step = 1.0 if compared.is_integer or not number else abs(number) / 2
    beside = [number] if compared.is_about_equality else [number, number - step, number + step]

    def held(values: torch.Tensor) -> torch.Tensor:
        changed = values.clone(memory_format=torch.contiguous_format)
        places = changed.view(-1)[::2]
        places.copy_(torch.tensor(beside, dtype=torch.float64).repeat(len(places) // len(beside) + 1)[: len(places)])
        return changed

    return ValueChange(f"holding {number:.7g}" + ("" if compared.is_about_equality else " and numbers beside it"), held)


def _scale_to_reach(
    reference: Reference, base: Outcome, compared: Comparison, leaves: Mapping[str, Any]
) -> float | None:
    """By how much to multiply floats so that results lie on both sides of the number; None where nothing helps."""
    extreme = max(compared.lowest, compared.highest, key=abs)
    scale = 2 * compared.number / extreme if extreme else 0.0
    # thirty times as large and negated are run anyway, and so are zeros
    if not math.isfinite(scale) or not scale or 1 <= scale <= 30 or -2 <= scale < 0:
        return None
    sign, most = math.copysign(1.0, scale), min(map(_largest_power, leaves.values()))
    wanted = math.log2(abs(scale))
    if compared.occurrence is None:
        return scale if wanted <= most else None  # of a file, which is not asked on the way
    power, low, high = min(wanted, most), 0.0, most
    is_below = compared.highest <= compared.number
    for _ in range(budgets.MOST_SCALES_TRIED):
        scale = sign * math.exp2(power)
        changed = {leaf: value * scale for leaf, value in leaves.items()}
        again = {one.occurrence: one for one in reference.compared_numbers(base, changed)}.get(compared.occurrence)
        if again is None or (again.lowest, again.highest) == (compared.lowest, compared.highest):
            return None  # what is compared does not depend on these values
        if again.has_both_sides:
            return scale
        is_short = again.highest <= again.number if is_below else again.lowest >= again.number
        if is_short and power == high:
            return None
        low, high = (power, high) if is_short else (low, power)
        power = (low + high) / 2
    return None


def _largest_power(value: Any) -> float:
    """Of two, by which values may be multiplied so that their squares are still numbers, as in a variance."""
    values = torch.as_tensor(value)
    largest = float(largest_magnitude(values)) or 1.0
    return math.log2(torch.finfo(values.dtype).max) / 2 - math.log2(largest)


# ---- of a file


def _numbers_of_file(model: ir.Model, names: Mapping[str, str], base: Outcome) -> Iterator[Comparison]:
    """What its nodes compare values of the inputs with at these sizes, as if inputs were compared themselves."""
    formulas = SizeFormulas({dim: np.asarray([size, size]) for dim, size in base.sizes.items()})
    for node in every_node(model.graph, "Equal", *_ORDERS):
        known = [one for one in map(formulas.numbers_of, node.inputs) if one is not None]
        short = [one[0] for one in known if one.shape[1] <= budgets.MOST_NUMBERS_COMPARED]
        inputs = computed_from(*node.inputs) if short else set()
        for leaf in (leaf for leaf, name in names.items() if name in inputs):
            values = torch.as_tensor(base.leaves[leaf])
            ends, is_integer = (float(values.min()), float(values.max())), not values.is_floating_point()
            numbers = [float(number) for row in short if is_integer is (row.dtype.kind != "f") for number in row]
            is_equality = node.op_type == "Equal"
            yield from (Comparison(number, *ends, False, is_equality, is_integer) for number in numbers)


def _last_rows(model: ir.Model, names: Mapping[str, str], base: Outcome) -> Iterator[Content]:
    """Ids for the last row of each table that they choose from, where none of them does: where PyTorch has no such row,
    it says so.
    """
    found: dict[tuple[str, int], Content] = {}
    for node in every_node(model.graph, "Gather"):
        table = None if node.inputs[0] is None else ir.convenience.get_const_tensor(node.inputs[0])
        if table is None or not table.shape.rank() or node.attributes.get_int("axis", 0) != 0:
            continue
        inputs, last = computed_from(node.inputs[1]), table.size // math.prod(table.shape.numpy()[1:]) - 1
        for leaf in (leaf for leaf, name in names.items() if name in inputs):
            values = base.leaves[leaf]
            if int(values.max()) < last <= torch.iinfo(values.dtype).max:
                compared = Comparison(last, float(values.min()), float(values.max()), False, True, True)
                found[leaf, last] = Content((leaf,), _change_to_hold(compared))
    yield from islice(found.values(), budgets.MOST_NUMBERS_REACHED)


def _negated_operands(model: ir.Model, names: Mapping[str, str], base: Outcome) -> Iterator[Content]:
    """Integers that are divided, where all are positive: whether a quotient is rounded down shows below zero.
    Not those that are indices or make sizes.
    """
    # of integers alone, and asked about places only where some are divided: each answer is a walk through the graph
    divisions = [node.inputs[0] for node in every_node(model.graph, "Div", "Mod") if node.inputs[0] is not None]
    divided = computed_from(*(one for one in divisions if one.dtype is None or one.dtype.is_integer()))
    if divided.isdisjoint(names.values()):
        return
    placed = computed_from(*(one for node in every_node(model.graph, *_PLACES) for one in node.inputs[1:]))
    for leaf, name in names.items():
        values = base.leaves[leaf]
        if name in divided - placed and values.dtype.is_signed and int(values.min()) >= 0:
            yield Content((leaf,), ValueChange("negated", torch.neg, is_odd=True))
