"""The process in which strangers' files run: told through pipes, in plain data, it opens sessions and runs them.

Neither side unpickles anything: a message is JSON, and behind it the bytes of the arrays that it names.
"""

from __future__ import annotations

import json
import math
import os
import signal
import struct
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from anyshape.errors import DeclarationError
from anyshape.runtime.opening import Opening
from anyshape.runtime.timing import clocked
from anyshape.sizes import budgets

# ---- messages

_LENGTH = struct.Struct("<Q")


def send(stream: IO[bytes], message: Any) -> None:
    arrays: list[np.ndarray[Any, Any]] = []
    tree = _as_tree(message, arrays)
    text = json.dumps([tree, [[array.dtype.str, array.shape] for array in arrays]]).encode()
    stream.write(_LENGTH.pack(len(text)) + text)
    for array in arrays:
        if array.size:
            stream.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    stream.flush()


def receive(stream: IO[bytes], most: float = math.inf) -> Any:
    """What the other side has sent; EOFError where it has gone, ValueError for what is no message of ours."""
    (length,) = _LENGTH.unpack(_bytes_from(stream, _LENGTH.size))
    if length > budgets.LONGEST_MESSAGE:
        raise ValueError("too long")
    tree, rows = json.loads(bytes(_bytes_from(stream, length)))
    kinds = [(np.dtype(str(kind)), tuple(int(size) for size in shape)) for kind, shape in rows]
    if any(kind.kind not in "biufc" for kind, _ in kinds) or min((n for _, s in kinds for n in s), default=0) < 0:
        raise ValueError("no array of numbers")
    if sum(kind.itemsize * math.prod(shape) for kind, shape in kinds) > most:
        raise ValueError("too large")
    arrays = []
    for kind, shape in kinds:
        content = _bytes_from(stream, kind.itemsize * math.prod(shape))
        arrays.append(np.frombuffer(content, kind).reshape(shape))
    return _from_tree(tree, arrays)


def _bytes_from(stream: IO[bytes], count: int) -> bytearray:
    content = bytearray(count)
    view, done = memoryview(content), 0
    while done < count:
        read = stream.readinto(view[done:])  # type: ignore[attr-defined]
        if not read:
            raise EOFError
        done += read
    return content


def _as_tree(value: Any, arrays: list[np.ndarray[Any, Any]]) -> Any:
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    if isinstance(value, dict):
        return {"dict": [[_as_tree(key, arrays), _as_tree(one, arrays)] for key, one in value.items()]}
    if isinstance(value, (list, tuple)):
        return [_as_tree(one, arrays) for one in value]
    array = np.frombuffer(value, np.uint8) if isinstance(value, bytes) else np.asarray(value)
    if array.dtype.kind in "OUS":
        return {"texts": [str(one) for one in array.reshape(-1)], "shape": array.shape}
    arrays.append(array)
    return {"bytes" if isinstance(value, bytes) else "array": len(arrays) - 1}


def _from_tree(tree: Any, arrays: list[np.ndarray[Any, Any]]) -> Any:
    if isinstance(tree, list):
        return [_from_tree(one, arrays) for one in tree]
    if not isinstance(tree, dict):
        return tree
    if "dict" in tree:
        return {_from_tree(key, arrays): _from_tree(one, arrays) for key, one in tree["dict"]}
    if "texts" in tree:
        return np.array(tree["texts"], dtype=object).reshape(tree["shape"])
    return arrays[tree["array"]] if "array" in tree else arrays[tree["bytes"]].tobytes()


# ---- the process


@dataclass
class _Served:
    """A session, and the inputs that its next runs are made on."""

    session: Any
    feeds: Any = None


def _answer_to(request: dict[str, Any], sessions: dict[int, _Served]) -> Any:
    for number in request["closed"]:
        sessions.pop(number, None)
    number, what = request["number"], request["what"]
    if what == "open":
        session = Opening(**request["opening"]).open()
        sessions[number] = _Served(session)
        inputs = [(one.name, one.type, one.shape) for one in session.get_inputs()]
        return inputs, [one.name for one in session.get_outputs()]
    served = sessions[number]
    if what == "run":
        return served.session.run(request["names"], request["feeds"])
    if what == "give":
        served.feeds = request["feeds"]
        return None
    if what == "time":
        return clocked(lambda: served.session.run(None, served.feeds), request["clock"])()
    return _growth_of(served) if what == "grow" else served.session.end_profiling()


def _growth_of(served: _Served) -> int | None:
    """The results are held until the process was looked at: they are a part of what a run takes."""
    before = _own_bytes()
    results = served.session.run(None, served.feeds)
    after = _own_bytes()
    del results
    return None if before is None or after is None else max(after - before, 0)


def _own_bytes() -> int | None:
    """Memory that is the process's own, without the files that it maps; asked of Linux."""
    try:
        text = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
        return int(text.split("RssAnon:")[1].split()[0]) * 1024
    except (OSError, ValueError, IndexError):
        return None


def _end_with_parent(parent: int) -> None:
    """A run without end must not outlive whoever would have stopped it."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _serve() -> None:
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print is no answer
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the parent's to answer
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    sessions: dict[int, _Served] = {}
    send(answers, "ready")
    while True:
        try:
            request = receive(requests)
        except EOFError:
            return
        try:
            answer = {"result": _answer_to(request, sessions)}
        except DeclarationError as error:
            answer = {"usage": str(error)}
        except Exception as error:  # noqa: BLE001  whatever the runtime raises is the answer
            answer = {"failure": str(error) or type(error).__name__}
        send(answers, answer)


if __name__ == "__main__":
    _serve()
