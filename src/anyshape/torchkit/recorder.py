"""The recorder of eager runs: what a module does when it is called, seen on two floors.

Functions are what Python calls: a recurrent layer is one call there, however many steps it takes, and a value that code
looks at is read there. Operators are what torch makes of them: every result on the way passes there. A record is a mode
that hears of each call on its floor; what a run returns is never changed.
"""

from __future__ import annotations

import contextlib
import functools
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import dlpack
from torch.utils.weak import WeakIdKeyDictionary

from anyshape.sizes import budgets
from anyshape.source.sites import Site, is_told, site_of_stack
from anyshape.source.spans import Extent, Span, extent_of, frames_of_model, is_outer, span_of_stack
from anyshape.torchkit.operator_mode import OperatorMode
from anyshape.torchkit.private_names import pytree
from anyshape.torchkit.schemas import schema_of, writes


class FunctionRecorder(TorchFunctionMode):
    """Hears of every call of a torch function, before it and after it; `frame` is the caller's."""

    def before(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], frame: FrameType) -> None: ...

    def after(
        self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any, frame: FrameType
    ) -> None: ...

    def failed(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None: ...

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        del types
        kwargs = kwargs or {}
        if torch.compiler.is_dynamo_compiling():  # by torch.cond and its like, and then of this very code
            return func(*args, **kwargs)
        frame = sys._getframe(1)
        self.before(func, args, kwargs, frame)
        try:
            result = func(*args, **kwargs)
        except BaseException:
            self.failed(func, args, kwargs)
            raise
        self.after(func, args, kwargs, result, frame)
        return result


class OperatorRecorder(OperatorMode):
    """Hears of every operator that torch dispatches, after it has run."""

    def after(self, func: Any, args: Any, kwargs: Mapping[str, Any], result: Any, frame: FrameType) -> None: ...

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        self.after(func, args, kwargs, result, sys._getframe(1))
        return result


# ---- every call of a function


@dataclass(frozen=True, eq=False)
class Call:
    """One call of a torch function from the model's code or from a layer's.

    Tensors are held, so that they can be told apart by identity.
    """

    function: Callable[..., Any]
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    site: Site | None
    results: list[torch.Tensor] = field(default_factory=list)
    values: tuple[torch.Tensor, ...] = ()
    """Copies of the results, since a later call may write to them; where they were asked for."""

    @property
    def name(self) -> str:
        """`softmax`, `view`, `__setitem__`; a property such as `x.T` by its own name."""
        owner = getattr(self.function, "__self__", None)
        plain = self.function.__name__
        return str(getattr(owner, "__name__", "")) if plain == "__get__" else str(plain)

    @property
    def span(self) -> Span | None:
        return None if self.site is None else self.site.span

    @property
    def arguments(self) -> tuple[torch.Tensor, ...]:
        return tuple(tensors_in((self.args, self.kwargs)))

    @property
    def names_axes(self) -> bool:
        """Whether an argument may be an axis: a whole number beside the tensors, or several."""
        return any(map(_may_be_axes, (*self.args[1:], *self.kwargs.values())))


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in what functions of torch take and give."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from tensors_in(part)
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))
    elif isinstance(value, slice):
        yield from tensors_in((value.start, value.stop, value.step))


