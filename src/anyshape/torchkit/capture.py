"""`torch.export`, and a record of every size that tracing assumed.

torch keeps these assumptions in its ShapeEnv without the place where they arose. Two of its methods see each one as it
is made, while the user's code is on the stack; they are wrapped for the time of a trace.
"""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sympy
import torch
from torch.fx.experimental import symbolic_shapes

from anyshape.conversion.speed.known_results import known_results
from anyshape.errors import AnyshapeError
from anyshape.source.live_code import LOCK
from anyshape.source.spans import Span
from anyshape.source.stacks import span_of_recorded_stack, span_of_stack


@dataclass(frozen=True)
class Assumption:
    """A condition on torch's symbols that the trace took for granted, and where."""

    condition: sympy.Basic
    span: Span | None


@dataclass(frozen=True)
class Specialisation:
    """A symbol that the trace replaced by a number or by other symbols, and where."""

    symbol: sympy.Symbol
    value: sympy.Basic
    span: Span | None


class Recorder:
    """What a trace assumed about sizes, in order."""

    def __init__(self) -> None:
        self.assumptions: list[Assumption] = []
        self.specialisations: list[Specialisation] = []
        self.sources: dict[sympy.Symbol, tuple[int, int | None]] = {}
        """Symbol -> index of the leaf, and its axis (None for a number)."""

    def add_guard(self, guard: Any) -> None:
        expression = getattr(guard, "expr", guard)
        if isinstance(expression, sympy.Basic):
            self.assumptions.append(Assumption(expression, _here()))

    def add_replacement(self, symbol: Any, value: Any) -> None:
        if isinstance(symbol, sympy.Symbol) and isinstance(value, sympy.Basic):
            self.specialisations.append(Specialisation(symbol, value, _here()))

    def add_symbol(self, symbol: Any, source: Any) -> None:
        place = _place(source)
        if isinstance(symbol, sympy.Symbol) and place is not None:
            self.sources.setdefault(symbol, place)


def _here() -> Span | None:
    """The user's line that is running, or the one that the graph node in work came from."""
    span = span_of_stack(sys._getframe(2))
    if span is not None and not span.path.startswith("<"):
        return span
    current: Callable[[], dict[str, Any]] = getattr(torch.fx.traceback, "get_current_meta", dict)
    stack = current().get("stack_trace")
    return span_of_recorded_stack(stack) if stack else None


def _place(source: Any) -> tuple[int, int | None] | None:
    """`L['values'][2].size()[1]` -> (2, 1), from torch's source objects."""
    axis = getattr(source, "idx", None)
    base = getattr(source, "base", None) if axis is not None else source
    index = getattr(base, "index", None)
    # the inner programs of loops have inputs of other names
    ours = getattr(getattr(base, "base", None), "local_name", None) == "values"
    return (index, axis) if ours and isinstance(index, int) else None


@contextlib.contextmanager
def recording() -> Iterator[Recorder]:
    """Inside, every assumption about sizes is recorded."""
    recorder = Recorder()
    shape_env = symbolic_shapes.ShapeEnv
    hooks: dict[str, Callable[..., None]] = {
        "_log_guard": lambda _self, _prefix, guard, *_, **__: recorder.add_guard(guard),
        "_set_replacement": lambda _self, symbol, value, *_, **__: recorder.add_replacement(symbol, value),
    }
    with LOCK, contextlib.ExitStack() as stack:
        for name, hook in hooks.items():
            stack.enter_context(wrapped(shape_env, name, hook))
        stack.enter_context(wrapped(shape_env, "create_symbol", _SymbolHook(recorder), after=True))
        yield recorder


class _SymbolHook:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def __call__(self, result: Any, _self: Any, _value: Any, source: Any = None, *_: Any, **__: Any) -> None:
        self._recorder.add_symbol(result, source)


@contextlib.contextmanager
def wrapped(owner: type, name: str, hook: Callable[..., None], *, after: bool = False) -> Iterator[None]:
    """Let `hook` see every call of a method; a torch that has no such method gives fewer records, not an error."""
    original = getattr(owner, name, None)
    if original is None:
        yield
        return

    def method(*args: Any, **kwargs: Any) -> Any:
        if not after:
            hook(*args, **kwargs)
        result = original(*args, **kwargs)
        if after:
            hook(result, *args, **kwargs)
        return result

    setattr(owner, name, method)
    try:
        yield
    finally:
        setattr(owner, name, original)


def export_program(
    module: torch.nn.Module, args: tuple[Any, ...], dynamic: list[dict[int, Any] | Any], *, strict: bool
) -> torch.export.ExportedProgram:
    """torch.export without its notion that the sizes 0 and 1 are special."""
    with quiet(), LOCK, contextlib.ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        stack.enter_context(_oblivious_to_size_one())
        stack.enter_context(known_results())
        return torch.export.export(module, args, dynamic_shapes={"values": tuple(dynamic)}, strict=strict)


@contextlib.contextmanager
def _oblivious_to_size_one() -> Iterator[None]:
    config = getattr(torch.fx.experimental, "_config", None)
    if config is None or not hasattr(config, "backed_size_oblivious"):
        yield
        return
    with config.patch(backed_size_oblivious=True):
        yield


_TALKATIVE = (
    "torch.onnx", "torch.export", "torch._export", "torch.fx", "torch._dynamo", "torch._guards", "torch._functorch",
    "torch._subclasses", "onnxscript", "onnx_ir",
)  # fmt: skip


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """What torch warns of, logs and prints is not the user's business, nor what a model prints when we run it.

    Output is redirected for the whole process, so only one thread at a time is inside.
    """
    with LOCK, contextlib.ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
        warnings.simplefilter("ignore")
        for name in _TALKATIVE:
            logger = logging.getLogger(name)
            stack.callback(logger.setLevel, logger.level)
            logger.setLevel(logging.CRITICAL)
        yield


@contextlib.contextmanager
def silent_descriptors() -> Iterator[None]:
    """The older exporter writes graphs and warnings straight to the process's descriptors, past Python."""
    with LOCK, Path(os.devnull).open("w", encoding="utf-8") as nothing:
        sys.stdout.flush()
        sys.stderr.flush()
        kept = [(number, os.dup(number)) for number in (1, 2)]
        try:
            for number, _ in kept:
                os.dup2(nothing.fileno(), number)
            yield
        finally:
            for number, copy in kept:
                os.dup2(copy, number)
                os.close(copy)


def newest_translated_opset() -> int:
    """The newest opset that torch's own translation writes."""
    constants = getattr(torch.onnx, "_constants", None)
    return int(getattr(constants, "ONNX_MAX_OPSET", 20))


def newest_torchscript_opset() -> int:
    constants = getattr(torch.onnx, "_constants", None)
    return int(getattr(constants, "ONNX_TORCHSCRIPT_EXPORTER_MAX_OPSET", 20))


def require_torch() -> None:
    """Torch 2.13 or newer, or one sentence."""
    release = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if release < (2, 13):
        raise AnyshapeError(f"anyshape needs torch 2.13 or newer, installed is {torch.__version__}")


def expression_of(number: Any) -> sympy.Basic:
    """What a number is in torch's symbols."""
    symbolic = isinstance(number, (torch.SymInt, torch.SymFloat, torch.SymBool))
    return number.node.expr if symbolic else sympy.sympify(number)


def is_same_number(left: Any, right: Any) -> bool:
    return bool(expression_of(left) == expression_of(right))
