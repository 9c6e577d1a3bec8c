"""Inside `edited` a file's functions run another text; afterwards nothing has happened."""

from __future__ import annotations

import gc
import importlib.util
import inspect
import linecache
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from anyshape.source.live_code import CannotTryError, edited, literals_in
from anyshape.source.syntax import source_of


class _File:
    """A file that was imported."""

    def __init__(self, path: Path, text: str) -> None:
        self.text = textwrap.dedent(text).lstrip("\n")
        self.name = str(path)
        path.write_text(self.text, encoding="utf-8")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        self.module: Any = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.module)

    def edited(self, old: str, new: str, count: int = -1) -> Any:
        assert old in self.text
        return edited(self.name, self.text.replace(old, new, count))


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Any]:
    files: list[_File] = []

    def make(text: str) -> _File:
        files.append(_File(tmp_path / f"users_{len(files)}.py", text))
        return files[-1]

    yield make
    # functions of files that are gone must not be found by a later test
    files.clear()
    gc.collect()


KINDS = """
import dataclasses, functools
from torch import nn

def doubled(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return 2 * function(*args, **kwargs)
    return wrapper

def with_offset(offset):
    def decorate(function):
        def wrapper(x):
            return function(x) + offset
        return wrapper
    return decorate

def plain(x, y=1, *, z=2):
    return x + y + z + 100

@doubled
def decorated(x):
    return x + 100

@with_offset(5)
def offset(x):
    return x + 100

@functools.lru_cache
def cached(x):
    return x + 100

class Base:
    def go(self, x):
        return x

class Child(Base):
    def go(self, x):
        return super().go(x) + 100

    @property
    def size(self):
        return 100

    @size.setter
    def size(self, value):
        self.value = value + 7

    @staticmethod
    def still(x):
        return x + 100

    @classmethod
    def of(cls, x):
        return x + 100

@dataclasses.dataclass(slots=True)
class Record:
    x: int
    def go(self):
        return self.x + 100

class Kept:
    def __init__(self):
        self.act = lambda x: x + 100
        self.other = lambda x: x - 1; self.third = lambda x: x - 100

def looped(xs):
    return [x + 100 for x in xs], {x + 100 for x in xs}, sum(x + 100 for x in xs), (lambda x: x + 100)(xs[0])

def nested(x):
    def inner(y):
        return x + y + 100
    return inner(1)

def generated(x):
    yield x + 100

def counter():
    count = 0
    def step():
        nonlocal count
        count += 100
        return count
    return step
"""


def test_every_kind_of_function_runs_the_new_text(load: Any) -> None:
    file = load(KINDS)
    users = file.module
    child, record, kept = users.Child(), users.Record(1), users.Kept()

    def results() -> dict[str, Any]:
        return {
            "plain": users.plain(1),
            "defaults": users.plain(1, 5, z=6),
            "decorated": users.decorated(1),
            "offset": users.offset(1),
            "cached": users.cached(1),
            "super": child.go(1),
            "property": child.size,
            "static": child.still(1),
            "class": child.of(1),
            "slots": record.go(),
            "lambda": kept.act(1),
            "same line": (kept.other(1), kept.third(1)),
            "comprehensions": users.looped([1]),
            "nested": users.nested(1),
            "generator": list(users.generated(1)),
        }

    before = results()
    with file.edited("100", "200"):
        assert results() == {
            "plain": 204,
            "defaults": 212,
            "decorated": 402,
            "offset": 206,
            "cached": 201,
            "super": 201,
            "property": 200,
            "static": 201,
            "class": 201,
            "slots": 201,
            "lambda": 201,
            "same line": (0, -199),
            "comprehensions": ([201], {201}, 201, 201),
            "nested": 202,
            "generator": [201],
        }
    assert results() == before


def test_a_closure_keeps_its_variables(load: Any) -> None:
    file = load(KINDS)
    step = file.module.counter()
    assert step() == 100
    with file.edited("count += 100", "count += 1"):
        assert [step(), step()] == [101, 102]
    assert step() == 202


