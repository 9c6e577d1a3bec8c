"""Every call of torch's functions in a run: what went in, what came out, and the user's expression that asked for it.

Functions and not operators: a recurrent layer is one call here, however many steps it takes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.weak import WeakIdKeyDictionary

from anyshape.source.spans import Span
from anyshape.source.stacks import span_of_stack

_MOST_BYTES = 512 * 2**20
_OURS = str(Path(__file__).resolve().parent.parent)


@dataclass(frozen=True)
class Call:
    """One call of a function of torch's; tensors are held, so that they can be told apart by identity."""

    function: str
    span: Span | None
    arguments: tuple[torch.Tensor, ...]
    results: tuple[torch.Tensor, ...]
    values: tuple[torch.Tensor, ...]
    """Copies of the results, since a later call may write to them; none for calls of our own."""
    names_axes: bool
    """Whether an argument may be an axis: a whole number beside the tensors, or several."""


class _Following(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Call] = []
        self._bytes = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if torch.compiler.is_dynamo_compiling():  # by torch.cond and its like, and then of this very code
            return result
        results = tuple(_results(result, args))
        if results and self._bytes <= _MOST_BYTES:
            frame = sys._getframe(1)
            span = span_of_stack(frame)
            is_ours = frame.f_code.co_filename.startswith(_OURS)
            values = () if is_ours else tuple(value.detach().clone() for value in results)
            self._bytes += sum(value.numel() * value.element_size() for value in values)
            arguments = tuple(_tensors((args, kwargs)))
            others = [*args[1:], *kwargs.values()]
            self.calls.append(Call(_name(func), span, arguments, results, values, any(map(_may_be_axes, others))))
        return result


def _results(result: Any, args: Any) -> Iterator[torch.Tensor]:
    """What came out; of a function that writes to its first argument that one, and what it is a view of."""
    first = args[0] if args and isinstance(args[0], torch.Tensor) else None
    yield from _tensors(first if result is None else result)
    if first is not None and (result is None or result is first) and first._base is not None:
        yield first._base


def _name(func: Any) -> str:
    """`softmax`, `view`, `__setitem__`; a property such as `x.T` by its own name."""
    owner = getattr(func, "__self__", None)
    return str(getattr(owner, "__name__", "")) if func.__name__ == "__get__" else str(func.__name__)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _tensors(part)
    elif isinstance(value, dict):
        yield from _tensors(list(value.values()))
    elif isinstance(value, slice):
        yield from _tensors((value.start, value.stop, value.step))


def _may_be_axes(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return bool(value) and all(map(_may_be_axes, value))
    return isinstance(value, int) and not isinstance(value, bool)


def followed(run: Callable[[], Any]) -> tuple[Any, list[Call]]:
    """What `run` returns, and its calls in order; only the first of them where they hold very much."""
    mode = _Following()
    with mode:
        result = run()
    return result, mode.calls


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


_READS = {
    "__bool__", "__int__", "__float__", "__index__", "__contains__", "item", "tolist", "numpy", "equal", "allclose",
    "is_nonzero",
}  # fmt: skip
"""What Python code calls to see a value. What an operator looks at by itself stays inside that operator."""
_SHAPE_ALONE = {
    "empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "new_zeros", "new_ones",
    "new_empty", "new_full", "new_empty_strided",
}  # fmt: skip


class _FollowingDecisions(TorchDispatchMode):
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

    def __init__(self, following: _FollowingDecisions) -> None:
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
    following = _FollowingDecisions(inputs)
    reading = _Reading(following)
    # torch.cond and its like would compile themselves under these modes, and keep what came of it
    with torch.compiler.set_stance("force_eager"), following, reading:
        run()
    return reading.answers
