"""Sizes spread over a declaration: where code that goes by thresholds, tables and multiples may change its way."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping

from anyshape.bench.plan import Sizes
from anyshape.sizes.notation import SizeRange

_DENSE = 40
_LARGEST = 4096
_PAIRS = 600


def spread_sizes(
    ranges: Mapping[str, SizeRange],
    base: Mapping[str, int],
    constants: Iterable[int],
    admit: Callable[[Sizes], bool],
    seed: int,
) -> tuple[Sizes, ...]:
    """The base first; then each dim alone, all dims alike, and dims at random."""
    pool = {dim: _pool(declared, base[dim], constants) for dim, declared in ranges.items()}
    found: list[Sizes] = [dict(base)]
    found += [{**base, dim: size} for dim, sizes in pool.items() for size in sizes]
    found += [{dim: declared.nearest(size) for dim, declared in ranges.items()} for size in (*range(1, 34), 64, 128)]
    chance = random.Random(seed)  # noqa: S311  not for secrets
    found += [{dim: chance.choice(sizes) for dim, sizes in pool.items()} for _ in range(_PAIRS)]
    unique = {tuple(sizes.values()): sizes for sizes in reversed(found)}
    return tuple(sizes for sizes in reversed(unique.values()) if admit(sizes))


def _pool(declared: SizeRange, base: int, constants: Iterable[int]) -> list[int]:
    wanted = {*range(_DENSE + 1), *(2**power for power in range(5, 13)), base - 1, base, base + 1, 2 * base, base // 2}
    for constant in {*constants, *(2**power for power in range(5, 13))}:
        wanted |= {constant - 1, constant, constant + 1}
    return sorted(size for size in wanted if 0 <= size <= max(_LARGEST, base) and size in declared) or [base]
