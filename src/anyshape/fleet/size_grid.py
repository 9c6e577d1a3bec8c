"""Every size that a file declares, or a share of them, dealt to tasks; and what these have come to."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anyshape.errors import DeclarationError
from anyshape.fleet.result_lines import TaskRecord
from anyshape.sizes import budgets
from anyshape.sizes.notation import Condition, SizeRange, Sizes
from anyshape.testbench.plan import members


def sizes_of_grid(
    ranges: Mapping[str, SizeRange], conditions: Iterable[Condition], share: float
) -> tuple[list[Sizes], int]:
    """The sizes to run, and how many are declared; of a share, the same ones each time, spread over all."""
    for dim, declared in ranges.items():
        if declared.is_open:
            raise DeclarationError(f"`{dim}` has no largest size, so that not all can be run: give --size {dim}=1..512")
    total = math.prod(len(declared) for declared in ranges.values())
    if total > budgets.MOST_SIZES_OF_A_GRID:
        raise DeclarationError(
            f"{total:,} sizes are declared, more than the {budgets.MOST_SIZES_OF_A_GRID:,} of a grid: give --size"
        )
    held = tuple(conditions)
    rows = itertools.product(*(members(declared) for declared in ranges.values()))
    every = (dict(zip(ranges, row, strict=True)) for row in rows)
    found, count = list[Sizes](), 0
    for one in every:
        if all(condition.holds(one) for condition in held):
            count += 1
            if share >= 1 or _falls_into(one, share):
                found.append(one)
    if not found:
        raise DeclarationError(f"of {count:,} declared sizes none is left to run: give a larger --share")
    return found, count


def _falls_into(sizes: Sizes, share: float) -> bool:
    digest = hashlib.sha256(json.dumps(sizes, sort_keys=True).encode()).digest()
    return int.from_bytes(digest[:8], "big") < share * 2**64


def dealt(sizes: Sequence[Sizes], workers: int) -> list[list[Sizes]]:
    """Hands of about the same work, several for each worker, so that none waits long for the last."""
    count = min(
        max(workers * 4, math.ceil(len(sizes) / budgets.MOST_SIZES_OF_A_TASK)),
        math.ceil(len(sizes) / budgets.FEWEST_SIZES_OF_A_TASK),
    )
    by_volume = sorted(sizes, key=lambda one: math.prod(max(size, 1) for size in one.values()))
    return [by_volume[number::count] for number in range(count)]


@dataclass(frozen=True)
class GridResult:
    """What every size has come to; `print` it."""

    file: str
    asked: int
    declared: int
    """How many sizes there are, and how many of them were to be run."""
    records: Sequence[TaskRecord]

    @property
    def _rows(self) -> Iterator[Mapping[str, Any]]:
        return (record.details for record in self.records)

    @property
    def right(self) -> int:
        return sum(int(row.get("right", 0)) for row in self._rows)

    @property
    def refused(self) -> int:
        """Sizes at which PyTorch itself fails."""
        return sum(int(row.get("refused", 0)) for row in self._rows)

    @property
    def failures(self) -> list[Mapping[str, Any]]:
        """The smallest sizes first."""
        found = [failure for row in self._rows for failure in row.get("failures", ())]
        return sorted(found, key=lambda one: (math.prod(one["sizes"].values()), json.dumps(one["sizes"])))

    @property
    def unknown(self) -> int:
        """Sizes of tasks that ended before they could answer."""
        return self.asked - self.right - self.refused - len(self.failures)

    @property
    def is_right(self) -> bool:
        return not self.failures and not self.unknown and self.right > 0

    def __str__(self) -> str:
        share = "every declared size" if self.asked == self.declared else f"{self.asked:,} of {self.declared:,} sizes"
        lines = [f"{'checked' if self.is_right else 'refused'}: {self.file} at {share}, {self.right:,} right"]
        if self.refused:
            lines.append(f"  invalid  {self.refused:,} sizes, at which PyTorch fails")
        if self.unknown:
            causes = dict.fromkeys(record.cause for record in self.records if "right" not in record.details)
            lines.append(f"  not run  {self.unknown:,} sizes: {'; '.join(causes)}")
        if self.failures:
            lines.append(f"  wrong    {len(self.failures):,} sizes")
        for failure in self.failures[: budgets.MOST_FAILURES_TOLD]:
            place = ", ".join(f"{dim} = {size}" for dim, size in failure["sizes"].items())
            said = "" if place in failure["cause"] else f" at {place}"
            lines.append(f"    {failure['cause']}{said}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        return {
            "verdict": "checked" if self.is_right else "refused", "file": self.file, "declared": self.declared,
            "asked": self.asked, "right": self.right, "sizes_pytorch_refuses": self.refused, "not_run": self.unknown,
            "failures": [dict(one) for one in self.failures],
        }  # fmt: skip