def test_the_old_code_is_back_after_an_exception(load: Any) -> None:
    file = load(KINDS)
    code = file.module.plain.__code__
    with pytest.raises(ZeroDivisionError), file.edited("z + 100", "z + 1 / 0"):
        file.module.plain(1)
    assert file.module.plain.__code__ is code
    assert file.module.plain(1) == 104


def test_lines_read_as_the_text_that_runs(load: Any) -> None:
    file = load(KINDS)
    assert "z + 100" in inspect.getsource(file.module.plain)
    with file.edited("z + 100", "z + 200"):
        assert "z + 200" in inspect.getsource(file.module.plain)
        assert "z + 200" in source_of(file.name).text
    assert "z + 100" in inspect.getsource(file.module.plain)
    assert source_of(file.name).text == file.text


def test_edits_nest(load: Any) -> None:
    file = load(KINDS)
    with file.edited("z + 100", "z + 200"):
        with file.edited("size(self):\n        return 100", "size(self):\n        return 300"):
            assert (file.module.plain(1), file.module.Child().size) == (104, 300)
        assert (file.module.plain(1), file.module.Child().size) == (204, 100)
    assert file.module.plain(1) == 104


def test_lines_may_come_and_go(load: Any) -> None:
    file = load(KINDS)
    kept = file.module.Kept()
    with file.edited("    return x + y + z + 100\n", "    w = x\n    n = w + y\n\n    return n + z + 200\n"):
        assert file.module.plain(1) == 204
        assert kept.third(1) == -99


def test_functions_of_another_file_stay(load: Any) -> None:
    file, other = load(KINDS), load(KINDS)
    with file.edited("100", "200"):
        assert (file.module.plain(1), other.module.plain(1)) == (204, 104)


def test_a_notebook_cell_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    name, text = "<ipython-input-3-abc>", "def f(x):\n    return x + 100\n"
    monkeypatch.setitem(linecache.cache, name, (len(text), None, text.splitlines(keepends=True), name))
    names: dict[str, Any] = {}
    exec(compile(text, name, "exec"), names)
    with edited(name, text.replace("100", "200")):
        assert names["f"](1) == 201
    assert names["f"](1) == 101
    assert linecache.getline(name, 2) == "    return x + 100\n"


def test_what_a_cell_takes_from_the_future_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    name, text = "<ipython-input-4-abc>", "def f(x):\n    def g(y: undefined): return y + x\n    return g(100)\n"
    monkeypatch.setitem(linecache.cache, name, (len(text), None, text.splitlines(keepends=True), name))
    names: dict[str, Any] = {}
    exec(compile("from __future__ import annotations\n" + text, name, "exec"), names)
    with edited(name, text.replace("100", "200")):
        assert names["f"](1) == 201


MODEL = """
import torch
from torch import nn

class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x):
        return self.linear(x.view(2, -1, 4))
"""


def test_export_sees_the_new_code(load: Any) -> None:
    file = load(MODEL)
    torch.manual_seed(0)
    model, x = file.module.Head().eval(), torch.randn(2, 5, 4)
    shapes = ({0: torch.export.Dim.DYNAMIC},)
    with pytest.raises(Exception, match="specialized"):
        torch.export.export(model, (x,), dynamic_shapes=shapes)
    with file.edited("view(2,", "view(x.shape[0],"):
        for strict in (False, True):
            program = torch.export.export(model, (x,), dynamic_shapes=shapes, strict=strict)
            assert program.module()(torch.randn(7, 5, 4)).shape == (7, 5, 3)
        assert model(torch.randn(3, 5, 4)).shape == (3, 5, 3)
    with pytest.raises(RuntimeError):
        model(torch.randn(3, 5, 4))


# ---- what cannot be tried


def _refusal(name: str, text: str) -> str:
    with pytest.raises(CannotTryError) as caught, edited(name, text):
        pass
    return str(caught.value)


