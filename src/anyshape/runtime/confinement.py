"""Running a stranger's file in a process of its own, which is stopped where it takes more memory or time than it may.

Inside `confined`, every session is opened over there. What it may take is what the file's weights take, and what is
predicted for its values: by the bytes of the inputs for the first run, by earlier runs for the next. Weights that are
mapped do not count: only memory that is the process's own.
"""

from __future__ import annotations

import contextlib
import contextvars
import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import onnx

from anyshape.errors import DeclarationError
from anyshape.onnxfile.graph import graphs_within
from anyshape.onnxfile.untrusted import external_files
from anyshape.runtime.opening import Opening
from anyshape.runtime.strangers_process import receive, send
from anyshape.sizes import budgets
from anyshape.sizes.spelling import spelled

CONFINES = True
"""Whether files are confined at all; our own tests, whose files are ours, do without."""


class StoppedError(DeclarationError):
    """A file took more than it may, or brought its process down: it cannot be judged."""


def open_runtime_session(opening: Opening) -> Any:
    """A session of ONNX Runtime, here or where the file is confined to."""
    process = _CURRENT.get()
    return opening.open() if process is None else process.open_session(opening)


_CURRENT: contextvars.ContextVar[FileProcess | None] = contextvars.ContextVar("confinement", default=None)


@contextlib.contextmanager
def confined(path: Path, model: onnx.ModelProto, *, trusted: bool) -> Iterator[None]:
    """Inside, sessions run in a process of their own, unless the file is trusted."""
    if trusted or not CONFINES:
        yield
        return
    with own_process(path, model, trusted=False) as process:
        token = _CURRENT.set(process)
        try:
            yield
        finally:
            _CURRENT.reset(token)


@contextlib.contextmanager
def own_process(path: Path, model: onnx.ModelProto, *, trusted: bool) -> Iterator[FileProcess]:
    """A process for one file, gone afterwards; without limits where the file is trusted."""
    process = FileProcess(path.name, _Weight.of(path, model), is_limited=CONFINES and not trusted)
    try:
        yield process
    finally:
        process.end()


@dataclass(frozen=True)
class _Weight:
    """What is known of a file before it runs."""

    bytes: int
    loops: bool

    @classmethod
    def of(cls, path: Path, model: onnx.ModelProto) -> _Weight:
        kinds = {node.op_type for graph in graphs_within(model.graph, *model.functions) for node in graph.node}
        stored = path.stat().st_size + sum(external_files(model, path).values())
        return cls(stored, not kinds.isdisjoint(("Loop", "Scan")))


