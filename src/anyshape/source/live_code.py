"""Functions that are alive given other code for a while: how an edit is run before it is offered.

Nothing of a file is executed. Its new text is compiled, and each function that is alive is given its new code, so that
closures, defaults, decorators and the objects that hold it stay as they are.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import functools
import gc
import inspect
import io
import linecache
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from types import CodeType, FunctionType
from typing import Any

from anyshape.errors import AnyshapeError
from anyshape.source.syntax import source_of

LOCK = threading.RLock()
"""A module's state, torch's patches and the process's output are shared: one thread at a time."""

Replacement = tuple[FunctionType, CodeType]
Named = dict[str, list[CodeType]]
"""The functions in a file's code by their qualified names: those of one name in the order of the text."""


class CannotTryError(AnyshapeError):
    """An edit cannot be run by changing functions alone."""


class AmbiguousFunctionError(CannotTryError):
    """Several functions of a file go by one name, and which of them this is cannot be told."""


def alive(beside: type = FunctionType) -> list[Any]:
    """The functions that are alive, and beside them what is of another type."""
    # the collector knows all of them: those in closures, caches and registries have no other list
    return [one for one in gc.get_objects() if type(one) is FunctionType or type(one) is beside]


@contextlib.contextmanager
def running(replacements: Sequence[Replacement]) -> Iterator[None]:
    """Inside, each function runs the code beside it."""
    kept = [(function, function.__code__) for function, _ in replacements]
    try:
        _set_codes(replacements)
        yield
    finally:
        _set_codes(kept)


def _set_codes(replacements: Sequence[Replacement]) -> None:
    for function, code in replacements:
        function.__code__ = code


# ---- the code of a file, and which function of it became which


_FUTURES = functools.reduce(
    int.__or__, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)


def compiled(filename: str, text: str | ast.Module, functions: Sequence[FunctionType]) -> CodeType:
    """The file's code; a notebook's cell may go by what an earlier cell took from the future."""
    futures = functions[0].__code__.co_flags & _FUTURES if functions else 0
    # a cell may await outside of functions, and our own `from __future__` is none of the user's
    flags = futures | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code: CodeType = compile(text, filename, "exec", flags=flags, dont_inherit=True)
    return code


def named(code: CodeType) -> Named:
    """The functions in a file's code, at any depth."""
    found: Named = {}
    for inner in _codes_inside(code):
        if inner.co_flags & inspect.CO_OPTIMIZED:  # else it is a class's body
            found.setdefault(inner.co_qualname, []).append(inner)
    return found