def test_a_trial_is_never_a_no_op(load: Any) -> None:
    file = load(KINDS)
    nothing = f"no function of `{file.name}` that is in use would run other code"
    assert _refusal(file.name, file.text) == nothing
    assert _refusal(file.name, "# a line more\n" + file.text) == nothing


def test_a_function_that_nobody_holds_cannot_be_tried(load: Any) -> None:
    file = load("def f(x):\n    return x + 100\ndel f\n")
    assert _refusal(file.name, file.text.replace("100", "200")) == (
        f"no function of `{file.name}` that is in use would run other code"
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [("y=1", "y=2"), ("class Base:", "class Base:\n    size = 3"), ("@with_offset(5)", "@with_offset(6)")],
)
def test_what_runs_at_import_cannot_be_tried(load: Any, old: str, new: str) -> None:
    file = load(KINDS)
    assert _refusal(file.name, file.text.replace(old, new).replace("z + 100", "z + 200")) == (
        f"the edit changes what `{file.name}` does when it is imported, not only its functions"
    )


def test_other_variables_of_the_function_around_cannot_be_tried(load: Any) -> None:
    file = load("def make(a, b):\n    def inner(x):\n        return x + a\n    return inner\n")
    text = file.text.replace("x + a", "x + a + b")
    inner = file.module.make(1, 2)
    assert _refusal(file.name, text) == "`make.<locals>.inner` would need other variables of the function around it"
    assert inner(1) == 2
    del inner
    with edited(file.name, text):
        assert file.module.make(1, 2)(1) == 4


def test_a_closure_that_is_only_garbage_does_not_count(load: Any) -> None:
    file = load("def make(a, b):\n    def inner(x):\n        return x + a\n    inner.me = inner\n    return inner\n")
    gc.disable()
    try:
        file.module.make(1, 2)
        with edited(file.name, file.text.replace("x + a", "x + a + b")):
            assert file.module.make(1, 2)(1) == 4
    finally:
        gc.enable()


def test_functions_of_one_name_are_told_apart_by_their_place(load: Any) -> None:
    file = load("fs = [lambda: 1, lambda: 1]\nf = fs[0]\n")
    with edited(file.name, "fs = [lambda: 1, lambda: 2]\nf = fs[0]\n"):
        assert [f() for f in file.module.fs] == [1, 2]
    # the file was written anew meanwhile: which was which cannot be told
    Path(file.name).write_text("\n\nfs = [lambda: 1, lambda: 1]\nf = fs[0]\n", encoding="utf-8")
    assert _refusal(file.name, "\n\nfs = [lambda: 1, lambda: 2]\nf = fs[0]\n") == (
        f"`{file.name}` defines `<lambda>` more than once"
    )


def test_a_text_that_does_not_compile_cannot_be_tried(load: Any) -> None:
    file = load("def f(x):\n    return x\n")
    assert _refusal(file.name, "def f(x):\n    return x x\n").startswith(
        f"the text of `{file.name}` does not compile: invalid syntax"
    )
    assert _refusal("<string>", "") == "`<string>` has no source that can be read"


def test_one_thread_at_a_time(load: Any) -> None:
    file = load(KINDS)
    seen: list[int] = []

    def try_it() -> None:
        with file.edited("100", "300"):
            seen.append(file.module.plain(1))

    thread = threading.Thread(target=try_it)
    with file.edited("100", "200"):
        thread.start()
        thread.join(0.2)
        assert seen == []
        assert file.module.plain(1) == 204
    thread.join()
    assert seen == [304]
    assert file.module.plain(1) == 104


def test_the_integers_of_code_are_those_of_its_texts_and_inner_functions_too() -> None:
    def outer(n: int) -> object:
        def inner(k: int) -> bool:
            return k in (11, 13) or k in {17, 31}

        return inner(n) and f"{n} of 19" == "23" and n > 29.5 and True

    assert {11, 13, 17, 19, 23} <= set(literals_in([outer.__code__]))
    assert not {29, True} & set(literals_in([outer.__code__]))
