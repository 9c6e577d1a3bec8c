"""The process of one task, and its guard: told in one line what to do, it answers in lines of JSON and ends.

The guard has read nothing but this file. It ends the task, and whatever that has started, when the task is over or when
its own input ends: so it does where whoever has started it is killed. Limits are watched from outside, where a crash
cannot reach.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

TellStage = Callable[[str], None]


def _call_function(request: dict[str, Any], tell: TellStage) -> dict[str, Any]:
    module, _, name = request["function"].partition(":")
    function = getattr(importlib.import_module(module), name)
    return dict(function(tell, **request["arguments"]))


def _answer_to(request: dict[str, Any], tell: TellStage) -> dict[str, Any]:
    """What the function says; of an exception that it lets through, one line."""
    try:
        return _call_function(request, tell)
    except MemoryError as error:
        return {"outcome": "out-of-memory", "cause": _line_about(error)}
    except BaseException as error:  # noqa: BLE001  a task may raise anything, and that is its result
        return {"outcome": "defect", "cause": _line_about(error)}


def _line_about(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


def _most_memory() -> int:
    """Bytes at most of this process; 0 where the system does not tell.

    What a parent is told of its children (`ru_maxrss`) begins with the parent's own memory.
    """
    with contextlib.suppress(OSError, IndexError, ValueError):
        return int(Path("/proc/self/status").read_bytes().split(b"VmHWM:")[1].split()[0]) * 1024
    return 0


def _work_on(request: dict[str, Any], guard: int) -> None:
    """In the process of the task."""
    os.setpgid(0, 0)  # what a task sends to its own group is not meant for the guard
    _ask_linux(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: not even a guard that is killed leaves the task behind
    if os.getppid() != guard:
        os._exit(1)
    answers = os.dup(1)
    os.dup2(2, 1)  # what libraries print is no answer
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is for whoever waits for the task to answer

    own = os.getpid()

    def send(message: dict[str, Any]) -> None:
        if os.getpid() != own:  # a model has forked, and does not know in which of two it is
            return
        content = memoryview(json.dumps(message, default=str).encode() + b"\n")
        while content:
            content = content[os.write(answers, content) :]

    answer = _answer_to(request, lambda stage: send({"stage": stage}))
    send({"done": answer, "memory": _most_memory()})
    os._exit(0)  # threads and finalizers of libraries have nothing to add


# ---- the guard


def _stand_for_guard() -> None:
    """As the child of whoever waits: Ray kills those of its workers, and a guard is to see that its worker is gone."""
    guard = os.fork()
    if not guard:
        _guard_task()
    _ignore_what_is_said_to_all()
    _end_like(os.waitpid(guard, 0)[1])


def _ignore_what_is_said_to_all() -> None:
    """Who waits for us will tell us to end."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)


def _guard_task() -> None:
    request = json.loads(sys.stdin.buffer.readline())
    _ask_linux(36, 1)  # PR_SET_CHILD_SUBREAPER: whatever leaves its session and loses its parent is a child of ours
    task = os.fork()
    if not task:
        _work_on(request, os.getppid())
    _ignore_what_is_said_to_all()
    threading.Thread(target=_kill_when_nobody_waits, args=(task,), daemon=True).start()
    status = _status_of(task)
    _end_all_below(task)
    _remove_folder(os.environ.get(FOLDER, ""))
    _end_like(status)


def _ask_linux(option: int, value: int) -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value)


def _kill_when_nobody_waits(task: int) -> None:
    """The other end of our input is closed: on purpose, or by the end of its process, however that came."""
    while os.read(0, 2**16):
        pass
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(task, signal.SIGKILL)


def _status_of(task: int) -> int:
    while True:
        ended, status = os.wait()
        if ended == task:
            return status


def _end_all_below(task: int) -> None:
    """Children are ended until there are none: those of one that has ended are ours then."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(task, signal.SIGKILL)
    while found := _children():
        for one in found:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(one, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.001)


def _children() -> list[int]:
    """As Linux tells them; elsewhere a task's group is all that is known."""
    found = list[int]()
    for place in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError, ValueError):
            found += map(int, place.read_bytes().split())
    return found


FOLDER = "TMPDIR"
"""Where a task's files of a moment go: in a folder of its own, or a task that is ended would leave them for ever."""


def _remove_folder(place: str) -> None:
    try:
        Path(place).rmdir()
    except OSError:
        import shutil  # is seldom needed, and takes as long as all else here

        shutil.rmtree(place, ignore_errors=True)


def _end_like(status: int) -> None:
    """As the task has ended: that is what is asked about us."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # one core of one crash
        with contextlib.suppress(OSError, ValueError):  # SIGKILL has no handler to take away
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 1)


if __name__ == "__main__":
    _stand_for_guard()
