"""`torch.export`, and a record of every size that tracing assumed.

torch keeps these assumptions in its ShapeEnv without the place where they arose. Two of its methods see each one as it
is made, while the user's code is on the stack; they are wrapped for the time of a trace.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import sympy
import torch
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from anyshape.errors import AnyshapeError
from anyshape.source.live_code import LOCK, literals_in
from anyshape.source.sites import is_told, site_of_stack
from anyshape.source.spans import (
    Span,
    frames_of_model,
    is_librarys,
    is_ours,
    is_users,
    is_within,
    span_of_recorded_stack,
    span_of_stack,
)
from anyshape.torchkit import private_names
from anyshape.torchkit.patches import configured, heard, observed, patched, replaced
from anyshape.torchkit.silence import silent_thread
from anyshape.torchkit.state import put_back


@dataclass(frozen=True)
class RecordedAssumption:
    """A condition on torch's symbols that the trace took for granted, and where."""

    condition: sympy.Basic
    span: Span | None
    decides: bool = False
    """Whether the user's own code asked, and not torch or a library on its behalf."""


@dataclass(frozen=True)
class Specialisation:
    """A symbol that the trace replaced by a number or by other symbols, and where."""

    symbol: sympy.Symbol
    value: sympy.Basic
    span: Span | None
    literals: frozenset[int] = frozenset()
    """Integers in the code that made the number."""


@dataclass(frozen=True)
class SizeInPython:
    """A number or a text that the model's code made of a size: what becomes of it, no record tells."""

    what: str
    symbols: frozenset[sympy.Basic]
    span: Span | None
    literals: frozenset[int]
    """Integers in the code that made it: where it may decide."""


class Recorder:
    """What a trace assumed about sizes, in order."""

    def __init__(self) -> None:
        self.assumptions: list[RecordedAssumption] = []
        self.specialisations: list[Specialisation] = []
        self.sources: dict[sympy.Symbol, tuple[int, int | None]] = {}
        """Symbol -> index of the leaf, and its axis (None for a number)."""
        self.texts: dict[Span, None] = {}
        """Where the text or the memory of a value was read that the trace does not have, other than to be printed."""
        self.sizes_in_python: list[SizeInPython] = []

    def add_text(self, name: str, value: Any, *_: Any, **__: Any) -> None:
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and (frame.f_code.co_name in _WAYS_TO_TEXT or is_ours(frame.f_code.co_filename)):
            frame = frame.f_back
        # torch writes such texts all the time
        if frame is None or not is_users(frame.f_code.co_filename):
            return
        site = site_of_stack(frame)
        if site is not None and not is_told(site):
            # a loop may be traced again with numbers that are known: these come to no `__repr__`
            self.texts.pop(site.span, None)
            self.texts |= {site.span: None} if name != "__format__" and _is_unknown(value) else {}
            expression = getattr(getattr(value, "node", None), "expr", None)
            if isinstance(expression, sympy.Basic) and not _is_unknown(value):  # it says `s27`
                self._add_size("text", expression, site.span, frame)

    def add_guard(self, guard: Any) -> None:
        expression = getattr(guard, "expr", guard)
        if isinstance(expression, sympy.Basic):
            span = _span_in_work()
            self.assumptions.append(RecordedAssumption(expression, span, _asked_by_model()))
            if (maker := _number_maker()) is not None:
                self._add_size("number", expression, span, maker)

    def _add_size(self, what: str, expression: sympy.Basic, span: Span | None, frame: FrameType) -> None:
        literals = frozenset(literals_in(one.f_code for one in frames_of_model(frame)))
        self.sizes_in_python.append(SizeInPython(what, frozenset(expression.free_symbols), span, literals))

    def add_replacement(self, symbol: Any, value: Any) -> None:
        if isinstance(symbol, sympy.Symbol) and isinstance(value, sympy.Basic):
            literals = frozenset(literals_in(one.f_code for one in frames_of_model(sys._getframe(1))))
            self.specialisations.append(Specialisation(symbol, value, _span_in_work(), literals))

    def add_symbol(self, symbol: Any, source: Any) -> None:
        place = _leaf_and_axis(source)
        if isinstance(symbol, sympy.Symbol) and place is not None:
            self.sources.setdefault(symbol, place)


_WAYS_TO_TEXT = {"__format__", "__torch_function__", "handle_torch_function"}
_TEXTS = (
    *((kind, "__repr__") for kind in (torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool)),
    *((torch.Tensor, name) for name in ("__format__", "storage", "untyped_storage")),
)
"""What a trace answers for a value that it does not have, with a text or memory without it."""


def _is_unknown(value: Any) -> bool:
    """A stand-in for a tensor, or a symbol for a value."""
    if isinstance(value, torch.Tensor):
        return type(value) is not torch.Tensor
    return bool(free_unbacked_symbols(value))


def _span_in_work() -> Span | None:
    """The user's line that is running, or the one that the graph node in work came from."""
    span = span_of_stack(sys._getframe(2))
    if span is not None and not span.path.startswith("<"):
        return span
    current = private_names.lookup("torch.fx.traceback.get_current_meta")
    stack = current().get("stack_trace") if current is not None else None
    return span_of_recorded_stack(stack) if stack else None


_ASKED_THROUGH = (Path(__file__).parent, Path(torch.__file__), Path(torch.__file__).parent / "fx" / "experimental")
"""Where a question about symbols passes, whoever asks."""


def _asked_by_model() -> bool:
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and is_within(frame.f_code.co_filename, *_ASKED_THROUGH):
        frame = frame.f_back
    # libraries ask for shortcuts by the dozen, and to follow each costs a trace: their two sides are run, and no more
    return frame is not None and _is_models_own(frame)


