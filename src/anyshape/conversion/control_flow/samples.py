"""Sizes that stand for all that were declared: a question about sizes is asked of each of them at once.

torch's symbols grow with every layer that pads, divides or chooses, and what it computes about them grows faster. So
sizes that have become long to say get names: `(s0 + 3)//4 + (7 - (s0 + 3)//4 % 7) % 7` is one symbol from here on. A
named size is a symbol of which torch knows nothing; what it is at each of the samples is known, and answers for it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import sympy
import torch
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.overrides import TorchFunctionMode

from anyshape.sizes import budgets
from anyshape.sizes.expressions import NO_VALUE, Known, Values, evaluate, raising, symbols_of
from anyshape.sizes.notation import Expression, Sizes
from anyshape.torchkit.capture import expression_of
from anyshape.torchkit.private_names import pytree

# ---- samples


class Table:
    """What each of torch's symbols is at each of some sizes."""

    def __init__(
        self,
        sizes: Sequence[Sizes],
        sources: Collection[sympy.Symbol],
        meaning: Callable[[], Mapping[sympy.Symbol, Expression]],
    ) -> None:
        """`sources` grows with each symbol that the trace makes for an input; then `meaning` is asked anew."""
        self.sizes = sizes
        self._sources = sources
        self._meaning = meaning
        self._columns: dict[sympy.Symbol, Values] = {}
        self._known = 0

    def columns(self) -> Mapping[sympy.Symbol, Values]:
        """The symbols that the trace has made so far."""
        if len(self._sources) != self._known:
            self._known = len(self._sources)
            for symbol, expression in self._meaning().items():
                self._columns[symbol] = np.array([expression.value(sizes) for sizes in self.sizes], dtype=np.int64)
        return self._columns

    def name(self, symbol: sympy.Symbol, rows: Values, values: Values) -> None:
        """A symbol of the trace's own: what it is at some of the sizes."""
        column = np.zeros(len(self.sizes), dtype=np.int64)
        column[rows] = values
        self._columns[symbol] = column


