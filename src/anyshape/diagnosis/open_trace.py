"""A trace that commits to nothing: every assumption about sizes is noted with its place, and none is kept.

A usual trace turns a symbol into a number at the first line that asks for it, and no later line shows. Here guards are
suppressed, so every line is asked anew. A mode on torch's functions remembers which call made each tensor: the line at
which two sizes meet is seldom the line that wrote the number.

The mode makes some layers of torch.nn take another path, so this is for the explanation of a failure, never for a file.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

import sympy
import torch

from anyshape.source.sites import Site, site_of_stack
from anyshape.source.spans import is_users
from anyshape.torchkit.capture import Recorder, recording
from anyshape.torchkit.patches import observed
from anyshape.torchkit.recorder import Call, CallRecorder, CallTrack, tensors_in


@dataclass(frozen=True, eq=False)
class Assumed:
    """A condition on sizes that the model's code took for granted, or a size that it turned into a number."""

    condition: sympy.Basic
    site: Site | None
    call: Call | None
    """The call of torch that asked; None where Python did, the model's own or a layer's."""
    at_hand: tuple[torch.Tensor, ...] = ()
    """What the layer that asked was given."""


class Track(CallTrack):
    """What a tracked trace saw: calls and assumptions in order, and what the module holds."""

    def __init__(self) -> None:
        super().__init__()
        self.assumed: list[Assumed] = []
        self.held: dict[int, str] = {}
        """Tensors that the module holds -> their names."""
        self.inputs: dict[int, int] = {}
        """Tensors of the call -> their position."""
        self._alive: list[Any] = []

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


_QUESTIONS = "torch.fx.experimental.symbolic_shapes.ShapeEnv.evaluate_expr"
"""Every question comes by here; the log of guards tells an expression that is asked again only once."""


class Tracked(torch.nn.Module):
    """A module that notes what its inner module assumes about sizes when it is traced."""

    def __init__(self, module: torch.nn.Module, track: Track) -> None:
        super().__init__()
        self.module = module
        self._track = track
        self.training = module.training

    def forward(self, *values: Any) -> Any:
        self._track.note_held(self.module, values)
        calls = CallRecorder(self._track)
        with contextlib.ExitStack() as stack:
            for environment in _environments(values):
                stack.enter_context(environment.suppress_guards())
            stack.enter_context(observed(_QUESTIONS, functools.partial(_note_question, self._track, calls), after=True))
            stack.enter_context(calls)
            return self.module(*values)


def _environments(values: Sequence[Any]) -> list[Any]:
    sizes = (size for value in values for size in (value.shape if isinstance(value, torch.Tensor) else (value,)))
    found = {id(size.node.shape_env): size.node.shape_env for size in sizes if isinstance(size, torch.SymInt)}
    return list(found.values())


def _note_question(
    track: Track, calls: CallRecorder, answer: Any, _environment: Any, question: Any, *_: Any, **__: Any
) -> None:
    """Sees every question about sizes, and its answer."""
    if not isinstance(question, sympy.Basic) or not question.free_symbols:
        return
    condition = _condition_assumed(question, answer)
    if condition is None or condition in (sympy.true, sympy.false):
        return
    # the outermost call: what the model wrote, not what torch made of it
    running = calls.running[0] if calls.running else None
    if running is not None:
        track.assumed.append(Assumed(condition, running.site, running))
    else:
        frame = sys._getframe(2)
        track.assumed.append(Assumed(condition, site_of_stack(frame), None, tuple(_at_hand(frame))))


def _at_hand(frame: FrameType | None) -> Iterator[torch.Tensor]:
    """The tensors that layers of torch hold under a name, between the question and the model's own code."""
    while frame is not None and not is_users(frame.f_code.co_filename):
        for value in frame.f_locals.values():
            if isinstance(value, (torch.Tensor, tuple, list)):
                yield from tensors_in(value)
        frame = frame.f_back


def _condition_assumed(question: sympy.Basic, answer: Any) -> sympy.Basic | None:
    """What is now taken for granted."""
    if isinstance(question, sympy.logic.boolalg.Boolean):
        return question if answer in (True, sympy.true) else sympy.Not(question)
    return sympy.Eq(question, sympy.sympify(answer)) if isinstance(answer, (int, float, sympy.Number)) else None


@contextlib.contextmanager
def tracking() -> Iterator[tuple[Track, Recorder]]:
    """Inside, the trace of a `Tracked` module is noted."""
    with recording() as recorder:
        yield Track(), recorder
