"""Functions that are alive given other code for a while.

Closures, defaults, decorators and the objects that hold a function stay as they are; nothing of its file is executed.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import functools
import gc
import inspect
from collections.abc import Iterator, Sequence
from types import CodeType, FunctionType
from typing import Any

from anyshape.errors import AnyshapeError

Replacement = tuple[FunctionType, CodeType]
Named = dict[str, list[CodeType]]
"""The functions in a file's code by their qualified names: those of one name in the order of the text."""
_FUTURES = functools.reduce(
    int.__or__, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)


class AmbiguousFunctionError(AnyshapeError):
    """Several functions of a file go by one name, and which of them this is cannot be told."""


@contextlib.contextmanager
def running(replacements: Sequence[Replacement]) -> Iterator[None]:
    """Inside, each function runs the code beside it."""
    kept = [(function, function.__code__) for function, _ in replacements]
    try:
        _set(replacements)
        yield
    finally:
        _set(kept)


def _set(codes: Sequence[Replacement]) -> None:
    for function, code in codes:
        function.__code__ = code


def alive() -> list[FunctionType]:
    return [one for one in gc.get_objects() if type(one) is FunctionType]


def compiled(filename: str, text: str | ast.Module, functions: Sequence[FunctionType]) -> CodeType:
    """The file's code; a notebook's cell may go by what an earlier cell took from the future."""
    futures = functions[0].__code__.co_flags & _FUTURES if functions else 0
    flags = futures | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code: CodeType = compile(text, filename, "exec", flags=flags, dont_inherit=True)
    return code


def named(code: CodeType) -> Named:
    """The functions in a file's code, at any depth."""
    found: Named = {}
    for inner in _inner(code):
        if inner.co_flags & inspect.CO_OPTIMIZED:  # else it is a class's body
            found.setdefault(inner.co_qualname, []).append(inner)
    return found


def _inner(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _inner(constant)


def successor(code: CodeType, old: Named, new: Named) -> CodeType | None:
    """What became of a function: the one of its name, or of several the one at its place among them."""
    before, after = old.get(code.co_qualname, []), new.get(code.co_qualname, [])
    if len(after) < 2 and len(before) < 2:
        return after[0] if after else None
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
