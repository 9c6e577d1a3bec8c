"""`anyshape export FOLDER` on the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from anyshape.cli import program

Make = Callable[[str], Any]


def _anyshape(*arguments: object) -> Result:
    return CliRunner().invoke(program, [str(argument) for argument in arguments])


def test_a_checkpoint_is_exported_to_a_folder(checkpoint: Make, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ran = _anyshape("export", checkpoint("vit"), "-o", out, "--quick", "--layout", "transformers.js", "--json")
    told = json.loads(ran.stdout)
    assert (ran.exit_code, told["verdict"], told["files"]) == (0, "checked", ["config.json", "onnx/model.onnx"])
    assert sorted(path.name for path in out.iterdir()) == ["config.json", "onnx"]
    assert ran.stderr.splitlines()[:2] == [f"loading {checkpoint('vit')}", "exporting model.onnx"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--input", "x: [batch]"], "--input is about a model in a Python file, but `{}` is a checkpoint's folder"),
        (["--weights", "w.pt"], "--weights is about a model in a Python file, but `{}` is a checkpoint's folder"),
    ],
)
def test_options_about_a_python_file_are_wrong_usage(
    arguments: list[str], said: str, checkpoint: Make, tmp_path: Path
) -> None:
    ran = _anyshape("export", checkpoint("vit"), "-o", tmp_path / "out", *arguments)
    assert ran.exit_code == 2
    assert ran.stderr.splitlines()[-1] == f"Error: {said.format(checkpoint('vit'))}"


def test_options_about_a_checkpoint_need_a_folder(tmp_path: Path) -> None:
    ran = _anyshape("export", "model.py:Net", "-o", tmp_path / "model.onnx", "--task", "fill-mask")
    assert ran.exit_code == 2
    assert ran.stderr.splitlines()[-1] == ("Error: --task is about a checkpoint's folder, which `model.py:Net` is not")


def test_a_folder_without_a_checkpoint_gets_one_sentence(tmp_path: Path) -> None:
    ran = _anyshape("export", tmp_path, "-o", tmp_path / "out")
    assert ran.exit_code == 2
    assert ran.stderr == f"error: `{tmp_path}` has no config.json, which says what model it holds\n"
