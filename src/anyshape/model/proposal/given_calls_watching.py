"""Calls recorded while the user's own code runs the model: copies, one for each set of shapes."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import torch
from torch import nn

from anyshape.declaration.calls import bind_call
from anyshape.declaration.containers import parts_of
from anyshape.declaration.targets import Target, resolve_target
from anyshape.errors import DeclarationError, first_line
from anyshape.model.proposal.given_calls import kinds

_LARGE = 2**28
"""Bytes of a tensor from which on it is kept as it is: a copy could take what memory is left."""


@dataclass(frozen=True, repr=False)
class Call:
    """One call, as it was made."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    def __repr__(self) -> str:
        return self.shown(most=4)

    def shown(self, most: int) -> str:
        """Its shapes and other values; of what stands in a container so many."""
        given = [_shown(value, most) for value in self.args]
        named = [f"{name}={_shown(value, most)}" for name, value in self.kwargs.items()]
        return f"({', '.join([*given, *named])})"


class Seen(Sequence[Call]):
    """The recorded calls, in their order; `of(0)` are those of the first kind, where some were given other inputs."""

    def __init__(self, target: Target, calls: Sequence[Call] = (), notes: Sequence[str] = ()) -> None:
        self._target = target
        self._calls = list(calls)
        self.notes = list(notes)
        """What was not recorded as it was, and why."""

    @overload
    def __getitem__(self, index: int) -> Call: ...
    @overload
    def __getitem__(self, index: slice) -> Seen: ...
    def __getitem__(self, index: int | slice) -> Call | Seen:
        if isinstance(index, slice):
            return Seen(self._target, self._calls[index], self.notes)
        return self._calls[index]

    def __len__(self) -> int:
        return len(self._calls)

    @property
    def kinds(self) -> tuple[Seen, ...]:
        """The calls by what they were given: each kind can be exported to a file."""
        bound = [bind_call(self._target, call.args, call.kwargs) for call in self._calls]
        return tuple(Seen(self._target, [self._calls[n] for n in numbers], self.notes) for numbers in kinds(bound))

    def of(self, kind: int) -> Seen:
        """The calls of one kind."""
        found = self.kinds
        if not 0 <= kind < len(found):
            raise DeclarationError(f"there is no kind {kind}: the {len(self)} recorded calls are of {len(found)} kinds")
        return found[kind]

    def __repr__(self) -> str:
        count = f"{len(self)} call{'s' if len(self) != 1 else ''} of {self._target.name}"
        return "\n".join([count, *(f"  {number}: {call}" for number, call in enumerate(self)), *self.notes])


@contextlib.contextmanager
def watch(model: Any, *, most: int = 16) -> Iterator[Seen]:
    """Record the calls that are made inside, of a module or of a method of one.

    Calls of the same shapes count once, the first `most` are kept. What is recorded is an `examples=` of `export`.
    """
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise DeclarationError(f"most is {most!r}: give how many calls to keep, at least 1")
    recorder = _Recorder(Seen(resolve_target(model)), resolve_target(model), most)
    if isinstance(model, nn.Module):
        watching = _hooked(model, recorder)
    elif inspect.ismethod(model):
        watching = _replaced(model.__self__, model.__name__, recorder)
    else:
        raise DeclarationError(f"{_name(model)} cannot be watched: pass the module, or a method of it")
    with watching:
        yield recorder.seen


@contextlib.contextmanager
def _hooked(module: nn.Module, recorder: _Recorder) -> Iterator[None]:
    def before(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        recorder.enter(args, kwargs)

    def after(*_: Any) -> None:
        recorder.leave()

    handles = [
        module.register_forward_pre_hook(before, prepend=True, with_kwargs=True),
        module.register_forward_hook(after, always_call=True),
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextlib.contextmanager
def _replaced(owner: Any, name: str, recorder: _Recorder) -> Iterator[None]:
    """The method of this one object, for the time of the watch."""
    method = getattr(owner, name)

    @functools.wraps(method)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        recorder.enter(args, kwargs)
        try:
            return method(*args, **kwargs)
        finally:
            recorder.leave()

    own = vars(owner).get(name)
    vars(owner)[name] = recorded
    try:
        yield
    finally:
        if own is None:
            del vars(owner)[name]
        else:
            vars(owner)[name] = own


class _Recorder:
    """Takes calls from several threads; a call that the model makes of itself is not the user's."""

    def __init__(self, seen: Seen, target: Target, most: int) -> None:
        self.seen = seen
        self._target = target
        self._most = most
        self._known: set[str] = set()
        self._lock = threading.Lock()
        self._thread = threading.local()

    def enter(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        self._thread.depth = depth = getattr(self._thread, "depth", 0) + 1
        if depth == 1:
            with self._lock:
                self._record(Call(args, kwargs))

    def leave(self) -> None:
        self._thread.depth -= 1

    def _record(self, call: Call) -> None:
        shapes = call.shown(most=sys.maxsize)
        if shapes in self._known:
            return
        self._known.add(shapes)
        if len(self.seen) >= self._most:
            self._note(f"more than {self._most} sets of shapes were seen, the first {self._most} are kept: raise most=")
            return
        try:
            self.seen._calls.append(self._copied(call))  # noqa: SLF001  its other half
        except DeclarationError as error:  # the user's code goes on whatever we think of the call
            self._note(f"{call} was not recorded: {first_line(error)}")

    def _copied(self, call: Call) -> Call:
        """The call with its own tensors: caches grow in place, and a loop may reuse its buffers."""
        signature = bind_call(self._target, call.args, call.kwargs)
        with torch.inference_mode(False), torch.no_grad():
            args, kwargs = signature.build({name: self._copy(name, value) for name, value in signature.values.items()})
        return Call(args, kwargs)

    def _copy(self, name: str, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if value.nbytes < _LARGE:
            return value.clone()
        self._note(f"`{name}` is too large to be copied: leave it unchanged until the export is done")
        return value

    def _note(self, text: str) -> None:
        if text not in self.seen.notes:
            self.seen.notes.append(text)


def _shown(value: Any, most: int) -> str:
    """`int64[2, 5]`, `{ids: int64[2, 5]}`, `3`, `'mean'`."""
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    found = parts_of(value)
    if found is None:
        return type(value).__name__
    kind, parts = found
    is_listed = kind in ("list", "tuple")
    inside = [_shown(part, most) if is_listed else f"{key}: {_shown(part, most)}" for key, part in parts.items()]
    text = ", ".join([*inside[:most], *(["..."] if len(inside) > most else [])])
    before, after = {"list": ("[", "]"), "tuple": ("(", ")")}.get(kind, ("{", "}"))
    return f"{'' if is_listed or kind == 'dict' else type(value).__name__}{before}{text}{after}"


def _name(model: Any) -> str:
    return f"`{getattr(model, '__name__', type(model).__name__)}`"
