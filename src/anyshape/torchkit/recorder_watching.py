"""Every result of a run, with the user's line that it came from."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from anyshape.results.finding import Span
from anyshape.source.stacks import span_of_stack


class _Watching(TorchDispatchMode):
    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self.results: list[tuple[Span, torch.Tensor]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        result = func(*args, **(kwargs or {}))
        span = span_of_stack(sys._getframe(1))
        if span is not None:
            for value in pytree.tree_leaves(result):
                if isinstance(value, torch.Tensor) and value.is_floating_point():
                    self.results.append((span, value.detach().clone()))
        return result


def floating_results(run: Callable[[], Any]) -> list[tuple[Span, torch.Tensor]]:
    """All floating results of `run` in order, each with its place."""
    mode = _Watching()
    with mode:
        run()
    return mode.results