class FileProcess:
    """Sessions of one file in a process of their own."""

    def __init__(self, name: str, weight: _Weight, *, is_limited: bool) -> None:
        self._name, self._weight, self._is_limited = name, weight, is_limited
        self._closed: list[int] = []
        self._open = self._opened = 0
        self._peak, self._slowest, self._fed, self._given = 0, 0.0, 0, 0
        """Memory and time of the runs so far, and the bytes of the largest of them."""
        self._stopped = ""
        self._limits: tuple[int, float] | None = None
        """Bytes and seconds of the request that is under way."""
        self._lock, self._work = threading.Lock(), threading.Event()
        paths = os.pathsep.join(entry for entry in sys.path if entry)
        self._process = subprocess.Popen(
            # `-P`: a file of the working folder that is called `numpy.py` is not meant
            [sys.executable, "-P", "-m", "anyshape.runtime.strangers_process"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": paths},
        )  # fmt: skip
        self._is_ready = False
        if is_limited:
            threading.Thread(target=self._watch, daemon=True).start()

    # ---- what is asked of it

    def open_session(self, opening: Opening) -> RemoteSession:
        self._opened, self._open = self._opened + 1, self._open + 1
        limits = self._most_bytes(0), budgets.SECONDS_TO_OPEN + self._weight.bytes / budgets.BYTES_READ_IN_A_SECOND
        inputs, outputs = self.ask("open", self._opened, limits, opening=vars(opening))
        return RemoteSession(self, self._opened, inputs, outputs)

    def run(self, number: int, names: Sequence[str] | None, feeds: Mapping[str, Any]) -> list[Any]:
        fed = sum(getattr(value, "nbytes", 0) for value in feeds.values())
        start = time.monotonic()
        limits = self._most_bytes(fed), self._most_seconds(fed)
        results: list[Any] = self.ask("run", number, limits, names=names, feeds=dict(feeds))
        self._slowest, self._fed = max(self._slowest, time.monotonic() - start), max(self._fed, fed)
        return results

    def give(self, number: int, feeds: Mapping[str, Any]) -> None:
        """What the next questions about time and memory are run on."""
        self._given = sum(getattr(value, "nbytes", 0) for value in feeds.values())
        self.ask("give", number, (self._most_bytes(self._given), budgets.SECONDS_TO_OPEN), feeds=dict(feeds))

    def ask_about_run(self, what: str, number: int, **further: Any) -> Any:
        """`time` or `grow`: of a run on what was given, which takes two at most."""
        return self.ask(what, number, (self._most_bytes(self._given), 2 * self._most_seconds(self._given)), **further)

    def end_profiling(self, number: int) -> None:
        # what earlier runs took, ONNX Runtime keeps for later ones
        self.ask("profile", number, (self._most_bytes(0), budgets.SECONDS_TO_OPEN))

    def close(self, number: int) -> None:
        self._closed.append(number)
        self._open -= 1

    def ask(self, what: str, number: int, limits: tuple[int, float], **further: Any) -> Any:
        with self._lock:
            closed, self._closed = self._closed, []
            try:
                if not self._is_ready:
                    receive(self._process.stdout)  # type: ignore[arg-type]
                    self._idle, self._is_ready = self._own_memory() or 0, True
                self._limits = (self._idle + limits[0], limits[1])
                self._work.set()
                request = {"what": what, "number": number, "closed": closed, **further}
                send(self._process.stdin, request)  # type: ignore[arg-type]
                answer = receive(self._process.stdout, self._limits[0] if self._is_limited else math.inf)  # type: ignore[arg-type]
            except (OSError, EOFError, ValueError) as error:
                raise StoppedError(self._reason()) from error
            finally:
                self._limits = None
                self._work.clear()
        if "usage" in answer:
            raise DeclarationError(answer["usage"])
        if "failure" in answer:
            raise RuntimeError(answer["failure"])
        return answer["result"]

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._work.set()
        for stream in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                stream.close()  # type: ignore[union-attr]

    # ---- what it may take

    def _growth(self, fed: int) -> float:
        """Values may grow with the square of what is fed; nothing is predicted before the first run."""
        return max(1.0, fed / self._fed) ** 2 if self._fed else 0.0

    def _most_bytes(self, fed: int) -> int:
        """Beyond what the process takes when it is idle."""
        weights = self._weight.bytes
        values = max(
            budgets.BYTES_OF_ANY_RUN,
            budgets.VALUES_PER_INPUT * fed,
            budgets.VALUES_PER_WEIGHT * weights,
            int(budgets.FACTOR_OF_PREDICTION * self._peak * self._growth(fed)),
        )
        copies = (self._open + 1) * budgets.COPIES_OF_PACKED_WEIGHTS
        return copies * weights + min(values, budgets.MOST_BYTES_OF_A_RUN)

    def _most_seconds(self, fed: int) -> float:
        first = budgets.SECONDS_OF_A_LOOP if self._weight.loops else budgets.SECONDS_OF_A_RUN
        reading = self._weight.bytes / budgets.BYTES_READ_IN_A_SECOND
        return first + reading + budgets.FACTOR_OF_PREDICTION * self._slowest * self._growth(fed)

    def _watch(self) -> None:
        while self._process.poll() is None:
            self._work.wait()
            started, spent = time.monotonic(), self.seconds_of_work()
            while (limits := self._limits) is not None and self._process.poll() is None:
                memory, seconds = self._own_memory() or 0, time.monotonic() - started
                self._peak = max(self._peak, memory - self._idle)
                if memory > limits[0]:
                    self._stop(f"takes more than {limits[0] / 10**9:.1f} GB in ONNX Runtime")
                # a busy machine is not the file's fault
                elif seconds > limits[1] and self.seconds_of_work() - spent > limits[1]:
                    self._stop(f"was still running after {limits[1]:.0f} s")
                time.sleep(budgets.SECONDS_BETWEEN_LOOKS)

    def _stop(self, why: str) -> None:
        self._stopped = why
        self._process.kill()

    def _reason(self) -> str:
        code = self._process.wait()
        if not self._stopped:
            return f"ONNX Runtime crashed on `{self._name}` (exit code {code}): it cannot be judged"
        said = spelled("trusted=True", "--trusted")
        return f"`{self._name}` {self._stopped} and was stopped: {said} runs it without limits"

    # ---- asked of Linux; elsewhere only time is limited

    def _own_memory(self) -> int | None:
        with contextlib.suppress(OSError, ValueError, IndexError):
            text = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii", errors="replace")
            return int(text.split("RssAnon:")[1].split()[0]) * 1024
        return None

    def seconds_of_work(self) -> float:
        """What it has spent of the processors' time."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            text = Path(f"/proc/{self._process.pid}/stat").read_text(encoding="ascii", errors="replace")
            return sum(map(int, text.rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")
        return time.monotonic()


class RemoteSession:
    """What is asked of a session of the runtime, asked over there."""

    def __init__(self, process: FileProcess, number: int, inputs: list[Any], outputs: list[str]) -> None:
        self._process, self._number = process, number
        self._inputs = [SimpleNamespace(name=name, type=kind, shape=shape) for name, kind, shape in inputs]
        self._outputs = [SimpleNamespace(name=name) for name in outputs]

    def get_inputs(self) -> list[Any]:
        return self._inputs

    def get_outputs(self) -> list[Any]:
        return self._outputs

    def run(self, names: Sequence[str] | None, feeds: Mapping[str, Any]) -> list[Any]:
        return self._process.run(self._number, names, feeds)

    def give(self, feeds: Mapping[str, Any]) -> None:
        """Inputs for what follows: they are sent once."""
        self._process.give(self._number, feeds)

    def time(self, clock: str) -> float:
        """Seconds of one run on what was given, after one that is not timed; pipes have no part in it."""
        return float(self._process.ask_about_run("time", self._number, clock=clock))

    def grow(self) -> int | None:
        """Bytes by which the process grows over one run; None where the system does not tell."""
        found: int | None = self._process.ask_about_run("grow", self._number)
        return found

    def end_profiling(self) -> None:
        """The record is where it was asked for: a name from over there is not followed."""
        self._process.end_profiling(self._number)

    def __del__(self) -> None:
        self._process.close(self._number)
