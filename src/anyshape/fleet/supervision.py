"""A task under supervision: its process is started, watched and, beyond its limits, ended; each ending is a record.

The process is a guard, which ends with its task and all that this has started, and ends those when it is told to, or
when nobody waits for it any more. Memory is asked of Linux, for all processes of the task's session; elsewhere only
time is limited.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from anyshape.fleet.result_lines import TaskRecord
from anyshape.fleet.tasks import Task
from anyshape.fleet.worker import FOLDER
from anyshape.sizes import budgets


class SupervisedTask:
    """A task whose process runs."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self._begin = time.monotonic()
        self._stage, self._heard, self._peak = "starting", b"", 0
        self.is_silent = False
        """Whether nothing more will be heard of it, so that it need not be waited for at its pipe."""
        self._answer: dict[str, Any] | None = None
        self._stopped: tuple[str, str] | None = None
        """Outcome and cause, where it was ended from here."""
        self._told_to_end = 0.0
        request = json.dumps(task.request, default=str)
        self._folder = tempfile.mkdtemp(prefix="anyshape-task-")
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  closed when the task has ended
        self._process = subprocess.Popen(
            # `-P`: a file of the working folder that is called `json.py` is not meant
            [sys.executable, "-P", "-m", "anyshape.fleet.worker"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said,
            env=_environment(task.threads, self._folder),
            start_new_session=True,
        )  # fmt: skip
        os.set_blocking(self.fileno(), False)
        with contextlib.suppress(BrokenPipeError):  # gone already: told as its ending
            self._process.stdin.write(request.encode() + b"\n")  # type: ignore[union-attr]
            self._process.stdin.flush()  # type: ignore[union-attr]

    def fileno(self) -> int:
        return self._process.stdout.fileno()  # type: ignore[union-attr]

    @property
    def session(self) -> int:
        return self._process.pid

    def look(self, memory: int) -> TaskRecord | None:
        """The record if the task is over, by itself or because it takes more than it may; `memory` is taken now."""
        self._hear()
        self._peak = max(self._peak, memory)
        limits = self.task.limits
        if self._stopped is None:
            if memory > limits.bytes:
                self._stop("out-of-memory", f"stopped at {memory / 1e9:.1f} GB, {limits.bytes / 1e9:g} GB were allowed")
            elif time.monotonic() - self._begin > limits.seconds:
                self._stop("timeout", f"stopped after {limits.seconds:g} s")
        self._end_a_guard_that_does_not()
        self._forget_what_is_said()
        return self._record_of_end()

    def tell_to_end(self) -> None:
        """The guard does so, with all that the task has started."""
        self._told_to_end = self._told_to_end or time.monotonic()
        with contextlib.suppress(OSError):
            self._process.stdin.close()  # type: ignore[union-attr]

    def end(self) -> None:
        """Without a record: nobody waits for it any more."""
        self.tell_to_end()
        with contextlib.suppress(ChildProcessError):
            while not os.waitpid(self.session, os.WNOHANG)[0]:
                self._end_a_guard_that_does_not()
                time.sleep(0.005)
        self._close(0)

    def _hear(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while len(self._heard) < budgets.LONGEST_MESSAGE:
                content = os.read(self.fileno(), 2**16)
                if not content:
                    self.is_silent = True
                    break
                self._heard += content
        *lines, self._heard = self._heard.split(b"\n")
        for line in lines:
            with contextlib.suppress(ValueError, TypeError, AttributeError, OverflowError, RecursionError):
                # what is no message says nothing
                message = json.loads(line)
                self._stage = str(message.get("stage", self._stage))
                self._answer = message.get("done", self._answer)
                self._peak = max(self._peak, int(message.get("memory", 0)))

    def _stop(self, outcome: str, cause: str) -> None:
        self._stopped = outcome, cause
        self.tell_to_end()

    def _end_a_guard_that_does_not(self) -> None:
        """A task may have stopped it; what has left its session then may be out of sight."""
        if self._told_to_end and time.monotonic() - self._told_to_end > budgets.SECONDS_OF_A_GUARD_S_END:
            for one in (*_descendants([self.session])[self.session], self.session):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(one, signal.SIGKILL)

    def _forget_what_is_said(self) -> None:
        """A task that prints for ever must not fill the disk; what follows stands behind a hole."""
        if os.fstat(self._said.fileno()).st_blocks * 512 > budgets.MOST_BYTES_OF_WORDS:
            self._said.truncate(0)

    def _record_of_end(self) -> TaskRecord | None:
        ended, status, usage = os.wait4(self.session, os.WNOHANG)
        if not ended:
            return None
        self._hear()  # what was said last
        outcome, cause, answer = self._outcome(status)
        task, named = self.task, {"tags", "report", "outcome", "cause"}
        record = TaskRecord(
            task.name, task.column, outcome, task.digest, cause,
            stage="" if self._answer is not None else self._stage,
            seconds=round(time.monotonic() - self._begin, 3),
            cpu_seconds=round(usage.ru_utime + usage.ru_stime, 3),
            memory=self._peak,
            host=platform.node(), tags=task.tags, report=str(answer.get("report", "")),
            details={name: value for name, value in answer.items() if name not in named},
        )  # fmt: skip
        self._close(os.waitstatus_to_exitcode(status))
        return record

    def _outcome(self, status: int) -> tuple[str, str, Mapping[str, Any]]:
        if isinstance(self._answer, dict) and self._answer.get("outcome"):
            return str(self._answer["outcome"]), _short_line(self._answer.get("cause", "")), self._answer
        if self._stopped is not None:
            return *self._stopped, {}
        code = os.waitstatus_to_exitcode(status)
        how = f"ended by {_signal_name(-code)}" if code < 0 else f"ended with exit code {code}"
        last = self._last_words()
        return "crashed", _short_line(f"the process {how} while {self._stage}{': ' if last else ''}{last}"), {}

    def _last_words(self) -> str:
        """The last line on stderr that says anything."""
        end = self._said.seek(0, os.SEEK_END)
        self._said.seek(max(0, end - budgets.LONGEST_CAUSE * 4))
        lines = self._said.read().decode(errors="replace").replace("\0", "").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def _close(self, code: int) -> None:
        self._process.returncode = code  # it was waited for above, with what it took
        self.tell_to_end()
        self._process.stdout.close()  # type: ignore[union-attr]
        self._said.close()
        shutil.rmtree(self._folder, ignore_errors=True)  # where its guard could not


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def _short_line(text: object) -> str:
    line = " ".join(_COLOUR.sub("", str(text)).split())
    return line if len(line) <= budgets.LONGEST_CAUSE else f"{line[: budgets.LONGEST_CAUSE - 3]}..."


def _environment(threads: int, folder: str) -> dict[str, str]:
    """The same packages as here; and no more threads than the task's share of the machine, unless the user says so."""
    paths = os.pathsep.join(entry for entry in sys.path if entry)
    return {"OMP_NUM_THREADS": str(threads), **os.environ, "PYTHONPATH": paths, FOLDER: folder}


# ---- processes, as Linux tells of them; elsewhere there are none to see


def memory_by_session(sessions: Iterable[int]) -> dict[int, int]:
    """Bytes that belong to the processes of each session, and to all below its leader, alone."""
    found = dict.fromkeys(sessions, 0)
    for session, processes in _descendants(found).items():
        for one in processes:
            with contextlib.suppress(OSError, ValueError, IndexError):  # a process may end while it is looked at
                status = Path(f"/proc/{one}/status").read_bytes()
                kinds = (b"RssAnon:", b"RssShmem:")
                found[session] += sum(int(status.split(kind)[1].split()[0]) * 1024 for kind in kinds)
    return found


def _descendants(sessions: Iterable[int]) -> dict[int, set[int]]:
    """The processes of each session, and what they have started, in whatever session that is by now."""
    members = {session: {session} for session in sessions}
    parents: dict[int, tuple[int, int]] = {}
    for place in Path("/proc").glob("[0-9]*") if members else ():
        with contextlib.suppress(OSError, ValueError, IndexError):
            _, parent, _, session = (place / "stat").read_bytes().rpartition(b")")[2].split()[:4]
            parents[int(place.name)] = int(parent), int(session)
    for process in parents:
        above, line = process, [process]
        while above in parents and parents[above][1] not in members and len(line) < len(parents):
            above = parents[above][0]
            line.append(above)
        if above in parents:
            members[parents[above][1]].update(one for one in line if one in parents)
    return members
