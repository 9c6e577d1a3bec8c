"""`anyshape.watch`: the calls that a program makes of its model, recorded as examples for an export."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import nn

from anyshape.declaration.calls import bind_call
from anyshape.declaration.targets import Target, resolve_target
from anyshape.errors import DeclarationError, first_line
from anyshape.model.proposal.given_calls import SeenCall, SeenCalls
from anyshape.sizes import budgets


@contextlib.contextmanager
def watch(model: Any, *, most: int = 16) -> Iterator[SeenCalls]:
    """Record the calls that are made inside, of a module or of a method of one, as `examples=` of `export`.

    - `model`: what is called, itself or by other code
    - `most`: how many calls are kept, each set of shapes once

    >>> model = torch.nn.Linear(4, 2)
    >>> with anyshape.watch(model) as seen:
    ...     outputs = model(torch.randn(2, 4)), model(torch.randn(3, 4))
    >>> anyshape.export(model, examples=seen).inputs[0].axes
    ('batch', 4)
    """
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise DeclarationError(f"most is {most!r}: give how many calls to keep, at least 1")
    recorder = _CallRecorder(SeenCalls(resolve_target(model)), resolve_target(model), most)
    if isinstance(model, nn.Module):
        watching = _recording_module(model, recorder)
    elif inspect.ismethod(model):
        watching = _recording_method(model.__self__, model.__name__, recorder)
    else:
        raise DeclarationError(f"{_name_of(model)} cannot be watched: pass the module, or a method of it")
    with watching:
        yield recorder.seen


@contextlib.contextmanager
def _recording_module(module: nn.Module, recorder: _CallRecorder) -> Iterator[None]:
    def before(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        recorder.enter(args, kwargs)

    def after(*_: Any) -> None:
        recorder.leave()

    entering = module.register_forward_pre_hook(before, prepend=True, with_kwargs=True)
    with entering, module.register_forward_hook(after, always_call=True):
        yield


@contextlib.contextmanager
def _recording_method(owner: Any, name: str, recorder: _CallRecorder) -> Iterator[None]:
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


class _CallRecorder:
    """Takes calls from several threads; a call that the model makes of itself is not the user's."""

    def __init__(self, seen: SeenCalls, target: Target, most: int) -> None:
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
                self._record_call(SeenCall(args, kwargs))

    def leave(self) -> None:
        self._thread.depth -= 1

    def _record_call(self, call: SeenCall) -> None:
        shapes = call.shown(most=sys.maxsize)
        if shapes in self._known:
            return
        self._known.add(shapes)
        if len(self.seen) >= self._most:
            self._note(f"more than {self._most} sets of shapes were seen, the first {self._most} are kept: raise most=")
            return
        try:
            self.seen._calls.append(self._copy_of_call(call))  # noqa: SLF001  its other half
        except DeclarationError as error:  # the user's code goes on whatever we think of the call
            self._note(f"{call} was not recorded: {first_line(error)}")

    def _copy_of_call(self, call: SeenCall) -> SeenCall:
        """The call with its own tensors: caches grow in place, and a loop may reuse its buffers."""
        signature = bind_call(self._target, call.args, call.kwargs)
        with torch.inference_mode(False), torch.no_grad():
            args, kwargs = signature.build(
                {name: self._copy_of_value(name, value) for name, value in signature.values.items()}
            )
        return SeenCall(args, kwargs)

    def _copy_of_value(self, name: str, value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if value.nbytes < budgets.LARGE_RECORDED_CALL:
            return value.clone()
        self._note(f"`{name}` is too large to be copied: leave it unchanged until the export is done")
        return value

    def _note(self, text: str) -> None:
        if text not in self.seen.notes:
            self.seen.notes.append(text)


def _name_of(model: Any) -> str:
    return f"`{getattr(model, '__name__', type(model).__name__)}`"
