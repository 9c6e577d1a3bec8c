"""Sizes for an example that nobody gave: small and different ones first, then those that the failing lines speak of.

A model with `reshape(2, ...)` runs at few sizes. Where it fails, the numbers in the line that fails tell which; each
failure may show another line, and with it further numbers.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from anyshape.sizes import budgets
from anyshape.sizes.notation import SizeRange, Sizes
from anyshape.source.spans import span_of_error, steps_of_error
from anyshape.testbench.plan import trace_sizes

_START_SIZES = (3, 16, 64, 224)
"""Small first; a model with strides may need more."""
_SMALL = range(1, 9)


@dataclass
class SizeSearch:
    """Sizes of an example, asked one after the other until the model runs."""

    ranges: Mapping[str, SizeRange]
    fixed: Sequence[int]
    """How many elements the axes with numbers have, for each input: what a line speaks of may be a whole tensor's."""
    lengths: Iterable[int] = ()
    """Of the model's own parameters."""
    failures: list[tuple[Sizes, Exception]] = field(default_factory=list)

    def first_that_runs(self, error_at: Callable[[Sizes], Exception | None]) -> Sizes | None:
        """The first sizes without an error; None where there are none among those that are worth a run."""
        asked = set[tuple[int, ...]]()
        for sizes in itertools.islice(self._unseen(asked), budgets.MOST_EXAMPLES_TRIED):
            error = error_at(sizes)
            if error is None:
                return sizes
            self.failures.append((sizes, error))
        return None

    def starts(self) -> list[Sizes]:
        rows = (trace_sizes(dict.fromkeys(self.ranges, size), self.ranges, (), lambda _: True) for size in _START_SIZES)
        return list({tuple(row.items()): row for row in rows}.values())

    def _unseen(self, asked: set[tuple[int, ...]]) -> Iterator[Sizes]:
        for sizes in self._candidates():
            key = tuple(sizes.values())
            if key not in asked and all(size in self.ranges[dim] for dim, size in sizes.items()):
                asked.add(key)
                yield sizes

    def _candidates(self) -> Iterator[Sizes]:
        yield from self.starts()
        yield from self._followed_lines()
        base, dims = self.starts()[0], list(self.ranges)
        yield from _rows_with(base, dims, _with_roots(self.lengths))
        yield from _rows_with(base, dims, _SMALL)

    def _followed_lines(self) -> Iterator[Sizes]:
        """Rows of the numbers in failing lines, again whenever a failure has shown new ones."""
        known: list[int] = []
        base, dims = self.starts()[0], list(self.ranges)
        while new := [n for _, error in self.failures for n in self._numbers_near(error) if n not in known]:
            known = list(dict.fromkeys([*known, *new]))
            yield from _rows_with(base, dims, known)

    def _numbers_near(self, error: Exception) -> list[int]:
        """What stands in the user's line, products of it, and how often a tensor fits into these."""
        literals = _literals_at(error)[: budgets.MOST_NUMBERS_OF_A_LINE]
        groups = (group for count in range(1, len(literals) + 1) for group in itertools.combinations(literals, count))
        products = [math.prod(group) for group in groups]
        shares = [product // size for product in products for size in self.fixed if size > 1 and product % size == 0]
        return [*literals, *shares, *products]


def _rows_with(base: Sizes, dims: Sequence[str], numbers: Iterable[int]) -> Iterator[Sizes]:
    """One dim moved, then two and all of them to the same number, then two to different ones."""
    kept, pairs = list(numbers), list(itertools.combinations(dims, 2))
    for number in kept:
        yield from ({**base, dim: number} for dim in dims)
    yield from ({**base, one: number, other: number} for number in kept for one, other in pairs)
    yield from (dict.fromkeys(dims, number) for number in kept)
    for one, other in pairs:
        yield from ({**base, one: left, other: right} for left, right in itertools.permutations(kept, 2))


def _with_roots(lengths: Iterable[int]) -> list[int]:
    """Lengths, and the sides of the squares that have as many elements."""
    kept = list(dict.fromkeys(lengths))
    return [*kept, *(math.isqrt(n) for n in kept if math.isqrt(n) ** 2 == n)]


def _literals_at(error: BaseException) -> list[int]:
    steps, span = list(steps_of_error(error)), span_of_error(error)
    if not steps or span is None:
        return []
    try:
        # not by linecache, which would remember lines that are about to be edited
        lines = Path(steps[-1].tb_frame.f_code.co_filename).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    text = "\n".join(lines[span.line - 1 : max(span.end_line or span.line, span.line)])
    return list(dict.fromkeys(int(found) for found in re.findall(r"(?<![\w.])\d{1,6}(?![\w.])", text) if int(found)))
