"""Sizes that stand for all that were declared: a question about sizes is asked of each of them at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import sympy

from anyshape.bench.plan import Sizes
from anyshape.sizes.evaluation import NO_VALUE, Known, Values, evaluate, raising, symbols_of
from anyshape.sizes.notation import Expression


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

    def values(self, expression: sympy.Basic) -> Values | None:
        """The expression at each of these sizes; None where that cannot be told."""
        try:
            with raising():
                new = [one for one in symbols_of(expression) if one not in self._known]
                columns = {one: self.table.columns()[one][self.rows] for one in new}
                return np.broadcast_to(evaluate(expression, columns, self._known), self.rows.shape)
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
        return len(self.rows) >= _ENOUGH and all(_varies(columns[one][self.rows]) for one in symbols if one in columns)

    def first(self) -> Mapping[sympy.Symbol, sympy.Integer]:
        """The sizes that torch is shown."""
        return _Row(self.table, self.rows[0])


class _Row(Mapping[sympy.Symbol, sympy.Integer]):
    def __init__(self, table: Table, row: int) -> None:
        self._columns, self._row = table.columns(), row

    def __getitem__(self, symbol: sympy.Symbol) -> sympy.Integer:
        return sympy.Integer(self._columns[symbol][self._row])

    def __contains__(self, symbol: object) -> bool:
        return symbol in self._columns

    def __iter__(self) -> Iterator[sympy.Symbol]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


_ENOUGH = 12


def _varies(column: Values) -> bool:
    return len(np.unique(column)) > 2