def _codes_inside(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes_inside(constant)


def literals_in(codes: Iterable[CodeType]) -> Iterator[int]:
    """The integers that functions mention, those inside of texts included."""
    for code in codes:
        waiting: list[Any] = [code]
        while waiting:
            match waiting.pop():
                case bool() | None:
                    pass
                case int() as number:
                    yield number
                case str() as text:
                    yield from map(int, re.findall(r"[0-9]{1,7}", text))
                case tuple() | frozenset() as several:
                    waiting += several
                case CodeType() as inner:
                    waiting += inner.co_consts


def successor(code: CodeType, old: Named, new: Named) -> CodeType | None:
    """What became of a function: the one of its name, or of several the one at its place among them."""
    before, after = old.get(code.co_qualname, []), new.get(code.co_qualname, [])
    if len(after) < 2 and len(before) < 2:
        return after[0] if after else None
    # two lambdas may share a line; a function that was given other code before has another table of lines
    for identity in (lambda one: (one.co_firstlineno, one.co_linetable), lambda one: one.co_firstlineno):
        places = [place for place, one in enumerate(before) if identity(one) == identity(code)]
        if len(places) == 1 and len(before) == len(after):
            return after[places[0]]
    if [without_lines(one) for one in before] == [without_lines(one) for one in after]:
        return None
    raise AmbiguousFunctionError(f"`{code.co_filename}` defines `{code.co_qualname}` more than once")


def without_lines(code: CodeType) -> CodeType:
    """A code object that equals another if both do the same, wherever they stand in the file."""
    constants: list[Any] = [without_lines(one) if isinstance(one, CodeType) else one for one in code.co_consts]
    return code.replace(co_consts=tuple(constants), co_firstlineno=1, co_linetable=b"", co_filename="")


def same_closure(function: FunctionType, code: CodeType) -> bool:
    """A function keeps the variables that it closes over, in their order."""
    return function.__code__.co_freevars == code.co_freevars


# ---- an edit on trial


_Cached = type(functools.cache(lambda: None))


@contextlib.contextmanager
def edited(filename: str, new_text: str) -> Iterator[None]:
    """Inside, the functions of a file that are alive run `new_text`, and its lines read so; afterwards the old."""
    with LOCK:
        replacements, caches = _trial_of(filename, new_text)
        if not all(same_closure(*one) for one in replacements):
            del replacements, caches  # or what nobody else holds any more would stay
            gc.collect()
            replacements, caches = _trial_of(filename, new_text)
        _require_a_trial(filename, replacements)
        with _lines_of(filename, new_text), _without_memory(caches), running(replacements):
            yield


def _trial_of(filename: str, new_text: str) -> tuple[list[Replacement], list[Any]]:
    """The functions that would run other code, each with that code, and what remembers results of the old."""
    functions, caches = _functions_and_caches(filename)
    source = source_of(filename)
    if source is None:
        raise CannotTryError(f"`{filename}` has no source that can be read")
    try:
        old, new = (named(compiled(filename, text, functions)) for text in (source.text, new_text))
    except (SyntaxError, ValueError, RecursionError) as error:
        raise CannotTryError(f"the text of `{filename}` does not compile: {error}") from error
    # what runs at import only (constants, defaults, class bodies) would go untried
    if _what_import_runs(source.text) != _what_import_runs(new_text):
        raise CannotTryError(f"the edit changes what `{filename}` does when it is imported, not only its functions")
    return _replacements(functions, old, new), caches


def _functions_and_caches(filename: str) -> tuple[list[FunctionType], list[Any]]:
    """The functions of a file, and those of `functools.cache` around them."""
    objects = alive(beside=_Cached)
    functions = [one for one in objects if type(one) is FunctionType and one.__code__.co_filename == filename]
    ours = {id(function) for function in functions}
    return functions, [one for one in objects if type(one) is _Cached and id(one.__wrapped__) in ours]


def _replacements(functions: Sequence[FunctionType], old: Named, new: Named) -> list[Replacement]:
    found = ((function, successor(function.__code__, old, new)) for function in functions)
    return [
        (function, code)
        for function, code in found
        if code is not None and without_lines(code) != without_lines(function.__code__)
    ]


def _require_a_trial(filename: str, replacements: Sequence[Replacement]) -> None:
    if not replacements:
        raise CannotTryError(f"no function of `{filename}` that is in use would run other code")
    for function, code in replacements:
        if not same_closure(function, code):
            raise CannotTryError(f"`{function.__qualname__}` would need other variables of the function around it")


def _what_import_runs(text: str) -> str:
    return ast.dump(_WithoutBodies().visit(ast.parse(text)))


class _WithoutBodies(ast.NodeTransformer):
    """Leaves of a function what runs where it is defined: decorators, defaults, annotations."""

    def _without_body(self, node: Any) -> ast.AST:
        node.body = []
        return self.generic_visit(node)

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = _without_body  # noqa: N815  as ast names its nodes


@contextlib.contextmanager
def _without_memory(caches: Sequence[Any]) -> Iterator[None]:
    """What a cache remembers was computed by other code: it is emptied before, and again after."""
    try:
        for cache in caches:
            cache.cache_clear()
        yield
    finally:
        for cache in caches:
            cache.cache_clear()


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
