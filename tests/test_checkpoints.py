"""Checkpoints as a whole: the command line, and what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from anyshape import DeclarationError
from anyshape.checkpoints import export_checkpoint
from tests.checkpoints import tiny
from tests.checkpoints.refusals import refusal_of
from tests.cli.project import run


@pytest.fixture(scope="module")
def vit(tmp_path_factory) -> Path:
    return tiny.saved(tiny.vit, tmp_path_factory.mktemp("checkpoints") / "vit")


def test_a_checkpoint_is_exported_to_a_folder(vit: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ran = run("export", vit, "-o", out, "--quick", "--layout", "transformers.js", "--json")
    told = json.loads(ran.stdout)
    assert (ran.exit_code, told["verdict"], told["files"]) == (0, "checked", ["config.json", "onnx/model.onnx"])
    assert sorted(path.name for path in out.iterdir()) == ["config.json", "onnx"]
    assert ran.stderr.splitlines()[:2] == [f"loading {vit}", "exporting model.onnx"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--input", "x: [batch]"], "--input is about a model in a Python file, but `{}` is a checkpoint's folder"),
        (["--weights", "w.pt"], "--weights is about a model in a Python file, but `{}` is a checkpoint's folder"),
    ],
)
def test_options_about_a_python_file_are_wrong_usage(
    arguments: list[str], said: str, vit: Path, tmp_path: Path
) -> None:
    ran = run("export", vit, "-o", tmp_path / "out", *arguments)
    assert ran.exit_code == 2
    assert ran.stderr.splitlines()[-1] == f"Error: {said.format(vit)}"


def test_options_about_a_checkpoint_need_a_folder(tmp_path: Path) -> None:
    ran = run("export", "model.py:Net", "-o", tmp_path / "model.onnx", "--task", "fill-mask")
    assert ran.exit_code == 2
    assert ran.stderr.splitlines()[-1] == ("Error: --task is about a checkpoint's folder, which `model.py:Net` is not")


def test_a_folder_without_a_checkpoint_gets_one_sentence(tmp_path: Path) -> None:
    ran = run("export", tmp_path, "-o", tmp_path / "out")
    assert ran.exit_code == 2
    assert ran.stderr == f"error: `{tmp_path}` has no config.json, which says what model it holds\n"


def test_without_transformers_the_command_is_told(vit: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert refusal_of(vit) == (
        "`/home/vit` is a checkpoint of transformers, which is not installed: pip install transformers"
    )


def test_a_declaration_error_is_wrong_usage(vit: Path) -> None:
    with pytest.raises(DeclarationError):
        export_checkpoint(vit, vit)
