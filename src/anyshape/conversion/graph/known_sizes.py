"""What is known about sizes: the trace noted a number or an expression of symbols for the axes of most values.

Two axes with the same expression have the same size. Axes of inputs that were declared as the same dim do, too,
although the trace may have given each its own symbol.

What follows from that alone is rewritten here: sizes that are read twice, and shapes that need not be computed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from anyshape.onnxfile.graph import constant, first_input, insert, maker, nodes_of, replace, whole_numbers

Size = int | str | None
"""A number, an expression of symbols, or unknown."""
_SYMBOL = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class DeclaredAxis:
    """What an input's axis was declared as: dims in one expression, and the smallest size that it may have."""

    expression: str
    smallest: int


class Sizes:
    """The sizes of all values of one graph."""

    def __init__(self, graph: ir.Graph, declared: Sequence[Sequence[DeclaredAxis | None]] = ()) -> None:
        self._symbols: dict[str, str] = {}
        self._texts: dict[str, str] = {}
        self._smallest: dict[str, int] = {}
        self._sources: dict[str, tuple[ir.Value, int]] = {}
        rows = {id(value): axes for value, axes in zip(graph.inputs, declared, strict=False)}
        first: dict[str, str] = {}
        symbols = [
            (value, axis, size, row[axis] if axis < len(row := rows.get(id(value), ())) else None)
            for value in graph.inputs
            for axis, size in enumerate(_noted_sizes(value) or ())
            if isinstance(size, str) and _SYMBOL.fullmatch(size)
        ]
        for place in sorted(symbols, key=lambda place: place[3] is not None and " " in place[3].expression):
            self._learn(*place, first)  # dims before sums of dims

    def _learn(self, value: ir.Value, axis: int, symbol: str, row: DeclaredAxis | None, first: dict[str, str]) -> None:
        if row is not None:
            self._symbols.setdefault(symbol, self._meaning(row.expression, symbol, first))
            same = self._symbols[symbol]
            self._smallest[same] = max(row.smallest, self._smallest.get(same, 0))
        self._sources.setdefault(self._symbols.get(symbol, symbol), (value, axis))

    @staticmethod
    def _meaning(expression: str, symbol: str, first: dict[str, str]) -> str:
        """The first symbol that was declared as this; for a sum of dims that have symbols, the sum of those."""
        terms = expression.split(" + ")
        if len(terms) > 1 and all(term in first for term in terms):
            return _in_order(" + ".join(first[term] for term in terms))
        return first.setdefault(expression, symbol)

    def of(self, value: ir.Value | None) -> tuple[Size, ...] | None:
        """The size of every axis; None where not even their number is known."""
        sizes = None if value is None else _noted_sizes(value)
        return None if sizes is None else tuple(self._in_first_symbols(s) if isinstance(s, str) else s for s in sizes)

    def all_of(self, value: ir.Value | None) -> tuple[int | str, ...] | None:
        """The size of every axis; None where one of them is unknown."""
        sizes = self.of(value)
        known = tuple(size for size in sizes or () if size is not None)
        return known if sizes is not None and len(known) == len(sizes) else None

    def smallest(self, size: Size) -> int:
        """The least that a size may be."""
        return size if isinstance(size, int) else self._smallest.get(size or "", 0)

    def source(self, size: Size) -> tuple[ir.Value, int] | None:
        """The first input, and its axis, that has this size."""
        return self._sources.get(size) if isinstance(size, str) else None

    def _in_first_symbols(self, text: str) -> str:
        """The expression with one symbol for all that are the same."""
        if text not in self._texts:
            self._texts[text] = _in_order(_SYMBOL.sub(lambda match: self._symbols.get(match[0], match[0]), text))
        return self._texts[text]


def _in_order(text: str) -> str:
    """The terms of a plain sum in one order, so that equal sums are equal texts."""
    return text if "(" in text else " + ".join(sorted(text.split(" + ")))


def _noted_sizes(value: ir.Value) -> list[Size] | None:
    if value.shape is None:
        node = maker(value, "Cos", "Sin")  # made by the optimiser, which notes nothing
        return None if node is None else _noted_sizes(first_input(node))
    return [size if isinstance(size, int) else size.value for size in value.shape]


def share(graph: ir.Graph, sizes: Sizes) -> None:
    """Read every size from the first input that has it, once, whatever value it was read from."""
    shared: dict[int | str | None, ir.Value] = {}
    first = next(iter(graph), None)
    for node in nodes_of(graph, "Shape"):
        size = size_read(node, sizes)
        source = sizes.source(size)
        if source is None or first is None:
            continue
        if size not in shared:
            shared[size] = _size_of_axis(first, *source, like=node.outputs[0])
        if not node.outputs[0].is_graph_output():
            node.outputs[0].replace_all_uses_with(shared[size])


def _size_of_axis(before: ir.Node, value: ir.Value, axis: int, *, like: ir.Value | None = None) -> ir.Value:
    return insert(before, "Shape", [value], {"start": axis, "end": axis + 1}, axes=[1], like=like)


def size_read(node: ir.Node, sizes: Sizes) -> Size:
    """The one size that a Shape node reads; None where it reads several, or nothing is known."""
    known = sizes.of(first_input(node))
    if known is None:
        return None
    read = known[node.attributes.get_int("start", 0) : node.attributes.get_int("end", len(known))]
    return read[0] if len(read) == 1 else None


