"""What goes into the freeing of a file, and what comes out of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from anyshape.errors import AnyshapeError

Wanted = Mapping[str, tuple[str | None, ...]]
"""Input -> the dim's name for each axis, None where the axis stays as it is."""


@dataclass(frozen=True)
class Rewrite:
    """One node that was changed, and how."""

    node: str
    operator: str
    what: str


@dataclass(frozen=True)
class Bound:
    """A limit that remains: beyond it, the runtime raises an error."""

    dim: str
    most: int
    why: str


@dataclass(frozen=True)
class Freed:
    """A new model whose axes are free; nothing has been checked yet."""

    model: ir.Model
    sizes: Mapping[str, int]
    """What each dim was in the file."""
    rewrites: tuple[Rewrite, ...]
    bounds: tuple[Bound, ...]
    outputs: tuple[tuple[str | None, ...], ...]
    """The true size of each axis of each output: `batch`, `2*seq + 1`, `16`; None where nobody knows."""
    choices: tuple[int, ...]
    """How many readings each ambiguous place had, in the order of the walk."""
    taken: tuple[int, ...]
    """Which of them stands in the model; a reading that led to a contradiction was left by itself."""


class PinnedError(AnyshapeError):
    """A node holds a dim to its size in the file, and no rule frees it."""

    def __init__(self, sentence: str, *, node: str = "", operator: str = "", dim: str | None = None) -> None:
        super().__init__(sentence)
        self.node, self.operator, self.dim = node, operator, dim


class DisagreeingError(PinnedError):
    """Two sizes that must be equal are so at the file's sizes, but not at every size: a wrong reading, or a limit."""


State = tuple[str, int]
"""An initial state of a loop: the node's name and which of its inputs."""


class StatePinnedError(PinnedError):
    """The initial state of a loop is too small for its rounds: the walk starts again with a larger one."""

    def __init__(self, trouble: PinnedError, state: State, wants: Mapping[int, Any]) -> None:
        super().__init__(str(trouble), node=trouble.node, operator=trouble.operator, dim=trouble.dim)
        self.state, self.wants = state, wants
