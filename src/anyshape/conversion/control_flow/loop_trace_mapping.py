"""Torch's `map` while a model is traced: its body is run once, between the marks of a loop."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from torch import Tensor

from anyshape.conversion.control_flow import loop_trace
from anyshape.conversion.control_flow.paths import explore
from anyshape.source import live_code
from anyshape.torchkit.patches import patched


@contextlib.contextmanager
def mapped(noticed: Callable[[], None]) -> Iterator[None]:
    """Inside, `map` is traced as a loop, under whatever name a model has imported it; `noticed` hears of each call."""
    function = _genuine()
    if function is None:
        yield
        return

    def each(body: Callable[..., Any], sequences: Any, *others: Any) -> Any:
        noticed()
        return _each(body, sequences, *others)

    with patched(_Current, "each", staticmethod(each)), live_code.running([(function, _stand_in.__code__)]):
        yield


class _Current:
    each: Any = None


def _stand_in(f: Any, xs: Any, *args: Any) -> Any:
    """Its code runs in torch's file, which does not know our names."""

    return _Current.each(f, xs, *args)


def _genuine() -> FunctionType | None:
    try:
        found = importlib.import_module("torch._higher_order_ops.map").map
    except (ImportError, AttributeError):
        return None
    return found if isinstance(found, FunctionType) else None


def _each(body: Callable[..., Any], sequences: Any, *others: Any) -> Any:
    """What the body makes of each slice along the first axis, stacked."""
    leaves, structure = loop_trace.leaves_of(sequences)
    count = leaves[0].shape[0]
    exploration = explore()
    begun = loop_trace.begin(count, [], leaves, ())
    for _ in exploration:
        exploration.give(body(loop_trace.rebuilt(begun.slices, structure), *others))
    results, structure = loop_trace.leaves_of(exploration.joined())
    _, stacked = loop_trace.end(count, [], [], [one for one in results if isinstance(one, Tensor)], begun.number)
    steps = iter(stacked)
    return loop_trace.rebuilt([next(steps) if isinstance(one, Tensor) else one for one in results], structure)
