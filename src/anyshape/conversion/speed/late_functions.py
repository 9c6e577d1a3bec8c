"""The functions of onnxscript's library are read when they are used, and not all of them when it is imported.

Its import compiles some fifty functions from their source and infers the signatures of four hundred; a model uses ten.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import onnxscript

from anyshape.conversion.speed import shortcut
from anyshape.torchkit.patches import patched, replaced

_LIBRARY = "onnxscript.function_libs.torch_lib."
_MAKE = "_anyshape_make"


def _attribute_once_read(self: Any, name: str) -> Any:
    """What an unread function has not: it is read, and then has it, or nobody has."""
    make = vars(self).get(_MAKE)
    if make is None:
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
    for attribute, value in vars(make()).items():
        vars(self).setdefault(attribute, value)  # what has been set meanwhile stays
    vars(self).pop(_MAKE, None)
    return getattr(self, name)


class LateScript(onnxscript.OnnxFunction):  # type: ignore[type-arg]  # of whatever its source says
    """A function that is compiled when anybody asks for more than its name."""

    __getattr__ = _attribute_once_read


class LateTrace(onnxscript.TracedOnnxFunction):
    """A function that is called as it is, and whose signature is inferred when anybody asks for it."""

    __getattr__ = _attribute_once_read


@shortcut
@contextlib.contextmanager
def read_late() -> Iterator[None]:
    """Inside, the import of the library leaves its functions unread."""
    with replaced("onnxscript.script", _late_script), replaced("onnxscript.TracedOnnxFunction.__init__", _late_start):
        yield


def _late_script(script: Any) -> Any:
    @functools.wraps(script)
    def declare(opset: Any = None, *others: Any, **options: Any) -> Any:
        compiled = script(opset, *others, **options)

        def transform(function: Any) -> Any:
            if opset is None or not _is_of_library(function):
                return compiled(function)
            late = LateScript.__new__(LateScript)
            _begin(late, opset, function, functools.partial(compiled, function))
            late.function = function
            return late

        return transform

    return declare


def _late_start(start: Any) -> Any:
    @functools.wraps(start)
    def __init__(self: Any, opset: Any, func: Any) -> None:  # noqa: N807  it stands for that
        if type(self) is not onnxscript.TracedOnnxFunction or not _is_of_library(func):
            start(self, opset, func)
            return
        self.__class__ = LateTrace
        self.func = func
        _begin(self, opset, func, functools.partial(read, opset, func))

    def read(opset: Any, func: Any) -> Any:
        function = onnxscript.TracedOnnxFunction.__new__(onnxscript.TracedOnnxFunction)
        start(function, opset, func)
        return function

    return __init__


def _is_of_library(function: Any) -> bool:
    return str(getattr(function, "__module__", "")).startswith(_LIBRARY)


def _begin(late: Any, opset: Any, function: Any, make: Callable[[], Any]) -> None:
    """What is known of a function without reading it."""
    vars(late).update(_opset=opset, _name=function.__name__)
    functools.update_wrapper(late, function)
    vars(late)[_MAKE] = make


@contextlib.contextmanager
def domains_untold() -> Iterator[None]:
    """Inside, nobody has to be compiled to tell a domain that is asked for and used by nobody."""
    unread = SimpleNamespace(domain="")
    traced = replaced("onnxscript._internal.values.TracedOnnxFunction.function_ir", lambda _read: unread)
    with traced, patched(LateScript, "function_ir", unread):
        yield
