"""The process of one task: told on its input what to do, it answers in lines of JSON and ends.

It sets no limits itself: whoever has started it watches it from outside, where a crash cannot reach.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
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
    except (Exception, SystemExit) as error:  # noqa: BLE001  a task may raise anything, and that is its result
        return {"outcome": "defect", "cause": _line_about(error)}


def _line_about(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())


def _end_with_parent(parent: int) -> None:
    """A task without end must not outlive whoever would have stopped it."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: Linux sees to it, whatever this process does
    threading.Thread(target=_watch, args=(parent,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _most_memory() -> int:
    """Bytes at most of this process; 0 where the system does not tell.

    What a parent is told of its children (`ru_maxrss`) begins with the parent's own memory.
    """
    with contextlib.suppress(OSError, IndexError, ValueError):
        return int(Path("/proc/self/status").read_bytes().split(b"VmHWM:")[1].split()[0]) * 1024
    return 0


def _serve(parent: int) -> None:
    answers = os.dup(1)
    os.dup2(2, 1)  # what libraries print is no answer
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the parent's to answer
    _end_with_parent(parent)
    request = json.loads(sys.stdin.buffer.read())

    def send(message: dict[str, Any]) -> None:
        content = memoryview(json.dumps(message, default=str).encode() + b"\n")
        while content:
            content = content[os.write(answers, content) :]

    answer = _answer_to(request, lambda stage: send({"stage": stage}))
    send({"done": answer, "memory": _most_memory()})
    os._exit(0)  # threads and finalizers of libraries have nothing to add


if __name__ == "__main__":
    _serve(int(sys.argv[1]))
