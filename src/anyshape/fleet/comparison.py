"""Two sweeps side by side: what is better, worse, slower or gone, and how much of the slowness is the machine's.

A sweep runs each entry once, so that a single time proves nothing. How times scatter is read off the pair itself: the
median of all ratios is what the machine or a new version does to everything, and an entry is slower only where it
stands out of the spread around that median, by a share and by seconds that a person would notice.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from anyshape.fleet.result_lines import TaskRecord
from anyshape.sizes import budgets

Records = Mapping[tuple[str, str], TaskRecord]


@dataclass(frozen=True)
class Noise:
    """How CPU times of the same entries differ between two sweeps."""

    count: int
    """Entries whose times can be compared: good in both, and long enough."""
    shift: float = 1.0
    """The median of all ratios, new to old."""
    spread: float = 1.0
    """The factor within which two thirds of the ratios lie around the median."""

    @property
    def threshold(self) -> float:
        """A ratio beyond this stands out."""
        return self.shift * max(budgets.SLOWER_BY, self.spread**budgets.SPREADS_OF_AN_OUTLIER)

    def __str__(self) -> str:
        if self.count < budgets.FEWEST_TIMES:
            return f"times: {self.count} can be compared, too few to tell noise from change: none is called slower"
        return (
            f"times: {self.shift:.2f} x the old CPU time in the median of {self.count}, scattered by a factor of "
            f"{self.spread:.2f}; from {self.threshold:.2f} x on, an entry is called slower"
        )


@dataclass(frozen=True)
class EntryChange:
    """One entry in one column, before and after."""

    old: TaskRecord | None
    new: TaskRecord | None

    @property
    def _newest(self) -> TaskRecord:
        known = self.new or self.old
        assert known is not None
        return known

    @property
    def key(self) -> tuple[str, str]:
        return self._newest.key

    @property
    def ratio(self) -> float | None:
        """New CPU time to old, where both are good and long enough to say anything."""
        if self.old is None or self.new is None or not (self.old.is_good and self.new.is_good):
            return None
        times = self.old.cpu_seconds, self.new.cpu_seconds
        return times[1] / times[0] if min(times) > 0 and max(times) >= budgets.SHORTEST_TIME_COMPARED else None

    def __str__(self) -> str:
        name, column = self.key
        before, after = (("nothing" if one is None else one.outcome) for one in (self.old, self.new))
        cause = f": {self.new.cause}" if self.new is not None and self.new.cause else ""
        if before != after or self.old is None or self.new is None:
            return f"{name} [{column}] {before} -> {after}{cause}"
        return f"{name} [{column}] {self.old.cpu_seconds:.1f} s -> {self.new.cpu_seconds:.1f} s"

    def to_dict(self) -> dict[str, Any]:
        name, column = self.key
        return {
            "name": name,
            "column": column,
            **{
                when: None if one is None else {"outcome": one.outcome, "cpu_seconds": one.cpu_seconds}
                for when, one in (("old", self.old), ("new", self.new))
            },
        }


@dataclass(frozen=True)
class SweepComparison:
    """All changes, sorted by what they mean; `print` it."""

    better: Sequence[EntryChange]
    worse: Sequence[EntryChange]
    slower: Sequence[EntryChange]
    faster: Sequence[EntryChange]
    gone: Sequence[EntryChange]
    added: Sequence[EntryChange]
    same: int
    noise: Noise

    @property
    def is_regression(self) -> bool:
        """What has no result any more is not known to be as good as it was."""
        return bool(self.worse or self.slower or self.gone)

    def __str__(self) -> str:
        parts = [f"{len(getattr(self, name))} {said}" for name, said in _GROUPS.items() if getattr(self, name)]
        lines = [
            f"{'worse' if self.is_regression else 'no regression'}: {', '.join([*parts, f'{self.same} the same'])}"
        ]
        for name, said in _GROUPS.items():
            lines += [f"  {said:<8} {change}" for change in getattr(self, name)]
        return "\n".join([*lines, f"  {self.noise}"])

    def to_dict(self) -> dict[str, Any]:
        groups = {name: [change.to_dict() for change in getattr(self, name)] for name in _GROUPS}
        noise = {"compared": self.noise.count, "shift": self.noise.shift, "spread": self.noise.spread}
        return {"regression": self.is_regression, **groups, "same": self.same, "times": noise}


_GROUPS = {
    "worse": "worse", "gone": "gone", "slower": "slower", "better": "better", "faster": "faster", "added": "new",
}  # fmt: skip


def compare_records(old: Records, new: Records) -> SweepComparison:
    changes = [EntryChange(old.get(key), new.get(key)) for key in sorted({*old, *new})]
    both = [(one, one.old, one.new) for one in changes if one.old is not None and one.new is not None]
    noise = _noise_of([one for one, _, _ in both])
    better = [one for one, before, after in both if after.rank < before.rank]
    worse = [one for one, before, after in both if after.rank > before.rank]
    # whose outcome has changed is compared by that alone
    same = [one for one, before, after in both if after.rank == before.rank]
    slower = [one for one in same if _stands_out(one, noise)]
    faster = [one for one in same if _stands_out(EntryChange(one.new, one.old), _noise_mirrored(noise))]
    gone = [one for one in changes if one.new is None]
    added = [one for one in changes if one.old is None]
    named = sum(map(len, (better, worse, slower, faster, gone, added)))
    return SweepComparison(better, worse, slower, faster, gone, added, len(changes) - named, noise)


def _noise_of(changes: Sequence[EntryChange]) -> Noise:
    logs = [math.log(ratio) for change in changes if (ratio := change.ratio) is not None]
    if not logs:
        return Noise(0)
    middle = statistics.median(logs)
    # two thirds of a bell lie within 1.4826 median deviations, whatever a few outliers do
    deviation = 1.4826 * statistics.median(abs(one - middle) for one in logs)
    return Noise(len(logs), math.exp(middle), math.exp(deviation))


def _noise_mirrored(noise: Noise) -> Noise:
    return Noise(noise.count, 1 / noise.shift, noise.spread)


def _stands_out(change: EntryChange, noise: Noise) -> bool:
    """Whether an entry has become slower than noise explains."""
    if change.old is None or change.new is None or change.ratio is None or noise.count < budgets.FEWEST_TIMES:
        return False
    expected = change.old.cpu_seconds * noise.shift
    return change.ratio > noise.threshold and change.new.cpu_seconds - expected > budgets.SECONDS_NOTICED
