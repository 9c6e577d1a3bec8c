"""A race: files, each in a process of its own, and the model in PyTorch, timed against each other at every size.

First each is asked for its results: what gives other numbers is told and does not run. Then all run in rounds, and with
them the first file once more, in another process: how far the two differ is what this machine cannot tell.
"""

from __future__ import annotations

import contextlib
import math
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx

from anyshape.onnxfile.interface import computes_narrowly
from anyshape.results.progress import Tell, count_size
from anyshape.results.times import Series, TimedPoint, TimeRatio, Times
from anyshape.results.times_text import described
from anyshape.runtime.opening import Opening
from anyshape.runtime.session import Array, RuntimeFailureError, runtime_version, unrunnable_type
from anyshape.runtime.timed_session import TimedFile, timed_file
from anyshape.runtime.timing import (
    Clock,
    Sample,
    Spread,
    clock_for,
    clocked,
    is_within_noise,
    machine_name,
    measure,
    others_watched,
    ratio_of,
    rounds_for,
    share_of_others,
    spread_of,
)
from anyshape.sizes import budgets
from anyshape.sizes.notation import Sizes
from anyshape.testbench.judgement import Tolerance, moved_by_rounding
from anyshape.testbench.timed_calls import Agreement, TimedCall, TimedCalls

Seconds = Mapping[str, Sequence[float]]

# ---- who runs


@dataclass(frozen=True)
class RaceRules:
    """How it is run, as the user asks."""

    opening: Opening
    """Of every session."""
    rounds: int | None = None
    seed: int = 0
    tolerance: Tolerance = field(default_factory=Tolerance)

    @property
    def threads(self) -> int:
        return self.opening.threads or 1

    def clock(self, calls: TimedCalls) -> Clock:
        on_cpu = calls.on_cpu and list(self.opening.providers) == ["CPUExecutionProvider"]
        return clock_for(self.threads, on_cpu=on_cpu)


@dataclass(frozen=True)
class Racers:
    """The files, open; the others are compared with the first."""

    files: Mapping[str, TimedFile]
    again: TimedFile
    """The first once more."""
    missing: tuple[str, ...] = ()
    """Sentences about files that could not be opened."""

    @property
    def first(self) -> str:
        return next(iter(self.files))

    def seconds_of_work(self) -> float:
        """What we have spent of the processors' time."""
        return time.process_time() + sum(one.process.seconds_of_work() for one in (*self.files.values(), self.again))


@contextlib.contextmanager
def opened_racers(
    files: Sequence[tuple[Path, onnx.ModelProto]], rules: RaceRules, *, trusted: bool
) -> Iterator[Racers]:
    """All files that can be opened; RuntimeFailureError where the first cannot."""
    missing: list[str] = []
    with contextlib.ExitStack() as stack:
        opened: dict[str, TimedFile] = {}
        for path, proto in files:
            try:
                with told_by_name(path, proto):
                    file = stack.enter_context(timed_file(path, proto, rules.opening, trusted=trusted))
            except RuntimeFailureError as failure:
                if not opened:
                    raise
                missing.append(str(failure))
            else:
                opened[_unlike_name(path, opened)] = file
        again = stack.enter_context(timed_file(*files[0], rules.opening, trusted=trusted))
        yield Racers(opened, again, tuple(missing))


@contextlib.contextmanager
def told_by_name(path: Path, proto: onnx.ModelProto) -> Iterator[None]:
    """Inside, a file that the runtime does not load is told by its name."""
    try:
        yield
    except RuntimeFailureError as failure:
        reason = unrunnable_type(proto, failure) or failure
        raise RuntimeFailureError(f"`{path.name}` is not loaded: {reason}") from failure


def _unlike_name(path: Path, taken: Mapping[str, Any]) -> str:
    """A name that no other file has: with its folder where it must be."""
    numbered = (f"{path.name} ({number})" for number in range(2, len(taken) + 3))
    return next(n for n in (path.name, f"{path.parent.name}/{path.name}", *numbered) if n not in taken)


