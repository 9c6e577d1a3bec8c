"""Functions that tasks of the tests run: what ends well, and what does not."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def fine(tell, value=1, seconds=0.0):
    tell("working")
    sys.stdout.write("noise on stdout\n")
    time.sleep(seconds)
    return {"outcome": "checked", "value": value, "process": os.getpid()}


def refuse(tell):
    return {"outcome": "refused", "cause": "pinned-dim:\n `batch`\tcannot vary"}


def raise_error(tell):
    raise ValueError("no such\nmodel")


def leave(tell):
    sys.exit(3)


def interrupt(tell):
    raise KeyboardInterrupt


def crash(tell):
    tell("exporting")
    os.write(2, b"first line\nterminate called\n\n")
    os.kill(os.getpid(), signal.SIGSEGV)


def vanish(tell):
    os._exit(7)


def hang(tell):
    tell("hanging")
    os.closerange(3, 64)  # and says nothing more
    time.sleep(600)


def hang_with_child(tell, place):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(place).write_text(f"{os.getpid()} {child.pid}")
    time.sleep(600)


def leave_behind(tell, place):
    """A process in a session of its own, and one that has lost its parent, too."""
    code = "import os, sys, time; open(sys.argv[1], 'a').write(f'{os.getpid()} '); time.sleep(600)"
    subprocess.Popen([sys.executable, "-c", code, place], start_new_session=True)
    daemon = (
        f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {code!r}, {place!r}], start_new_session=True)"
    )
    subprocess.run([sys.executable, "-c", daemon], check=True)
    while len(Path(place).read_text().split() if Path(place).exists() else ()) < 2:
        time.sleep(0.05)
    os.abort()


def hang_with_stranger(tell, place):
    """A child that nobody has told of the task."""
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True, env={})
    Path(place).write_text(str(child.pid))
    time.sleep(600)


_STRANGER = """
import os, subprocess, sys, time
place, depth = sys.argv[1], int(sys.argv[2])
if depth < 2:
    subprocess.Popen([sys.executable, "-c", *sys.orig_argv[2:3], place, str(depth + 1)], env={}, start_new_session=True)
if depth:
    open(place, "a").write(f"{os.getpid()} ")
    time.sleep(600)
"""


def hang_with_strangers(tell, place):
    """A daemon and its child, of which nothing tells that they were a task's; and a file that nobody will need."""
    subprocess.run([sys.executable, "-c", _STRANGER, place, "0"], check=True)
    Path(tempfile.gettempdir(), "left").write_text("much")
    with Path(place).open("a") as file:
        file.write(f"{os.getpid()} ")
    time.sleep(600)


def end_guard(tell, number):
    os.kill(os.getppid(), number)
    time.sleep(600 if number == signal.SIGSTOP else 0.2)
    return {"outcome": "checked"}


def end_group(tell):
    os.killpg(0, signal.SIGTERM)


def fork(tell):
    """Which of two processes is the task's?"""
    if os.fork():
        time.sleep(600)
    return {"outcome": "checked"}


def forge(tell):
    """What looks like an answer, in whatever file is open."""
    said = ['{"memory": 1e400}', '{"memory": null}', '{"stage": [1]}', '{"done": 5}', "[" * 100_000, "{}", "\0"]
    for number in range(1, 20):
        with contextlib.suppress(OSError):
            os.write(number, "\n".join(said).encode() + b"\n")
    return {"outcome": "refused"}


def print_for_ever(tell):
    while True:
        os.write(2, b"x" * 99 + b"\n")


def hog_in_session(tell):
    code = "import time\nheld = [bytearray(b'x') * 20_000_000 for _ in range(40)]\ntime.sleep(60)"
    subprocess.run([sys.executable, "-c", code], check=True, start_new_session=True)


def hog(tell):
    held = []
    while True:
        held.append(bytearray(os.urandom(1)) * 20_000_000)
        time.sleep(0.01)


def hog_in_child(tell):
    code = "import time\nheld = [bytearray(b'x') * 20_000_000 for _ in range(40)]\ntime.sleep(60)"
    subprocess.run([sys.executable, "-c", code], check=True)
    return {"outcome": "checked"}


def spam(tell):
    os.write(2, b"x" * 1_000_000)
    for number in range(2000):
        tell(f"stage {number} " + "y" * 100)
    return {"outcome": "checked"}


def odd(tell):
    return {"outcome": "checked", "value": object, "report": "../../etc/passwd", "tags": ["other"], "text": "\ud800"}
