"""What a first export imports: all at once, before the user's own code, and nothing that a small model does without."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from anyshape.conversion import preparation
from anyshape.conversion.preparation import prepare

MODEL = """
import atexit, gc, json, sys

import torch

before = {"modules": list(sys.modules), "frozen": gc.get_freeze_count(), "collects": gc.isenabled()}


class Net(torch.nn.Linear):
    def __init__(self):
        super().__init__(4, 2)


@atexit.register
def tell():
    searches = gc.get_stats()[-1]["collections"]
    print(json.dumps({"before": before, "modules": list(sys.modules), "searches": searches}), file=sys.stderr)
"""

NEEDED = ("torch.export._trace", "torch._dynamo", "onnxruntime", "onnxscript.function_libs.torch_lib.ops.core")
NEEDLESS = (
    "transformers", "torchvision", "torchaudio", "timm", "scipy", "pandas", "matplotlib", "IPython", "rich", "triton",
    "torch._inductor.graph", "torch._inductor.compile_fx", "torch._inductor.lowering",
    "onnxscript.rewriter.ort_fusions", "anyshape.conversion.lifting.lifted", "anyshape.checkpoints",
)  # fmt: skip


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the process of a command says of itself, when it loads the user's file and when it ends."""
    folder = tmp_path_factory.mktemp("first")
    Path(folder, "model.py").write_text(MODEL, encoding="utf-8")
    command = [sys.executable, "-m", "anyshape", "export", "model.py:Net", "-o", "model.onnx", "--quiet"]
    options = ["--input", "input: float32[batch, 4]", "--weights", "random"]
    ran = subprocess.run([*command, *options], cwd=folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith("checked: model.onnx")
    found: dict[str, Any] = json.loads(ran.stderr.splitlines()[-1])
    return found


def test_what_every_export_needs_is_there_before_the_users_code(told: dict[str, Any]) -> None:
    assert [name for name in NEEDED if name not in told["before"]["modules"]] == []


def test_what_was_imported_is_never_searched_for_garbage(told: dict[str, Any]) -> None:
    assert told["before"]["frozen"] > 0
    assert told["before"]["collects"]
    assert told["searches"] == 0


def test_nothing_is_imported_that_a_small_model_does_without(told: dict[str, Any]) -> None:
    assert [name for name in NEEDLESS if name in told["modules"]] == []


def test_a_torch_that_has_moved_its_table_is_prepared_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(preparation, "torchs_table", lambda _opset: None)
    prepare()
    prepare(18)
    assert "torch.export._trace" in sys.modules
    assert torch.export is sys.modules["torch.export"]