# ---- one size


@dataclass(frozen=True)
class _Lap:
    """What became of one size."""

    sizes: Sizes
    feeds: Mapping[str, Array] | None = None
    seconds: Seconds = field(default_factory=dict)
    again: Sequence[float] = ()
    """The first file's once more, where anything is compared with it."""
    memory: Mapping[str, int | None] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Who did not run, and why."""
    compares_values: bool = True
    others: Sequence[tuple[float, float]] = ()
    """The processors' seconds that other programs took meanwhile, and all there were."""

    def ratios(self, index: int, first: str) -> Iterator[TimeRatio]:
        if first not in self.seconds:
            return
        for name in self.seconds:
            if name != first:
                ratio = ratio_of(self.seconds[name], self.seconds[first])
                is_noise = is_within_noise(ratio, self.noise(first))
                yield TimeRatio(name, index, ratio.median, ratio.low, ratio.high, is_noise)

    def noise(self, first: str) -> Spread | None:
        return ratio_of(self.again, self.seconds[first]) if self.again else None

    def point(self, name: str) -> TimedPoint | None:
        if name not in self.seconds:
            return None
        spread = spread_of([1000 * one for one in self.seconds[name]])
        return TimedPoint(spread.median, spread.low, spread.high, self.memory.get(name))


def _run_lap(racers: Racers, calls: TimedCalls, sizes: Sizes, rules: RaceRules, chance: random.Random) -> _Lap:
    call = calls.call_at(sizes)
    if isinstance(call, str):
        return _Lap(sizes, left_out={racers.first: call})
    left_out: dict[str, str] = {}
    outputs = _outputs_of_files(racers, call, left_out)
    expected = call.expected if call.expected is not None else outputs.get(racers.first)
    if expected is None:
        return _Lap(sizes, call.feeds, left_out=left_out)
    agreement = _agreement(racers, calls, call, rules.tolerance)
    for name, way in call.ways.items():
        if isinstance(made := way.outputs(), str):
            left_out[name] = made
        else:
            outputs[name] = made
    for name, given in outputs.items():
        is_narrow = name in racers.files and computes_narrowly(racers.files[name].proto)
        if (why := agreement.broken_by(given, expected, is_narrow=is_narrow)) is not None:
            left_out[name] = why
    running = [name for name in outputs if name not in left_out]
    with others_watched(racers.seconds_of_work) as others:
        seconds, again = _seconds_of(running, racers, call, rules.clock(calls), rules.rounds, chance)
    memory = {name: racers.files[name].memory(call.feeds) for name in running if name in racers.files}
    return _Lap(sizes, call.feeds, seconds, again, memory, left_out, agreement.compares_values, others)


def _outputs_of_files(racers: Racers, call: TimedCall, left_out: dict[str, str]) -> dict[str, Sequence[Array]]:
    outputs: dict[str, Sequence[Array]] = {}
    for name, file in racers.files.items():
        try:
            outputs[name] = file.results(call.feeds)
        except RuntimeFailureError as failure:
            left_out[name] = f"fails: {failure}"
    return outputs


def _agreement(racers: Racers, calls: TimedCalls, call: TimedCall, tolerance: Tolerance) -> Agreement:
    """With the model, or else with the first file, unless that one gives other numbers each time."""

    def moved(number: int) -> list[Array]:
        return racers.files[racers.first].results(moved_by_rounding(call.feeds, number))

    if call.expected is not None:
        return Agreement("PyTorch", moved, tolerance, calls.compares_values)
    alone = Agreement(racers.first, moved, tolerance)
    once, twice = (racers.again.results(call.feeds) for _ in range(2))
    is_steady = alone.broken_by(once, twice, is_narrow=False) is None
    return Agreement(racers.first, moved, tolerance, is_steady)


