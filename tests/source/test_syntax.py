"""From instructions to expressions, and from expressions to changes."""

from __future__ import annotations

import ast
import linecache
import textwrap
from collections.abc import Callable
from pathlib import Path
from types import CodeType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyshape.source.edits import Change
from anyshape.source.syntax import Source, source_of


def _source(text: str) -> Source:
    text = textwrap.dedent(text)
    return Source("model.py", text, ast.parse(text))


def _first(source: Source, kind: type[ast.AST], when: Callable[[ast.AST], bool] = lambda _: True) -> ast.AST:
    return next(node for node in ast.walk(source.tree) if isinstance(node, kind) and when(node))


class _Stop(Exception):
    pass


def _fail(*_: object, **__: object) -> object:
    raise _Stop


class _Anything:
    """Has every method; the last one fails."""

    def __getattr__(self, name: str) -> Callable[..., object]:
        return _fail if name == "stop" else lambda *_, **__: self

    def __add__(self, other: object) -> object:
        raise _Stop


def _raised_at(text: str) -> tuple[Source, CodeType, int]:
    """Where `f(x)` of a text raises, in its own code."""
    source = _source(text)
    names: dict[str, Callable[..., object]] = {"stop": _fail}
    exec(compile(source.text, source.filename, "exec"), names)
    with pytest.raises(_Stop) as caught:
        names["f"](_Anything())
    steps = [entry._rawentry for entry in caught.traceback]
    step = [one for one in steps if one.tb_frame.f_code.co_filename == source.filename][-1]
    return source, step.tb_frame.f_code, step.tb_lasti


@pytest.mark.parametrize(
    ("line", "expression"),
    [
        ("return 1 if stop(2, 8) else 2", "stop(2, 8)"),
        ("é = 'é日本'; return stop('日本', é) or 3", "stop('日本', é)"),
        ("return (x + 1) * 2", "x + 1"),
        ("stop(3)", "stop(3)"),
        ("return [\n        stop(4),\n        5]", "stop(4)"),
        ("return x.view(2).stop(\n        8,\n    )", "x.view(2).stop(\n        8,\n    )"),
        ("return (x\n        .view(2)\n        .stop(8) .sum())", "x\n        .view(2)\n        .stop(8)"),
        ("return 1 + (x\n        .view(2)\n        .stop(8))", "x\n        .view(2)\n        .stop(8)"),
        ("return 1 + x.view(\n        2,\n        ).stop(8)", "x.view(\n        2,\n        ).stop(8)"),
        ("return [stop(one) for one in (1, 2)]", "stop(one)"),
    ],
)
def test_an_instruction_has_its_expression(line: str, expression: str) -> None:
    source, code, instruction = _raised_at(f"def f(x):\n    {line}\n")
    node = source.node_at(code, instruction)
    assert node is not None
    assert source.text_of(node) == expression
    assert isinstance(node, ast.expr)


def test_an_instruction_of_another_text_has_none() -> None:
    _, code, instruction = _raised_at("def f(x):\n    return stop(2, 8)\n")
    assert _source("def f(x):\n    return 1\n").node_at(code, instruction) is None
    bare = code.replace(co_linetable=b"")
    assert _source("def f(x):\n    return stop(2, 8)\n").node_at(bare, instruction) is None


def test_a_change_counts_characters_from_one() -> None:
    source = _source("é = f('日本', 2)\n")
    number = _first(source, ast.Constant, lambda node: node.value == 2)
    assert source.change(number, "x.shape[0]") == Change(1, 13, 1, 14, "2", "x.shape[0]")


def test_a_change_spans_lines() -> None:
    source = _source("y = f(\n    '日', 2\n)\n")
    call = _first(source, ast.Call)
    assert source.change(call, "g()") == Change(1, 5, 3, 2, "f(\n    '日', 2\n)", "g()")


def test_a_node_without_a_place_cannot_be_changed() -> None:
    source = _source("y = f(2)\n")
    with pytest.raises(ValueError, match=r"^Load has no place in the text$"):
        source.change(_first(source, ast.Load), "")


NESTED = """
import functools

@functools.cache
def outer(n=stop(1)):
    k = [row for row in (lambda m=len('2'): m + 3)()]
    class Inner:
        size = 4
        def method(self):
            return 5
    return Inner
"""


def _constant(source: Source, value: object) -> ast.AST:
    return _first(source, ast.Constant, lambda node: node.value == value)


def test_parents_and_statements() -> None:
    source = _source(NESTED)
    five = _constant(source, 5)
    statement = source.statement_of(five)
    assert source.text_of(statement) == "return 5"
    assert source.parent_of(five) is statement
    assert source.statement_of(statement) is statement
    assert source.parent_of(source.tree) is None
    assert source.statement_of(source.tree) is None


