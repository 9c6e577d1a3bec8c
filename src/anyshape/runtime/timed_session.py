"""A file in ONNX Runtime as users run it, in a process of its own: its results, its time, its memory and its nodes.

Of its own, so that neither PyTorch's threads nor the memory of another file are in it; inputs are sent once, and the
time is taken over there. Memory is asked of a fresh process: ONNX Runtime keeps what its runs took in a pool, so that
after the first run the process has grown by all that it took at its peak.
"""

from __future__ import annotations

import contextlib
import operator
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import onnx

from anyshape.onnxfile.temporary_folders import temporary_folder
from anyshape.runtime.confinement import FileProcess, RemoteSession, own_process
from anyshape.runtime.opening import Opening, load_runtime
from anyshape.runtime.session import (
    Array,
    Feeds,
    RuntimeFailureError,
    failures_in_short,
    recorded_events,
    refuse_missing_providers,
)
from anyshape.runtime.timing import Clock, Sample
from anyshape.sizes import budgets

_CPU = "CPUExecutionProvider"


@dataclass(frozen=True)
class TimedFile:
    """A file that is open for timing."""

    path: Path
    proto: onnx.ModelProto
    opening: Opening
    trusted: bool
    process: FileProcess
    session: RemoteSession

    def results(self, feeds: Mapping[str, Array]) -> list[Array]:
        """What it gives; RuntimeFailureError where it fails."""
        with failures_in_short():
            return list(self.session.run(None, self._own_feeds(feeds)))

    def sample(self, feeds: Mapping[str, Array], clock: Clock) -> Sample:
        """The seconds of runs on these inputs, each after one that is not timed."""
        self.session.give(self._own_feeds(feeds))
        return partial(self.session.time, clock)

    def memory(self, feeds: Mapping[str, Array]) -> int | None:
        """Bytes by which a fresh process grows over its first run; None where that tells nothing."""
        if not self.tells_memory:
            return None
        with own_process(self.path, self.proto, trusted=self.trusted) as process, failures_in_short():
            session = process.open_session(self.opening)
            session.give(self._own_feeds(feeds))
            return session.grow()

    @property
    def tells_memory(self) -> bool:
        """Not where there is no pool that keeps what was taken, nor of another device's memory."""
        arena = str(self.opening.settings.get("enable_cpu_mem_arena", "1")).lower()
        return arena in ("1", "true", "on") and list(self.opening.providers) == [_CPU]

    def node_shares(self, feeds: Mapping[str, Array]) -> dict[str, tuple[str, float]]:
        """Node -> its operator and its share of the time of all nodes, the largest first; empty where none is told."""
        with temporary_folder() as folder, failures_in_short():
            session = self.process.open_session(replace(self.opening, profile=str(folder / "run")))
            for _ in range(budgets.RUNS_PROFILED):
                session.run(None, self._own_feeds(feeds))
            session.end_profiling()
            return _shares_of(recorded_events(folder))

    def _own_feeds(self, feeds: Mapping[str, Array]) -> Feeds:
        """By name where the names agree, else in order: another exporter may have named them otherwise."""
        names = [one.name for one in self.session.get_inputs()]
        if set(names) <= set(feeds):
            return {name: feeds[name] for name in names}
        if len(names) != len(feeds):
            raise RuntimeFailureError(f"takes {len(names)} inputs ({', '.join(names)}), and {len(feeds)} are given")
        return dict(zip(names, feeds.values(), strict=True))


@contextlib.contextmanager
def timed_file(path: Path, proto: onnx.ModelProto, opening: Opening, *, trusted: bool) -> Iterator[TimedFile]:
    """The file, opened with these options; RuntimeFailureError where it cannot be."""
    refuse_missing_providers(load_runtime(), opening.providers)
    opening = replace(opening, source=str(path), spins=True)
    with own_process(path, proto, trusted=trusted) as process:
        with failures_in_short():
            session = process.open_session(opening)
        yield TimedFile(path, proto, opening, trusted, process, session)


_AROUND_OTHERS = ("If", "Loop", "Scan")
"""Their time is that of the nodes in them, which are told, too."""


def _shares_of(events: Iterable[Mapping[str, Any]]) -> dict[str, tuple[str, float]]:
    """By the medians of the runs but the first, which is slower: one node that waits for a processor takes no share."""
    runs = [Counter[tuple[str, str]]()]
    for event in events:
        kind, name = (event.get("args") or {}).get("op_name"), str(event.get("name", ""))
        if name == "model_run":
            runs.append(Counter())
        elif event.get("cat") == "Node" and name.endswith("_kernel_time") and kind not in _AROUND_OTHERS:
            runs[-1][name.removesuffix("_kernel_time"), str(kind)] += int(event.get("dur", 0))
    counted = [run for run in runs if run]
    counted = counted[1:] or counted
    nodes = dict.fromkeys(node for run in counted for node in run)
    spent = {node: statistics.median(run[node] for run in counted) for node in nodes}
    total, rows = sum(spent.values()), sorted(spent.items(), key=operator.itemgetter(1), reverse=True)
    return {name: (kind, time / total) for (name, kind), time in rows} if total else {}
