"""A trace that commits to nothing: every assumption about sizes is noted with its place, and none is kept.

A usual trace turns a symbol into a number at the first line that asks for it, and no later line shows. Here guards are
suppressed, so every line is asked anew. A mode on torch's functions remembers which call made each tensor: the line at
which two sizes meet is seldom the line that wrote the number.

The mode makes some layers of torch.nn take another path, so this is for the explanation of a failure, never for a file.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import sympy
import torch
from torch.fx.experimental import symbolic_shapes
from torch.overrides import TorchFunctionMode

from anyshape.source.sites import Site, site_of_stack
from anyshape.source.stacks import is_users
from anyshape.torchkit.capture import Recorder, recording, wrapped


@dataclass(frozen=True, eq=False)
class Call:
    """One call of a torch function from the model's code or from a layer's."""

    function: Callable[..., Any]
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    site: Site | None
    results: list[torch.Tensor] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Assumed:
    """A condition on sizes that the model's code took for granted, or a size that it turned into a number."""

    condition: sympy.Basic
    site: Site | None
    call: Call | None
    """The call of torch that asked; None where Python did, the model's own or a layer's."""
    at_hand: tuple[torch.Tensor, ...] = ()
    """What the layer that asked was given."""


class Track:
    """What a tracked run saw: assumptions in order, and where each tensor came from."""

    def __init__(self) -> None:
        self.assumed: list[Assumed] = []
        self.calls: list[Call] = []
        self._makers: dict[int, Call] = {}
        self.held: dict[int, str] = {}
        """Tensors that the module holds -> their names."""
        self.inputs: dict[int, int] = {}
        """Tensors of the call -> their position."""
        self._alive: list[Any] = []

    def maker_of(self, tensor: torch.Tensor) -> Call | None:
        return self._makers.get(id(tensor))

    def note_call(self, call: Call) -> None:
        self.calls.append(call)
        for result in call.results:
            self._makers.setdefault(id(result), call)  # what works in place returns what it was given

    def note_held(self, module: torch.nn.Module, values: Sequence[Any]) -> None:
        for position, value in enumerate(values):
            if isinstance(value, torch.Tensor):
                self.inputs[id(value)] = position
        self._alive.append(values)
        for name, value in held_tensors(module):
            self.held[id(value)] = name
            self._alive.append(value)


def held_tensors(module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Parameters, buffers and plain attributes, by their dotted names."""
    for prefix, part in module.named_modules():
        places = {**part.__dict__, **part._parameters, **part._buffers}
        for name, value in places.items():
            if isinstance(value, torch.Tensor):
                yield f"{prefix}.{name}" if prefix else name, value


class _Calls(TorchFunctionMode):
    """Notes every call of torch that the model's code makes."""

    def __init__(self, track: Track) -> None:
        super().__init__()
        self._track = track
        self.running: list[Call] = []

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        del types
        if torch.compiler.is_dynamo_compiling():  # by torch.cond and its like, and then of this very code
            return func(*args, **(kwargs or {}))
        call = Call(func, args, kwargs or {}, site_of_stack(sys._getframe(1)))
        self.running.append(call)
        try:
            result = func(*args, **(kwargs or {}))
        finally:
            self.running.pop()
        call.results.extend(_tensors(result))
        self._track.note_call(call)
        return result


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from _tensors(one)


class Tracked(torch.nn.Module):
    """A module that notes what its inner module assumes about sizes when it is traced."""

    def __init__(self, module: torch.nn.Module, track: Track) -> None:
        super().__init__()
        self.module = module
        self._track = track
        self.training = module.training

    def forward(self, *values: Any) -> Any:
        self._track.note_held(self.module, values)
        calls = _Calls(self._track)
        with contextlib.ExitStack() as stack:
            for environment in _environments(values):
                stack.enter_context(environment.suppress_guards())
            stack.enter_context(
                wrapped(symbolic_shapes.ShapeEnv, "evaluate_expr", _Evaluations(self._track, calls), after=True)
            )
            stack.enter_context(calls)
            return self.module(*values)


def _environments(values: Sequence[Any]) -> list[Any]:
    found = {}
    for value in values:
        sizes = value.shape if isinstance(value, torch.Tensor) else (value,)
        for size in sizes:
            if isinstance(size, torch.SymInt):
                found[id(size.node.shape_env)] = size.node.shape_env
    return list(found.values())


class _Evaluations:
    """Sees every question about sizes, and its answer."""

    def __init__(self, track: Track, calls: _Calls) -> None:
        self._track = track
        self._calls = calls

    def __call__(self, answer: Any, _environment: Any, question: Any, *_: Any, **__: Any) -> None:
        if not isinstance(question, sympy.Basic) or not question.free_symbols:
            return
        condition = _condition(question, answer)
        if condition is None or condition in (sympy.true, sympy.false):
            return
        running = self._calls.running[0] if self._calls.running else None
        if running is not None:
            self._track.assumed.append(Assumed(condition, running.site, running))
        else:
            frame = sys._getframe(2)
            self._track.assumed.append(Assumed(condition, site_of_stack(frame), None, tuple(_at_hand(frame))))


def _at_hand(frame: FrameType | None) -> Iterator[torch.Tensor]:
    """The tensors that layers of torch hold under a name, between the question and the model's own code."""
    while frame is not None and not is_users(frame.f_code.co_filename):
        for value in frame.f_locals.values():
            yield from _tensors(value)
        frame = frame.f_back


def _condition(question: sympy.Basic, answer: Any) -> sympy.Basic | None:
    """What is now taken for granted."""
    if isinstance(question, sympy.logic.boolalg.Boolean):
        return question if answer in (True, sympy.true) else sympy.Not(question)
    return sympy.Eq(question, sympy.sympify(answer)) if isinstance(answer, (int, float, sympy.Number)) else None


def track_calls(run: Callable[[], Any]) -> Track:
    """The calls of a run in eager."""
    track = Track()
    with _Calls(track):
        run()
    return track


@contextlib.contextmanager
def tracking() -> Iterator[tuple[Track, Recorder]]:
    """Inside, the trace of a `Tracked` module is noted."""
    with recording() as recorder:
        yield Track(), recorder
