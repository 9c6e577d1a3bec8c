"""How many operations a call of a module takes: every operator that torch calls is heard of, and none is changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from anyshape.sizes.effort import Effort, OperatorShapes, effort_of
from anyshape.torchkit.operator_mode import OperatorMode
from anyshape.torchkit.schemas import is_view


class _HeardCalls(OperatorMode):
    """Keeps the shapes of all operators."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[OperatorShapes] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        result = func(*args, **(kwargs or {}))
        given = () if is_view(func) else result if isinstance(result, (tuple, list)) else (result,)
        outputs = [one for one in given if isinstance(one, torch.Tensor)]
        inputs = [tuple(one.shape) for one in args if isinstance(one, torch.Tensor)]
        width = max((one.element_size() for one in outputs), default=0)
        shapes = [tuple(one.shape) for one in outputs]
        self.calls.append((getattr(func, "__name__", ""), inputs, shapes, width))
        return result


def counted_effort(call: Callable[[], object]) -> Effort | None:
    """What this call takes, without the fast paths that hide their operators; None where it fails."""
    has_fast_paths = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with _HeardCalls() as heard:
            call()
    except Exception:  # noqa: BLE001  the user's own model
        return None
    finally:
        torch.backends.mha.set_fastpath_enabled(has_fast_paths)
    return effort_of(heard.calls)