def _seconds_of(
    running: Sequence[str], racers: Racers, call: TimedCall, clock: Clock, rounds: int | None, chance: random.Random
) -> tuple[Seconds, Sequence[float]]:
    """Of all that run, and of the first file once more, where it is compared with others."""
    samples: dict[str, Sample] = {
        name: racers.files[name].sample(call.feeds, clock)
        if name in racers.files
        else clocked(call.ways[name].call, clock)
        for name in running
    }
    if racers.first in running and len(running) > 1:
        samples[_AGAIN] = racers.again.sample(call.feeds, clock)
    once = measure(samples, 1, chance)
    seconds = measure(samples, rounds or rounds_for(2 * sum(row[0] for row in once.values())), chance)
    again = seconds.pop(_AGAIN, [])
    return seconds, again


_AGAIN = "\0again"
"""No file is called so."""


# ---- all sizes


def run_race(racers: Racers, calls: TimedCalls, chosen: Sequence[Sizes], rules: RaceRules, tell: Tell) -> Times:
    """All sizes one after the other, from small to large."""
    chance, laps = random.Random(rules.seed), list[_Lap]()  # noqa: S311
    for sizes in chosen:
        tell(f"timing at {described(sizes)}" if sizes else "timing")
        laps.append(_run_lap(racers, calls, sizes, rules, chance))
        count_size(len(laps), len(chosen))
    ways = (name for lap in laps for name in (*lap.seconds, *lap.left_out))
    names = list(dict.fromkeys((*racers.files, *ways)))
    at, nodes = _nodes_of(racers, laps)
    clock = rules.clock(calls)
    ratios = (one for index, lap in enumerate(laps) for one in lap.ratios(index, racers.first))
    return Times(
        machine_name(),
        runtime_version(),
        rules.threads,
        min((len(row) for lap in laps for row in lap.seconds.values()), default=0),
        clock,
        tuple(chosen),
        tuple(Series(name, tuple(lap.point(name) for lap in laps)) for name in names),
        tuple(ratios),
        nodes,
        at,
        (
            *racers.missing,
            *_notes_on_laps(laps, racers.first),
            *_notes_on_others(share_of_others([one for lap in laps for one in lap.others]), clock),
        ),
    )


def _nodes_of(racers: Racers, laps: Sequence[_Lap]) -> tuple[int, dict[str, tuple[str, float]]]:
    """Of the first file at the largest size at which it was timed, and the place of that size."""
    timed = [index for index, lap in enumerate(laps) if racers.first in lap.seconds]
    if not timed:
        return 0, {}
    feeds = laps[timed[-1]].feeds
    assert feeds is not None
    try:
        return timed[-1], racers.files[racers.first].node_shares(feeds)
    except RuntimeFailureError:  # a provider that keeps no record
        return timed[-1], {}


def _notes_on_laps(laps: Sequence[_Lap], first: str) -> Iterator[str]:
    reasons: dict[str, list[tuple[Sizes, str]]] = {}
    for lap in laps:
        for name, why in lap.left_out.items():
            reasons.setdefault(name, []).append((lap.sizes, why))
    for name, rows in reasons.items():
        sizes, why = rows[0]
        at = f" at {described(sizes)}" if sizes else ""
        more = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
        yield f"`{name}` is not timed{at}{more}: {why}"
    if any(not lap.compares_values for lap in laps if len(lap.seconds) > 1):
        yield "results are random: only shapes and types were compared"
    noises = [noise for lap in laps if first in lap.seconds and (noise := lap.noise(first)) is not None]
    if known := [one for one in noises if math.isfinite(one.high)]:
        widest = max(max(one.high, 1 / one.low) for one in known) - 1
        yield f"two processes with `{first}` differ by up to {widest:.0%} here: what is no further apart is noise"


def _notes_on_others(share: float, clock: Clock) -> Iterator[str]:
    if share > budgets.OTHERS_TAKE_MUCH:
        told = f"other programs took {share:.0%} of the processors' time meanwhile"
        yield f"{told}: {'times are too long' if clock == 'wall' else 'caches and memory were shared with them'}"
