"""Lightning's `example_input_array` is a call; Lightning itself is not imported."""

from __future__ import annotations

from typing import Any

from torch import nn


def example_of(module: nn.Module) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """The arguments and keywords that a module carries as its example; None where it has none.

    A tuple or a list holds arguments, a dict holds keywords, anything else is the one argument: as Lightning calls it.
    """
    example = getattr(module, "example_input_array", None)
    if example is None:
        return None
    if isinstance(example, (tuple, list)):
        return tuple(example), {}
    return ((), dict(example)) if isinstance(example, dict) else ((example,), {})
