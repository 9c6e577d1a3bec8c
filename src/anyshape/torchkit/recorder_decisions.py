"""Where a model reads a value into Python: `if mask.any()`, `.item()`, `.tolist()`.

A trace with real tensors keeps the path that the example took, whatever other values would do, and no size shows it.
So these places are found by following which results depend on the values of the inputs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakIdKeyDictionary

from anyshape.results.finding import Span
from anyshape.source.stacks import span_of_stack

_READS = {
    "__bool__", "__int__", "__float__", "__index__", "__contains__", "item", "tolist", "numpy", "equal", "allclose",
    "is_nonzero",
}  # fmt: skip
"""What Python code calls to see a value. What an operator looks at by itself stays inside that operator."""
_SHAPE_ALONE = {
    "empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "new_zeros", "new_ones",
    "new_empty", "new_full", "new_empty_strided",
}  # fmt: skip


class _Following(TorchDispatchMode):
    """Marks every tensor that depends on the values of the inputs."""

    supports_higher_order_operators = True  # torch.cond and its kin: one step, as an operator is

    def __init__(self, inputs: Iterable[Any]) -> None:
        super().__init__()
        self.marked = WeakIdKeyDictionary()
        for value in inputs:
            self._mark(value)

    def _mark(self, value: Any) -> None:
        if isinstance(value, torch.Tensor):
            self.marked[value] = True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        result = func(*args, **(kwargs or {}))
        leaves = pytree.tree_leaves((args, kwargs or {}))
        schema = getattr(func, "_schema", None)
        name = schema.name.split("::")[-1] if schema else ""
        if name not in _SHAPE_ALONE and any(isinstance(v, torch.Tensor) and v in self.marked for v in leaves):
            pytree.tree_map(self._mark, result)
            if schema and schema.is_mutable:
                self._mark(leaves[0])
        return result


class _Reading(TorchFunctionMode):
    """Notes where Python code looks into a marked tensor."""

    def __init__(self, following: _Following) -> None:
        super().__init__()
        self._following = following
        self.answers: dict[Span | None, set[object]] = {}

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        answer = func(*args, **(kwargs or {}))
        if getattr(func, "__name__", "") in _READS:
            tensors = [value for value in args if isinstance(value, torch.Tensor)]
            if any(value in self._following.marked for value in tensors):
                place = span_of_stack(sys._getframe(1))
                self.answers.setdefault(place, set()).add(answer if isinstance(answer, bool) else _OTHER)
        return answer


_OTHER = "a value"
"""What was read where it is neither True nor False: it may have any number of others."""


def value_decisions(run: Callable[[], Any], inputs: Iterable[Any]) -> dict[Span | None, set[object]]:
    """The places at which `run` reads a value that depends on the inputs' values, with what it read there."""
    following = _Following(inputs)
    reading = _Reading(following)
    # torch.cond and its like would compile themselves under these modes, and keep what came of it
    with torch.compiler.set_stance("force_eager"), following, reading:
        run()
    return reading.answers