def put_instead(
    node: ir.Node, sizes: Sizes, operator: str, inputs: Sequence[ir.Value | None], attributes: Any = None
) -> None:
    """Another node in the place of one: its result has the same type and sizes."""
    result = node.outputs[0]
    replace(result, insert(node, operator, inputs, attributes, axes=sizes.of(result), like=result))


# ---- shapes that are told once and for all: 0 for an axis that a Reshape keeps, 1 for one that an Expand keeps
#
# The translation computes each shape from the sizes of inputs while the model runs. Where all of it follows from what
# is known, a constant says the same. -1 stands for the one size that is left, and only where no other axis can be
# empty.


def write_targets(graph: ir.Graph, sizes: Sizes) -> None:
    for node in nodes_of(graph, "Reshape", "Expand"):
        if maker(node.inputs[1], "Compress") is not None:
            continue  # a squeeze: whether an axis goes is seen at run time, and the trace had to assume an answer
        have, wanted = sizes.of(first_input(node)), sizes.of(node.outputs[0])
        if node.op_type == "Expand":
            _keep_own_axes(node, sizes)
            wanted = wanted if wanted is not None and None not in wanted else _sizes_behind_expand(node, sizes)
        if have is None or wanted is None:
            continue
        if have == wanted and None not in have:
            replace(node.outputs[0], first_input(node))
        elif whole_numbers(node.inputs[1]) is None:
            target = reshape_target(have, wanted, sizes) if node.op_type == "Reshape" else _expand_target(have, wanted)
            if target is not None:
                node.replace_input_with(1, constant(graph, target))
                node.attributes.pop("allowzero", None)


def reshape_target(have: Sequence[Size], wanted: Sequence[Size], sizes: Sizes) -> tuple[int, ...] | None:
    """The shape as numbers; None where some size must be computed."""
    target: list[int] = []
    for axis, size in enumerate(wanted):
        if isinstance(size, int) and size > 0:
            target.append(size)
        elif size is not None and size != 0 and axis < len(have) and have[axis] == size:
            target.append(0)
        elif -1 not in target:
            target.append(-1)
        else:
            return None
    others = [size for size, number in zip(wanted, target, strict=True) if number != -1]
    if -1 in target and not all(sizes.smallest(size) > 0 for size in others):
        return None  # an axis may be empty
    return tuple(target)


def _expand_target(have: Sequence[Size], wanted: Sequence[Size]) -> tuple[int, ...] | None:
    before = (1,) * (len(wanted) - len(have)) + tuple(have)
    target: list[int] = []
    for old, new in zip(before, wanted, strict=True):
        if new is not None and old == new:
            target.append(1)
        elif isinstance(new, int):
            target.append(new)
        else:
            return None
    return tuple(target)


def _keep_own_axes(node: ir.Node, sizes: Sizes) -> None:
    """Where the shape of an Expand ends in the last sizes of what is expanded, ones say the same."""
    rank = len(sizes.of(first_input(node)) or ())
    shape = maker(node.inputs[1], "Concat")
    own = maker(shape.inputs[-1], "Shape") if shape is not None else None
    if shape is None or own is None or own.inputs[0] is not node.inputs[0]:
        return
    start, end = own.attributes.get_int("start", 0), own.attributes.get_int("end", rank)
    if 0 <= start < end == rank:
        ones = constant(node.graph, [1] * (end - start))
        node.replace_input_with(1, insert(node, "Concat", [*shape.inputs[:-1], ones], {"axis": 0}))


def _sizes_behind_expand(node: ir.Node, sizes: Sizes) -> tuple[Size, ...] | None:
    """The sizes behind an Expand of which only the shape that it is given tells; None where they may be others."""
    have, told = sizes.all_of(first_input(node)), _told_sizes(node.inputs[1], sizes)
    if have is None or told is None or len(told) > len(have):
        return None
    rows = zip(have, (*[1] * (len(have) - len(told)), *told), strict=True)
    return have if all(size in (1, old) for old, size in rows) else None


def _told_sizes(shape: ir.Value | None, sizes: Sizes) -> tuple[int | str, ...] | None:
    """The elements of a shape that is joined from single sizes."""
    joined = maker(shape, "Concat")
    found: list[int | str] = []
    for part in joined.inputs if joined is not None else ():
        numbers, reading = whole_numbers(part), maker(part, "Shape")
        size = None if reading is None else size_read(reading, sizes)
        if numbers is None and size is None:
            return None
        found += [size] if numbers is None and size is not None else numbers or ()
    return tuple(found) if joined is not None else None


def reshaped(before: ir.Node, value: ir.Value, wanted: Sequence[Size], sizes: Sizes) -> ir.Value | None:
    """The value with these sizes; None where a size is neither known nor that of an input."""
    have = sizes.of(value)
    if have is not None and tuple(have) == tuple(wanted):
        return value
    target = None if have is None else reshape_target(have, wanted, sizes)
    shape = constant(before.graph, target) if target is not None else _computed_shape(before, wanted, sizes)
    if shape is None:
        return None
    # a computed size may be 0, and means it
    attributes = {} if target is not None else {"allowzero": 1}
    return insert(before, "Reshape", [value, shape], attributes, axes=wanted, like=value)


def _computed_shape(before: ir.Node, wanted: Sequence[Size], sizes: Sizes) -> ir.Value | None:
    parts: list[ir.Value] = []
    for size in wanted:
        source = sizes.source(size)
        if source is not None:
            parts.append(_size_of_axis(before, *source))
        elif isinstance(size, int) and size > 0:
            parts.append(constant(before.graph, [size]))
        else:
            return None
    return insert(before, "Concat", parts, {"axis": 0}, axes=[len(parts)])
