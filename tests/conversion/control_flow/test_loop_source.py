"""The model's source changed in memory: which names flow through a loop, and code that does what it did."""

from __future__ import annotations

import ast
from typing import Any

import pytest

from anyshape.conversion.control_flow.loop_source import BUILTIN, EACH, LOOP, Names, names_of, rewritten_tree


def test_names_that_are_bound_first_in_a_body_do_not_flow_in() -> None:
    text = """
def forward(self, x, unused):
    y = 1
    for t in x:
        y = t + 1
        if y:
            z = y
        total += y
        last = z
    return last
"""
    function = ast.parse(text).body[0]
    assert isinstance(function, ast.FunctionDef)
    names = names_of(function.body[1], function)
    assert names.state == ("total", "z")
    assert names.last == ("last",)


def _names(text: str) -> Names:
    function = ast.parse(text).body[0]
    assert isinstance(function, ast.FunctionDef)
    loop = next(node for node in ast.walk(function) if isinstance(node, ast.For))
    return names_of(loop, function)


@pytest.mark.parametrize(
    ("text", "state", "last"),
    [
        ("def f(x, h):\n for t in x:\n  h = t + h\n return h", ("h",), ("h",)),
        ("def f(x):\n for t in x:\n  y = t\n return 1", (), ()),
        ("def f(x, out):\n for t in x:\n  out[t] = 1\n return out", ("out",), ()),
        ("def f(x):\n for t in x:\n  try:\n   y = t\n  except E:\n   pass\n return y", ("y",), ("y",)),
        ("def f(x, h):\n while h:\n  for t in x:\n   h = t\n return 1", (), ("h",)),
        ("def f(x):\n global h\n for t in x:\n  h = h + t\n return h", (), ()),
    ],
)
def test_names_that_flow_from_step_to_step_and_out(text: str, state: tuple[str, ...], last: tuple[str, ...]) -> None:
    names = _names(text)
    assert (tuple(name for name in names.state if name != "x"), names.last) == (state, last)


_CODE = """
def early(values):
    for value in values:
        if value > 2:
            return value
    return None

def total(values):
    found = 0
    for i, value in enumerate(values):
        if i == 3:
            break
        found += value
    else:
        return "all"
    return found, [v * 2 for v in values], len(values)

numbers = [n for n in range(3)]
"""


class _Plainly:
    given: Any = {}

    def __init__(self, values: Any) -> None:
        self._values = values

    def __iter__(self) -> Any:
        return iter(self._values)

    def forgives(self) -> bool:
        return False

    def left(self, value: Any) -> Any:
        return value


def test_rewritten_code_does_what_it_did() -> None:
    helpers = {
        LOOP: lambda values, *_: _Plainly(values),
        EACH: lambda values, make, *_: make(values),
        BUILTIN: lambda _name, function: function,
    }
    plain: dict[str, Any] = {}
    changed: dict[str, Any] = dict(helpers)
    exec(_CODE, plain)
    exec(compile(rewritten_tree(_CODE), "<changed>", "exec"), changed)
    for values in ([1, 2], [1, 3, 5, 7, 9], []):
        assert changed["early"](values) == plain["early"](values)
        assert changed["total"](values) == plain["total"](values)
    assert LOOP in changed["total"].__code__.co_names
    assert changed["numbers"] == plain["numbers"]
