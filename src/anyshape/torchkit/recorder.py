"""Every call of torch's functions in a run: what went in, what came out, and the user's expression that asked for it.

Functions and not operators: a recurrent layer is one call here, however many steps it takes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from anyshape.results.finding import Span
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