def test_the_function_of_a_node_is_the_one_that_runs_it() -> None:
    source = _source(NESTED)
    outer = _first(source, ast.FunctionDef)
    names = {value: source.function_of(_constant(source, value)) for value in (1, "2", 3, 4, 5)}
    assert names[1] is None
    assert names["2"] is outer
    assert isinstance(names[3], ast.Lambda)
    assert names[4] is outer
    assert names[5].name == "method"
    assert source.function_of(outer) is None
    assert source.function_of(outer.decorator_list[0]) is None


@pytest.mark.parametrize(
    ("body", "values"),
    [
        ("n = 4", ["4"]),
        ("n: int = 4\nn: int\nm = 5", ["4"]),
        ("m, n = 4, 5\nm = n = 6", ["5", "6"]),
        ("(m, [n, k]), o = (1, (2, 3)), 4", ["2"]),
        ("m, *k, n = 1, 2, 3, 4", ["4"]),
        ("n, *k, m = 1, 2, 3, 4", ["1"]),
        ("m, *n = 1, 2, 3", ["1, 2, 3"]),
        ("b, n = x.shape", ["x.shape"]),
        ("m, n = *x.shape, 3", ["*x.shape, 3"]),
        ("if (n := 7) > 3:\n    n = 8\nelse:\n    n = 9", ["7", "8", "9"]),
        ("k = [n := one for one in x]", ["one"]),
        ("def g():\n    n = 1\nclass C:\n    n = 2\nk = lambda: (n := 3)", []),
        ("x.n = 3; x['n'] = 4; n += 5", []),
    ],
)
def test_what_a_local_name_is_assigned(body: str, values: list[str]) -> None:
    source = _source("n = 0\ndef f(x):\n" + textwrap.indent(body, "    "))
    found = source.assignments_of(_first(source, ast.FunctionDef), "n")
    assert [source.text_of(value) for value in found] == values


def test_what_a_lambda_and_a_file_assign() -> None:
    source = _source("n = 0\nf = lambda: (n := 3)\n")
    assert [one.value for one in source.assignments_of(source.tree, "n")] == [0]
    assert [one.value for one in source.assignments_of(_first(source, ast.Lambda), "n")] == [3]


# ---- where a source comes from


def test_a_file_is_read_as_python_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_bytes(b"\xef\xbb\xbf# \xc3\xa9\r\nn = 2\r\n")
    source = source_of(str(path))
    assert source.text == "# é\nn = 2\n"
    assert source.change(_constant(source, 2), "3") == Change(2, 5, 2, 6, "2", "3")
    path.write_bytes("# coding: latin-1\nn = 'é'\n".encode("latin-1"))
    assert source_of(str(path)).text == "# coding: latin-1\nn = 'é'\n"


def test_a_source_is_parsed_once_and_anew_after_a_change(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text("n = 2\n", encoding="utf-8")
    source = source_of(str(path))
    assert source_of(str(path)) is source
    path.write_text("n = 3\n", encoding="utf-8")
    assert source_of(str(path)).text == "n = 3\n"


@pytest.mark.parametrize("name", ["<ipython-input-3-abc>", "/tmp/ipykernel_1/2.py"])
def test_a_notebook_cell_is_known_by_its_lines(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(linecache.cache, name, (6, None, ["n = 2\n"], name))
    assert source_of(name).text == "n = 2\n"
    monkeypatch.setitem(linecache.cache, name, (6, 1.0, ["n = 3\n"], name))
    assert source_of(name).text == "n = 3\n"


@pytest.mark.parametrize("content", [b"def f(:\n", b"n = '\xff'\n", b"n = 1\x00\n"])
def test_what_does_not_parse_has_no_source(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "model.py"
    path.write_bytes(content)
    assert source_of(str(path)) is None
    assert source_of(str(tmp_path / "none.py")) is None
    assert source_of("<string>") is None


_EXPRESSIONS = st.recursive(
    st.sampled_from(["é", "'日本'", "2", "x.shape"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]} +\n\t {pair[1]})"),
        st.lists(inner, max_size=3).map(lambda parts: f"f({', '.join(parts)})"),
    ),
    max_leaves=8,
)


@given(_EXPRESSIONS)
def test_the_text_of_any_expression_is_that_expression(expression: str) -> None:
    source = _source(f"é = [\n{expression}, 1]\n")
    for node in ast.walk(source.tree):
        if isinstance(node, ast.expr):
            mode = ast.parse(f"({source.text_of(node)})", mode="eval").body
            assert ast.dump(mode).replace("Store()", "Load()") == ast.dump(node).replace("Store()", "Load()")