@dataclass(frozen=True)
class Samples:
    """Some of a table's sizes; the first of them is what torch is shown."""

    table: Table
    rows: Values
    _known: Known = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def of(cls, table: Table) -> Samples:
        return cls(table, np.arange(len(table.sizes)))

    def values(self, expression: sympy.Basic, free: Collection[sympy.Symbol] = ()) -> Values | None:
        """The expression at each of these sizes; None where that cannot be told. What is `free` is any size from 1 on,
        and has no part in what the others are.
        """
        if free:
            return self._values_with(expression, free)
        try:
            with raising():
                new = [one for one in symbols_of(expression) if one not in self._known]
                columns = {one: self.table.columns()[one][self.rows] for one in new}
                return np.broadcast_to(evaluate(expression, columns, self._known), self.rows.shape)
        except NO_VALUE:
            return None

    def _values_with(self, expression: sympy.Basic, free: Collection[sympy.Symbol]) -> Values | None:
        rows = np.tile(self.rows, 8)
        others = symbols_of(expression) - {*free}
        lot = np.random.default_rng(0)
        try:
            columns = {one: self.table.columns()[one][rows] for one in others}
            columns |= {one: 1 + np.floor(2 ** lot.uniform(0, 12, len(rows))).astype(np.int64) // 2 for one in free}
            with raising():
                return np.broadcast_to(evaluate(expression, columns, {}), rows.shape)
        except NO_VALUE:
            return None

    def where(self, condition: sympy.Basic, answer: bool) -> Samples:
        """Those at which the condition has this answer."""
        values = self.values(condition)
        assert values is not None
        return replace(self, rows=self.rows[values.astype(bool) == answer])

    def vary(self, symbols: Iterable[sympy.Basic]) -> bool:
        """Whether there are enough sizes to speak for those between them."""
        columns = self.table.columns()
        is_enough = len(self.rows) >= budgets.ENOUGH_SAMPLES
        return is_enough and all(len(np.unique(columns[one][self.rows])) > 2 for one in symbols if one in columns)

    def first(self, others: Mapping[sympy.Symbol, Any] | None = None) -> Mapping[sympy.Symbol, int]:
        """The sizes that torch is shown; those that the samples do not know are as in `others`."""
        return _Row(self.table.columns(), self.rows[0], others or {})


class _Row(Mapping[sympy.Symbol, int]):
    """Two mappings seen as one, without a copy."""

    def __init__(self, columns: Mapping[sympy.Symbol, Values], row: int, others: Mapping[sympy.Symbol, Any]) -> None:
        self._columns, self._row, self._others = columns, row, others

    def __getitem__(self, symbol: sympy.Symbol) -> int:
        return int(self._columns[symbol][self._row] if symbol in self._columns else self._others[symbol])

    def __contains__(self, symbol: object) -> bool:
        return symbol in self._columns or symbol in self._others

    def __iter__(self) -> Iterator[sympy.Symbol]:
        return iter({**self._others, **self._columns})

    def __len__(self) -> int:
        return len({**self._others, **self._columns})


# ---- names for long sizes

_LONG = 10
"""Sizes of at most so many symbols, numbers and operations stay as they are."""


def shortened(result: Any, samples: Samples) -> Any:
    """The same tensors and numbers, with names for their long sizes."""
    return pytree.tree_map(lambda leaf: _with_named_sizes(leaf, samples), result)


def _with_named_sizes(leaf: Any, samples: Samples) -> Any:
    if isinstance(leaf, torch.SymInt) and _is_long(leaf):
        return named_size(leaf, samples.values(leaf.node.expr), samples)
    if isinstance(leaf, torch.Tensor):
        axes = [axis for axis, size in enumerate(leaf.shape) if _is_long(size)]
        sizes: list[Any] = [leaf.shape[axis] for axis in axes]
        values = [samples.values(size.node.expr) for size in sizes]
        if axes and all(column is not None for column in values):
            named: torch.Tensor = torch.ops.anyshape.named(leaf, axes)
            for axis, column in zip(axes, values, strict=True):
                remember(named.shape[axis], column, samples)
            return named
    return leaf


class Naming(TorchFunctionMode):
    """Inside, what a function of torch gives back has short sizes."""

    def __init__(self, samples: Callable[[], Samples]) -> None:
        super().__init__()
        self._samples = samples

    def __torch_function__(
        self, func: Any, types: Sequence[type], args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        del types
        result = func(*args, **(kwargs or {}))
        # who writes to a tensor means that tensor, and no copy of it
        is_new = isinstance(result, torch.Tensor) and not any(result is one for one in args)
        if is_new and func is torch.ops.aten.slice:  # export makes it of `x[:, a:b]`
            _remember_slice(result, self._samples(), *args)
        return _with_named_sizes(result, self._samples()) if is_new and func is not torch.ops.anyshape.named else result


def _remember_slice(
    result: torch.Tensor, samples: Samples, tensor: torch.Tensor, axis: int = 0, start: Any = None, end: Any = None,
    step: Any = 1,
) -> None:  # fmt: skip
    if step == 1:
        remember(result.shape[axis], length_of_slice(tensor.shape[axis], start, end, samples), samples)


def _is_long(size: Any) -> bool:
    if not isinstance(size, torch.SymInt):
        return False
    parts = sympy.preorder_traversal(size.node.expr)
    return sum(1 for _ in itertools.islice(parts, _LONG + 1)) > _LONG


def named_size(size: Any, values: Values | None, samples: Samples) -> Any:
    """The number as a new symbol, by way of a tensor of one element."""
    if values is None:
        return size
    named = torch.scalar_tensor(size, dtype=torch.int64, device="cpu").item()
    remember(named, values, samples)
    return named


def recognise(before: Any, now: Any, samples: Samples) -> None:
    """A trace that is run again has new symbols for the same sizes."""
    for old, new in zip(pytree.tree_leaves(before), pytree.tree_leaves(now), strict=False):
        pairs = [(old, new)]
        if isinstance(old, torch.Tensor) and isinstance(new, torch.Tensor):
            pairs = list(zip(old.shape, new.shape, strict=False))
        for known, size in pairs:
            if isinstance(known, torch.SymInt) and isinstance(size, torch.SymInt):
                remember(size, samples.values(known.node.expr), samples)


def remember(size: Any, values: Values | None, samples: Samples) -> None:
    """What a new symbol is at each of the samples."""
    expression = size.node.expr if isinstance(size, torch.SymInt) else None
    if values is not None and isinstance(expression, sympy.Symbol) and expression not in samples.table.columns():
        samples.table.name(expression, samples.rows, values)


# ---- how long a slice is

# Torch makes a new symbol for the length of `x[:, a:b]` wherever it cannot tell how the borders lie. Python's rules
# tell it for every sample.


def has_unknown_length(part: slice) -> bool:
    """Whether a slice has a border that depends on values, and a length that does."""
    start, end = 0 if part.start is None else part.start, part.stop
    if any(isinstance(border, torch.Tensor) for border in (start, end)):
        return False
    borders = [number for number in (start, end) if isinstance(number, torch.SymInt)]
    if part.step not in (None, 1) or not any(free_unbacked_symbols(number) for number in borders):
        return False
    return end is None or not isinstance(expression_of(end - start), sympy.Integer)


def length_of_slice(size: Any, start: Any, end: Any, samples: Samples) -> Values | None:
    """Of an axis of this size, from one border to another; None where that depends on values."""
    whole = _values_of(size, samples)
    first, last = _values_of(0 if start is None else start, samples), _values_of(size if end is None else end, samples)
    if whole is None or first is None or last is None:
        return None
    first, last = (np.clip(np.where(one < 0, one + whole, one), 0, whole) for one in (first, last))
    length: Values = np.maximum(last - first, 0)
    return length


def _values_of(number: Any, samples: Samples) -> Values | None:
    if isinstance(number, int):
        return np.full(samples.rows.shape, number)
    return samples.values(number.node.expr) if isinstance(number, torch.SymInt) else None
