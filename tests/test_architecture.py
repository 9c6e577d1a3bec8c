"""Rules of the house that a reader cannot see at a glance."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import anyshape

SOURCES = sorted(Path(anyshape.__file__).parent.rglob("*.py"))
PRIVATE_TORCH = re.compile(r"^torch\.(.*\.)?_(?!_)")


def _imported(tree: ast.AST) -> list[str]:
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else "?"


def test_the_public_names_are_these() -> None:
    assert sorted(anyshape.__all__) == [
        "AnyshapeError", "DeclarationError", "ExportError", "Finding", "Result", "check", "diagnose", "export",
        "inspect", "load", "make_dynamic", "translation", "watch",
    ]  # fmt: skip
    assert all(getattr(anyshape, name) is not None for name in anyshape.__all__)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_private_names_of_torch_stand_in_one_file(path: Path) -> None:
    if path.name == "private_names.py":
        return
    tree = ast.parse(path.read_text(encoding="utf-8"))
    used = [*_imported(tree), *(_dotted(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute))]
    assert [name for name in used if PRIVATE_TORCH.match(name)] == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_every_file_says_its_idea_first_and_prints_nothing(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree)
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    assert [call.id for call in calls if isinstance(call, ast.Name) and call.id in ("print", "eval", "exec")] == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_functions_are_short(path: Path) -> None:
    """Forty lines are a wall; a signature with many arguments does not count."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.end_lineno is not None:
            assert node.end_lineno - node.body[0].lineno < 50, f"{node.name} is too long"


def test_importing_the_package_imports_neither_torch_nor_onnxruntime() -> None:
    code = "import sys, anyshape, anyshape.cli; print([m for m in ('torch', 'onnxruntime') if m in sys.modules])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_without_torch_the_package_says_which_command_to_run(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError('poisoned', name='torch')")
    code = "import anyshape\ntry:\n    anyshape.export\nexcept anyshape.AnyshapeError as error:\n    print(error)"
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert ran.stdout == "anyshape.export needs torch: pip install 'anyshape[cpu]'\n"
