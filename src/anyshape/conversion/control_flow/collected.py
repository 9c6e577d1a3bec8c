"""What is raised where a loop cannot be kept as a loop."""

from __future__ import annotations

from anyshape.errors import AnyshapeError


class LoopError(AnyshapeError):
    """A loop over a size that varies does what no loop of the file could do."""


class LeftEarlyError(LoopError):
    """A loop is left by `break`, `return` or an exception: the file would run on."""