def _may_be_axes(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return bool(value) and all(map(_may_be_axes, value))
    return isinstance(value, int) and not isinstance(value, bool)


class CallTrack:
    """The calls of a run in order, and which of them made each tensor."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._makers: dict[int, Call] = {}

    def maker_of(self, tensor: torch.Tensor) -> Call | None:
        return self._makers.get(id(tensor))

    def note_call(self, call: Call) -> None:
        self.calls.append(call)
        for result in call.results:
            self._makers.setdefault(id(result), call)  # what works in place returns what it was given


class CallRecorder(FunctionRecorder):
    """Notes every call in a track."""

    def __init__(self, track: CallTrack) -> None:
        super().__init__()
        self._track = track
        self.running: list[Call] = []
        """Those that have not ended, the outermost first."""

    def before(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], frame: FrameType) -> None:
        self.running.append(Call(func, args, kwargs, site_of_stack(frame)))

    def failed(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        del func, args, kwargs
        self.running.pop()

    def after(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any, frame: FrameType) -> None:
        del func, args, kwargs, frame
        call = self.running.pop()
        call.results.extend(tensors_in(result))
        self._track.note_call(call)


def track_calls(run: Callable[[], Any]) -> CallTrack:
    """The calls of a run."""
    track = CallTrack()
    with CallRecorder(track):
        run()
    return track


# ---- calls with the values that they gave


class _Following(FunctionRecorder):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Call] = []
        self._bytes = 0

    def after(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any, frame: FrameType) -> None:
        results = list(_given_or_written(result, args))
        if not results or self._bytes > budgets.MOST_BYTES_RECORDED:
            return
        values = () if is_outer(frame.f_code.co_filename) else tuple(value.detach().clone() for value in results)
        self._bytes += sum(value.numel() * value.element_size() for value in values)
        self.calls.append(Call(func, args, kwargs, site_of_stack(frame), results, values))


def _given_or_written(result: Any, args: Sequence[Any]) -> Iterator[torch.Tensor]:
    """What came out; of a function that writes to its first argument that one, and what it is a view of."""
    first = args[0] if args and isinstance(args[0], torch.Tensor) else None
    yield from tensors_in(first if result is None else result)
    if first is not None and (result is None or result is first) and first._base is not None:
        yield first._base


def followed(run: Callable[[], Any]) -> tuple[Any, list[Call]]:
    """What `run` returns, and its calls in order with values; only the first of them where they hold very much."""
    with _Following() as mode:
        result = run()
    return result, mode.calls


# ---- floating results of operators


class _FloatingResults(OperatorRecorder):
    def __init__(self) -> None:
        super().__init__()
        self.results: list[tuple[Span, torch.Tensor]] = []

    def after(self, func: Any, args: Any, kwargs: Mapping[str, Any], result: Any, frame: FrameType) -> None:
        del func, args, kwargs
        span = span_of_stack(frame)
        if span is not None:
            for value in pytree.tree_leaves(result):
                if isinstance(value, torch.Tensor) and value.is_floating_point():
                    self.results.append((span, value.detach().clone()))


def floating_results(run: Callable[[], Any]) -> list[tuple[Span, torch.Tensor]]:
    """All floating results of `run` in order, each with its place."""
    mode = _FloatingResults()
    with mode:
        run()
    return mode.results


class _NanWatch(OperatorRecorder):
    found = False

    def after(self, func: Any, args: Any, kwargs: Mapping[str, Any], result: Any, frame: FrameType) -> None:
        del kwargs, frame
        results = [value for value in tensors_in(result) if value.is_floating_point()]
        self.found = self.found or any(bool(value.isnan().any()) for value in results)
        name = getattr(getattr(func, "overloadpacket", None), "__name__", "")
        # no integer is infinite: which one is made of it, every machine has its own answer
        makes_integers = name == "_to_copy" and not (results or result.dtype == torch.bool)
        if "grid_sampler" in name or makes_integers:
            # the weights of its neighbours are differences of places, which nobody sees: those of infinite ones are NaN
            self.found = self.found or not all(bool(value.isfinite().all()) for value in tensors_in(args))


def meets_nan(run: Callable[[], Any]) -> bool:
    """Whether an operator of `run` gives a NaN, or has one inside."""
    watch = _NanWatch()
    with watch:
        run()
    found: bool = watch.found
    return found


# ---- reads: Python code that looks into a tensor

_READS = {
    "__bool__", "__int__", "__float__", "__index__", "__complex__", "__contains__", "item", "tolist", "numpy",
    "__array__", "__dlpack__", "data_ptr", "const_data_ptr", "equal", "allclose", "is_nonzero", "__repr__",
    "__format__", "untyped_storage", "storage",
}  # fmt: skip
"""What Python code calls to see a value. What an operator looks at by itself stays inside that operator."""

ReadPath = tuple[tuple[CodeType, Extent], ...]
"""The expressions of the model's own code that led to a read, the innermost first."""

_extent_at = functools.lru_cache(maxsize=4096)(extent_of)


class TooManyReadsError(Exception):
    """Code looked into tensors more often than it may: the model itself might have gone on, or for ever."""

    def __init__(self, most: float) -> None:
        super().__init__(f"stopped by anyshape after {most:,} looks into tensors, as a loop without end")


@dataclass
class _ReadWatch:
    """What was read so far; a read inside of another is a part of it."""

    most: float
    count: int = 0
    paths: set[ReadPath] = field(default_factory=set)
    is_reading: bool = False

    def read(self, original: Callable[..., Any], frame: FrameType, args: Any, kwargs: Any) -> Any:
        frames = frames_of_model(frame)
        self.paths.add(tuple((one.f_code, _extent_at(one.f_code, one.f_lasti)) for one in frames))
        self.count, self.is_reading = self.count + 1, True
        try:
            if self.count > self.most:
                raise TooManyReadsError(self.most)
            return original(*args, **kwargs)
        finally:
            self.is_reading = False


_WATCHES: list[_ReadWatch] = []
"""The watch of the call that runs, if any."""


def _watched_method(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def method(*args: Any, **kwargs: Any) -> Any:
        if not _WATCHES or _WATCHES[-1].is_reading:
            return original(*args, **kwargs)
        return _WATCHES[-1].read(original, sys._getframe(1), args, kwargs)

    return method


_READ_PLACES: list[tuple[Any, str]] = [
    *((torch.Tensor, name) for name in (*sorted(_READS), "__reduce_ex__") if hasattr(torch.Tensor, name)),
    *((torch, name) for name in ("equal", "allclose", "is_nonzero")),
]
_WATCHED = [
    *((owner, name, _watched_method(getattr(owner, name)), vars(owner).get(name)) for owner, name in _READ_PLACES),
    # which no mode of torch's hears of
    (dlpack, "to_dlpack", lambda tensor: tensor.__dlpack__(), vars(dlpack)["to_dlpack"]),
]
"""Owner, name, what stands there while somebody watches, and what stood there; None where the name is inherited."""


class _ScriptedReads(OperatorMode):
    """Stops TorchScript code that looks into tensors more often than it may; no method of Python's is called there."""

    def __init__(self, most: float) -> None:
        super().__init__()
        self._most, self._count = most, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        if func.name() == "aten::_local_scalar_dense":
            self._count += 1
            if self._count > self._most:
                raise TooManyReadsError(self._most)
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def watched_reads(most: float = math.inf, *, is_scripted: bool = False) -> Iterator[set[ReadPath]]:
    """Inside, every place is noted at which Python code looks into a tensor, at next to no cost.

    The methods themselves are replaced: under a mode of torch's, every call would take longer, and fast paths be left.
    """
    if is_scripted and most < math.inf:
        with _ScriptedReads(most), watched_reads() as paths:
            yield paths
        return
    _WATCHES.append(_ReadWatch(most))
    try:
        for owner, name, method, _ in _WATCHED:
            setattr(owner, name, method)
        yield _WATCHES[-1].paths
    finally:
        _WATCHES.pop()
        for owner, name, _, kept in _WATCHED if not _WATCHES else ():
            delattr(owner, name) if kept is None else setattr(owner, name, kept)


# ---- decisions on values

_SHAPE_ALONE = {
    "empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "new_zeros", "new_ones",
    "new_empty", "new_full", "new_empty_strided",
}  # fmt: skip


class _Dependents(OperatorRecorder):
    """Marks every tensor that depends on the values of the inputs."""

    def __init__(self, inputs: Iterable[Any]) -> None:
        super().__init__()
        self._marked = WeakIdKeyDictionary()
        self._written: dict[int, Any] = {}
        """Memory that was written to, kept so that no other takes its address: other tensors may lie in it."""
        for value in inputs:
            self.mark(value)

    def __contains__(self, value: Any) -> bool:
        if not isinstance(value, torch.Tensor):
            return False
        return bool(value in self._marked or (self._written and _memory_of(value) in self._written))

    def mark(self, value: Any) -> None:
        if isinstance(value, torch.Tensor):
            self._marked[value] = True

    def after(self, func: Any, args: Any, kwargs: Mapping[str, Any], result: Any, frame: FrameType) -> None:
        del frame
        tensors = list(tensors_in((args, kwargs)))
        schema = schema_of(func)
        name = schema.name.split("::")[-1] if schema else ""
        if name not in _SHAPE_ALONE and any(value in self for value in tensors):
            for value in tensors_in(result):
                self.mark(value)
            if writes(func) and (memory := _memory_of(tensors[0])) is not None:
                self._written[memory] = tensors[0].untyped_storage()


def _memory_of(tensor: torch.Tensor) -> int | None:
    """The identity of the memory that a tensor lies in; None for a kind of tensor that lies in none."""
    try:
        return int(tensor.untyped_storage()._cdata)
    except (NotImplementedError, RuntimeError, AttributeError):
        return None


class _Reads(FunctionRecorder):
    """Notes where Python code looks into a marked tensor."""

    def __init__(self, dependents: _Dependents) -> None:
        super().__init__()
        self._dependents = dependents
        self.answers: dict[Span | None, set[object]] = {}

    def after(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any, frame: FrameType) -> None:
        name = getattr(func, "__name__", "")
        if name in _READS or name == "__deepcopy__":
            if not any(value in self._dependents for value in tensors_in((args, kwargs))):
                return
            if name == "__deepcopy__":
                self._dependents.mark(result)
                return
            site = site_of_stack(frame)
            answer = TOLD if site is not None and is_told(site) else result if isinstance(result, bool) else _OTHER
            self.answers.setdefault(None if site is None else site.span, set()).add(answer)


_OTHER = "a value"
"""What was read where it is neither True nor False: it may have any number of others."""
TOLD = "told"
"""What was read to be printed or logged, or for an assertion's message."""


def value_decisions(run: Callable[[], Any], inputs: Iterable[Any]) -> dict[Span | None, set[object]]:
    """The places at which `run` reads a value that depends on the inputs' values, with what it read there."""
    dependents = _Dependents(inputs)
    reads = _Reads(dependents)
    # torch.cond and its like would compile themselves under these modes, and keep what came of it
    with torch.compiler.set_stance("force_eager"), dependents, reads:
        run()
    return reads.answers
