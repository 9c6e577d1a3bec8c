"""How long calls take, measured so that they can be compared: in rounds, in random order, each after an untimed call.

A machine is never the same twice: it warms up, slows down, and does other things. What runs in one round meets the same
machine, so ratios are taken within rounds; their median is told with the interval in which it lies with a probability
of 95 %, whatever their distribution.
"""

from __future__ import annotations

import contextlib
import math
import os
import platform
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from anyshape.sizes import budgets

Sample = Callable[[], float]
"""Makes a call and gives its seconds."""
Clock = Literal["thread", "wall"]
_CLOCKS: Mapping[str, Callable[[], float]] = {"thread": time.thread_time, "wall": time.perf_counter}


def clock_for(threads: int, *, on_cpu: bool = True) -> Clock:
    """A single thread's own time, whatever else the machine does; of several, or of another device, the wall clock."""
    return "thread" if threads == 1 and on_cpu else "wall"


def clocked(call: Callable[[], Any], clock: str) -> Sample:
    """The second of two calls: the first finds caches as others left them."""
    now = _CLOCKS[clock]

    def seconds() -> float:
        call()
        start = now()
        call()
        return now() - start

    return seconds


def measure(samples: Mapping[str, Sample], rounds: int, chance: random.Random) -> dict[str, list[float]]:
    """The seconds of each, round by round; in every round all run, in another order."""
    seconds: dict[str, list[float]] = {name: [] for name in samples}
    order = list(samples)
    for _ in range(rounds):
        chance.shuffle(order)
        for name in order:
            seconds[name].append(samples[name]())
    return seconds


def rounds_for(seconds: float) -> int:
    """How many rounds, where one takes so long: as many as fit into some seconds, and never too few to tell."""
    most = int(budgets.SECONDS_OF_A_TIMED_SIZE / max(seconds, 1e-9))
    return min(max(most, budgets.FEWEST_ROUNDS), budgets.MOST_ROUNDS)


# ---- what is made of many


@dataclass(frozen=True)
class Spread:
    """A median, and the numbers between which most lie, or it lies itself."""

    median: float
    low: float
    high: float


def quantile(values: Sequence[float], share: float) -> float:
    return float(np.quantile(values, share))


def spread_of(values: Sequence[float]) -> Spread:
    """The median, and between which eight of ten lie."""
    return Spread(quantile(values, 0.5), quantile(values, 0.1), quantile(values, 0.9))


def ratio_of(seconds: Sequence[float], others: Sequence[float]) -> Spread:
    """The median of the ratios within rounds, and between which it lies with 95 %; 0 and inf where rounds are few."""
    ratios = sorted(one / max(other, 1e-12) for one, other in zip(seconds, others, strict=True))
    rank = _rank_of_interval(len(ratios))
    ends = (0.0, math.inf) if rank is None else (ratios[rank], ratios[-1 - rank])
    return Spread(quantile(ratios, 0.5), *ends)


def _rank_of_interval(count: int) -> int | None:
    """The place, from either end, of the numbers between which the median lies with 95 %; None where none do.

    Each number is above the median as a coin falls: what is drawn, or in which units, does not matter.
    """
    outside, rank = 0.0, None
    for place in range(count // 2):
        outside += 2 * math.comb(count, place) / 2**count
        if outside > 0.05:
            break
        rank = place
    return rank


def is_within_noise(ratio: Spread, noise: Spread | None) -> bool:
    """Whether a ratio may be 1, or no further from it than that of a file and the same file once more."""
    band = 0.0 if noise is None else max(abs(math.log(max(end, 1e-12))) for end in (noise.low, noise.high))
    low, high = (math.log(max(end, 1e-12)) for end in (ratio.low, ratio.high))
    return low <= band and high >= -band


# ---- the machine


def usable_processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def machine_name() -> str:
    """The processor and how many of it may be used; no name of a host."""
    model = ""
    with contextlib.suppress(OSError, IndexError):
        told = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
        model = told.split("model name")[1].split(":")[1].splitlines()[0].strip()
    count = usable_processors()
    return f"{model or platform.machine()}, {count} processor{'s' if count != 1 else ''}"


@contextlib.contextmanager
def others_watched(own_seconds: Callable[[], float]) -> Iterator[list[tuple[float, float]]]:
    """Afterwards, the list holds the seconds of all processors that other programs took inside, and all there were,
    where the system tells. `own_seconds` is what our own processes have spent so far.
    """
    found: list[tuple[float, float]] = []
    before, spent = _busy_and_all(), own_seconds()
    yield found
    after, spent = _busy_and_all(), own_seconds() - spent
    if before is not None and after is not None and after[1] > before[1]:
        total = after[1] - before[1]
        found.append((min(max(after[0] - before[0] - spent, 0.0), total), total))  # Linux may take back some waiting


def share_of_others(watched: Sequence[tuple[float, float]]) -> float:
    """Of all processors' time; 0 where too little was watched: the system counts in hundredths of a second."""
    total = sum(seconds for _, seconds in watched)
    return 0.0 if total < budgets.LEAST_SECONDS_WATCHED else min(sum(taken for taken, _ in watched) / total, 1.0)


def _busy_and_all() -> tuple[float, float] | None:
    """Seconds of all processors since the start, those at work and all; asked of Linux."""
    try:
        ticks = list(map(int, Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:9]))
    except (OSError, ValueError, IndexError):
        return None
    each = os.sysconf("SC_CLK_TCK")
    return (sum(ticks) - ticks[3] - ticks[4]) / each, sum(ticks) / each
