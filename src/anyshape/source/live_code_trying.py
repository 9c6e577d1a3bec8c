"""Running an edit before it is offered: inside `edited`, the functions of a file run another text.

Nothing of the file is executed. Its new text is compiled, and each function that is alive is given its new code, so
that closures, defaults, decorators and the objects that hold it stay as they are.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import gc
import io
import linecache
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from anyshape.errors import AnyshapeError
from anyshape.source import live_code
from anyshape.source.live_code import Named, Replacement
from anyshape.source.syntax import source_of
from anyshape.torchkit.state import LOCK

_Cached = type(functools.cache(lambda: None))


class CannotTryError(AnyshapeError):
    """An edit cannot be run by changing functions alone."""


@dataclass(frozen=True)
class _Trial:
    """The functions that would run other code, each with that code, and what remembers results of the old."""

    replacements: list[Replacement]
    caches: list[Any]


@contextlib.contextmanager
def edited(filename: str, new_text: str) -> Iterator[None]:
    """Inside, the functions of a file that are alive run `new_text`, and its lines read so; afterwards the old."""
    with LOCK:
        trial = _prepare(filename, new_text)
        if not all(live_code.same_closure(*one) for one in trial.replacements):
            del trial  # or what nobody else holds any more would stay
            gc.collect()
            trial = _prepare(filename, new_text)
        _require_a_trial(filename, trial.replacements)
        with _lines_of(filename, new_text), _running(trial):
            yield


def _prepare(filename: str, new_text: str) -> _Trial:
    functions, caches = _alive(filename)
    old_text = _old_text(filename)
    old, new = (live_code.named(_compiled(filename, text, functions)) for text in (old_text, new_text))
    _require_same_import(filename, old_text, new_text)
    return _Trial(_replacements(functions, old, new), caches)


def _alive(filename: str) -> tuple[list[FunctionType], list[Any]]:
    """The functions of a file, and those of `functools.cache` around them."""
    objects = [one for one in gc.get_objects() if type(one) is FunctionType or type(one) is _Cached]
    functions = [one for one in objects if type(one) is FunctionType and one.__code__.co_filename == filename]
    ours = {id(function) for function in functions}
    return functions, [one for one in objects if type(one) is _Cached and id(one.__wrapped__) in ours]


def _require_a_trial(filename: str, replacements: Sequence[Replacement]) -> None:
    if not replacements:
        raise CannotTryError(f"no function of `{filename}` that is in use would run other code")
    for function, code in replacements:
        if not live_code.same_closure(function, code):
            raise CannotTryError(f"`{function.__qualname__}` would need other variables of the function around it")


def _old_text(filename: str) -> str:
    source = source_of(filename)
    if source is None:
        raise CannotTryError(f"`{filename}` has no source that can be read")
    return source.text


def _compiled(filename: str, text: str, functions: Sequence[FunctionType]) -> CodeType:
    try:
        return live_code.compiled(filename, text, functions)
    except (SyntaxError, ValueError, RecursionError) as error:
        raise CannotTryError(f"the text of `{filename}` does not compile: {error}") from error


# ---- what runs at import


def _require_same_import(filename: str, old: str, new: str) -> None:
    """What runs at import only (constants, defaults, class bodies) would go untried."""
    if _import_of(old) != _import_of(new):
        raise CannotTryError(f"the edit changes what `{filename}` does when it is imported, not only its functions")


def _import_of(text: str) -> str:
    return ast.dump(_WithoutBodies().visit(ast.parse(text)))


class _WithoutBodies(ast.NodeTransformer):
    """Leaves of a function what runs where it is defined: decorators, defaults, annotations."""

    def _emptied(self, node: Any) -> ast.AST:
        node.body = []
        return self.generic_visit(node)

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _emptied  # noqa: N815  as ast names its nodes


# ---- which function gets which code


def _replacements(functions: Sequence[FunctionType], old: Named, new: Named) -> list[Replacement]:
    found = ((function, _successor(function.__code__, old, new)) for function in functions)
    return [
        (function, code)
        for function, code in found
        if code is not None and live_code.without_lines(code) != live_code.without_lines(function.__code__)
    ]


def _successor(code: CodeType, old: Named, new: Named) -> CodeType | None:
    try:
        return live_code.successor(code, old, new)
    except live_code.AmbiguousFunctionError as error:
        raise CannotTryError(str(error)) from error


# ---- for a while


@contextlib.contextmanager
def _running(trial: _Trial) -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        for cache in trial.caches:
            stack.callback(cache.cache_clear)  # what it remembers was computed by other code
        stack.enter_context(live_code.running(trial.replacements))
        for cache in trial.caches:
            cache.cache_clear()
        yield


@contextlib.contextmanager
def _lines_of(filename: str, text: str) -> Iterator[None]:
    """Inside, whoever asks for the file's lines (a traceback, torch.jit) sees the text that runs."""
    kept = linecache.cache.get(filename)
    # without a time of change the entry is never compared with the file
    linecache.cache[filename] = (len(text), None, list(io.StringIO(text)), filename)
    try:
        yield
    finally:
        if kept is None:
            linecache.cache.pop(filename, None)
        else:
            linecache.cache[filename] = kept
