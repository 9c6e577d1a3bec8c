"""Advice in the words of whoever asked: no message of ours names an argument to the command line, nor an option to
Python.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import anyshape
from anyshape.sizes.spelling import argument, give_calls, on_the_command_line, spelled, without_controls

HOUSE = Path(anyshape.__file__).parent
ARGUMENT = re.compile(
    r"\b(dims|sizes|where|make_inputs|budget|dtype|unchecked|custom_ops|examples|constants|task|model|narrow)=(?!=)"
)
OPTION = re.compile(r"(?<![\w-])--[a-z]")
OF_ONE_SIDE = {"cli", "fleet", "verbs"}
"""What only the command line says, and what says only what Python's own arguments are."""


def test_the_command_line_is_told_of_options_and_python_of_arguments():
    assert spelled("sizes=", "--size") == "sizes="
    assert give_calls() == "give make_inputs="
    with on_the_command_line():
        assert spelled("sizes=", "--size") == "--size"
        assert give_calls() == "define `inputs` beside the model, as a function of the sizes"
    assert spelled("sizes=", "--size") == "sizes="


def test_a_strangers_text_cannot_control_a_terminal():
    assert without_controls("a\x1b]0;b\x07\x9bc\u202e\udcff\r") == r"a\x1b]0;b\x07\x9bc\u202e\udcff\r"
    ordinary = "tab\tline\n\u65e5\u672c\u3000\xe9\xa0 \\x1b"
    assert without_controls(ordinary) == ordinary


def test_an_argument_is_called_as_its_reader_calls_it():
    assert [argument(name) for name in ("opset_version", "custom_ops", "where")] == [
        "opset_version", "custom_ops", "where",
    ]  # fmt: skip
    with on_the_command_line():
        assert [argument(name) for name in ("opset_version", "sizes", "custom_ops")] == [
            "--opset", "--size", "--custom-ops",
        ]  # fmt: skip


def unspelled(tree: ast.AST) -> list[str]:
    """Texts with an argument or an option in them that stand outside a choice between both, and are no docstrings."""
    if isinstance(tree, ast.Call) and getattr(tree.func, "id", "") == "spelled":
        return []
    if isinstance(tree, ast.Expr) and isinstance(tree.value, ast.Constant):
        return []
    found = [text for child in ast.iter_child_nodes(tree) for text in unspelled(child)]
    text = tree.value if isinstance(tree, ast.Constant) and isinstance(tree.value, str) else ""
    return [*found, text] if ARGUMENT.search(text) or OPTION.search(text) else found


def test_advice_that_differs_is_always_a_choice():
    files = [path for path in HOUSE.rglob("*.py") if path.relative_to(HOUSE).parts[0] not in OF_ONE_SIDE]
    assert {str(path): texts for path in files if (texts := unspelled(ast.parse(path.read_text())))} == {}
