from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile

import pytest

from anyshape.fleet.worker import FOLDER, _answer_to


def answers(function: str, **arguments) -> list[dict]:
    """What a process answers that is started by hand, with all that it prints."""
    request = json.dumps({"function": f"tests.fleet.work:{function}", "arguments": arguments})
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "anyshape.fleet.worker"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), FOLDER: tempfile.mkdtemp()},
    ) as process:  # fmt: skip
        process.stdin.write(request + "\n")
        process.stdin.flush()  # and open: at its end nobody would wait for an answer
        said = process.stdout.read()
    assert process.returncode == 0
    return [json.loads(line) for line in said.splitlines()]


def test_answers_stand_alone_whatever_is_printed() -> None:
    stage, done = answers("fine", value=4)
    assert stage == {"stage": "working"}
    assert done["done"] | {"process": 0} == {"outcome": "checked", "value": 4, "process": 0}


@pytest.mark.parametrize(
    ("function", "answer"),
    [
        ("raise_error", {"outcome": "defect", "cause": "ValueError: no such model"}),
        ("leave", {"outcome": "defect", "cause": "SystemExit: 3"}),
        ("interrupt", {"outcome": "defect", "cause": "KeyboardInterrupt:"}),
        ("refuse", {"outcome": "refused", "cause": "pinned-dim:\n `batch`\tcannot vary"}),
    ],
)
def test_what_a_function_raises_is_its_answer(function: str, answer: dict) -> None:
    assert _answer_to({"function": f"tests.fleet.work:{function}", "arguments": {}}, lambda _: None) == answer


def test_memory_that_python_cannot_have_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.fleet import work

    def raise_memory_error(tell):
        raise MemoryError

    monkeypatch.setattr(work, "fine", raise_memory_error)
    found = _answer_to({"function": "tests.fleet.work:fine", "arguments": {}}, lambda _: None)
    assert found == {"outcome": "out-of-memory", "cause": "MemoryError:"}