def _is_models_own(frame: FrameType) -> bool:
    return is_users(frame.f_code.co_filename) and not is_librarys(frame.f_code.co_filename)


def _number_maker() -> FrameType | None:
    """The model's own code where it asks for a number itself, as `int(n // 7)` does, and not for the side of another on
    which it lies; through stand-ins of ours for `range` and its like.
    """
    frame: FrameType | None = sys._getframe(2)
    is_number = False
    while frame is not None and (
        is_ours(frame.f_code.co_filename) or is_within(frame.f_code.co_filename, *_ASKED_THROUGH)
    ):
        is_number = is_number or frame.f_code.co_name in ("__int__", "__index__", "__float__")
        frame = frame.f_back
    return frame if is_number and frame is not None and _is_models_own(frame) else None


def _leaf_and_axis(source: Any) -> tuple[int, int | None] | None:
    """`L['values'][2].size()[1]` -> (2, 1), from torch's source objects."""
    axis = getattr(source, "idx", None)
    base = getattr(source, "base", None) if axis is not None else source
    index = getattr(base, "index", None)
    # the inner programs of loops have inputs of other names
    ours = getattr(getattr(base, "base", None), "local_name", None) == "values"
    return (index, axis) if ours and isinstance(index, int) else None


_SHAPES = "torch.fx.experimental.symbolic_shapes.ShapeEnv"


@contextlib.contextmanager
def recording() -> Iterator[Recorder]:
    """Inside, every assumption about sizes is recorded."""
    record = Recorder()

    def add_symbol(symbol: Any, _self: Any, _value: Any, source: Any = None, *_: Any, **__: Any) -> None:
        record.add_symbol(symbol, source)

    with (
        LOCK,
        observed(f"{_SHAPES}._log_guard", lambda _self, _prefix, guard, *_, **__: record.add_guard(guard)),
        observed(f"{_SHAPES}._set_replacement", lambda _self, one, value, *_, **__: record.add_replacement(one, value)),
        observed(f"{_SHAPES}.create_symbol", add_symbol, after=True),
    ):
        yield record


@contextlib.contextmanager
def texts_noted(record: Recorder) -> Iterator[None]:
    """Inside, the record hears of texts before whoever else replaces what makes them."""
    with contextlib.ExitStack() as stack:
        for kind, name in _TEXTS:
            hook = functools.partial(record.add_text, name)
            stack.enter_context(patched(kind, name, heard(getattr(kind, name), hook)))
        yield


def export_program(
    module: torch.nn.Module, args: tuple[Any, ...], dynamic: list[dict[int, Any] | Any]
) -> torch.export.ExportedProgram:
    """torch.export without its notion that the sizes 0 and 1 are special; what it leaves in the module is put back."""
    oblivious = configured("torch.fx.experimental._config.backed_size_oblivious", value=True)
    # distributions look into their arguments only to raise, which a file does not do
    trusting = replaced("torch.distributions.Distribution._validate_args", lambda _: False)
    exporting = replaced(_EXPORTING, lambda _: True)
    with quiet(), LOCK, put_back(module), torch.no_grad(), oblivious, trusting, exporting:
        return torch.export.export(
            module, args, dynamic_shapes={"values": tuple(dynamic)} if args else None, strict=False
        )


_EXPORTING = "torch.onnx._internal.exporter._flags._is_onnx_exporting"
"""What `torch.onnx.is_in_onnx_export()` answers."""


@contextlib.contextmanager
def export_questions() -> Iterator[dict[Span, None]]:
    """Inside, a model that asks whether it is being exported hears no, and the places where it asks are noted."""
    places: dict[Span, None] = {}

    class No(int):  # nothing can be derived from bool
        def __bool__(self) -> bool:
            span = span_of_stack(sys._getframe(1))
            places.update({} if span is None else {span: None})
            return False

    with replaced(_EXPORTING, lambda _: No()):
        yield places


_TALKATIVE = (
    "torch.onnx", "torch.export", "torch._export", "torch.fx", "torch._dynamo", "torch._guards", "torch._functorch",
    "torch._subclasses", "onnxscript", "onnx_ir",
)  # fmt: skip


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """What torch warns of, logs and prints is not the user's business, nor what a model prints when we run it.

    Other threads are heard meanwhile.
    """
    with LOCK, silent_thread(_TALKATIVE):
        yield


_OPSET_AT_LEAST = 20
"""What both exporters of torch 2.13 write, where it does not say which is its newest."""


def newest_translated_opset() -> int:
    """The newest opset that torch's own translation writes."""
    return int(private_names.lookup("torch.onnx._constants.ONNX_MAX_OPSET") or _OPSET_AT_LEAST)


def newest_torchscript_opset() -> int:
    return int(private_names.lookup("torch.onnx._constants.ONNX_TORCHSCRIPT_EXPORTER_MAX_OPSET") or _OPSET_AT_LEAST)


def require_torch() -> None:
    """Torch 2.13 or newer with all that nothing works without, or one sentence."""
    release = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
    if release < (2, 13):
        raise AnyshapeError(f"anyshape needs torch 2.13 or newer, installed is {torch.__version__}")
    private_names.require()


def expression_of(number: Any) -> sympy.Basic:
    """What a number is in torch's symbols."""
    symbolic = isinstance(number, (torch.SymInt, torch.SymFloat, torch.SymBool))
    return number.node.expr if symbolic else sympy.sympify(number)


def is_same_number(left: Any, right: Any) -> bool:
    return bool(expression_of(left) == expression_of(right))
