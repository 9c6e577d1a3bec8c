"""The trace of a loop that is kept as a loop: marks around its body, symbols, and passes that leave no trace.

torch's own `map` is the simplest of such loops, and stands here whole.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import torch
from torch import Tensor

from anyshape.conversion.control_flow.forks import explore, note_size_of_a_step
from anyshape.conversion.control_flow.marks import ALWAYS
from anyshape.conversion.operators.repair import Repair, Used
from anyshape.source import live_code
from anyshape.torchkit.capture import is_same_number
from anyshape.torchkit.patches import patched
from anyshape.torchkit.private_names import NAMES, attribute, lookup, missing, pytree

_RANGES = "torch.fx.experimental.symbolic_shapes.ShapeEnv._refine_ranges"
_PROXIES = "torch.fx.experimental.proxy_tensor"
_CHECK, _MODE, _MEMORY = "torch._check", "torch._guards.detect_fake_mode", "torch.UntypedStorage._cdata"
_UNTRACED, _PROXY_MODE = f"{_PROXIES}.disable_proxy_modes_tracing", f"{_PROXIES}.get_proxy_mode"
NEEDED = (_RANGES, _CHECK, _MODE, _MEMORY, _UNTRACED, _PROXY_MODE)
"""Private names without which no loop is kept."""

_NUMBERS = itertools.count()
Pairs = Sequence[tuple[int, int]]
"""Which of some tensors, and its axis."""


# ---- sizes


def is_varying(value: Any) -> bool:
    """Whether a number is a symbol, or made of symbols, and not known to be one plain number."""
    return isinstance(value, torch.SymInt) and value.node.maybe_as_int() is None


def is_same_shape(left: Tensor, right: Tensor) -> bool:
    return left.ndim == right.ndim and all(map(is_same_number, left.shape, right.shape))


def state(condition: Any) -> None:
    """Torch may rely on it in the body of a loop.

    From `step < n - 1` torch would infer that n is at least 2, for the whole program: there may be no step at all. So
    nothing is inferred where the condition speaks of more than the step.
    """
    with contextlib.ExitStack() as stack:
        if isinstance(condition, torch.SymBool) and len(condition.node.expr.free_symbols) > 1:
            stack.enter_context(patched(condition.node.shape_env, NAMES[_RANGES].attribute, lambda *_: None))
        lookup(_CHECK)(condition)


# ---- tensors


def memory_of(tensor: Tensor) -> int:
    """The same number for tensors that share memory."""
    return int(attribute(tensor.untyped_storage(), _MEMORY))


# ---- the marks of a loop


@dataclass(frozen=True)
class Begun:
    """What the body of a loop sees in some step."""

    number: int
    """Which loop it is."""
    index: Any
    """The step, from 0, as a symbol."""
    carried: list[Tensor]
    slices: list[Tensor]


def begin(count: Any, initial: Sequence[Tensor], sequences: Sequence[Tensor], growing: Pairs) -> Begun:
    number = next(_NUMBERS)
    flat = [*itertools.chain.from_iterable(growing)]
    index, *rest = torch.ops.anyshape.loop_begin(count, [*initial], [*sequences], flat, number)
    for place, axis in growing:
        note_size_of_a_step(rest[place].shape[axis])
    step = index.item()
    state(step >= 0)
    state(step < count)
    return Begun(number, step, rest[: len(initial)], rest[len(initial) :])


def end(
    count: Any,
    initial: Sequence[Tensor],
    carried: Sequence[Tensor],
    collected: Sequence[Tensor],
    number: int,
    goes_on: Any = ALWAYS,
) -> tuple[list[Tensor], list[Tensor]]:
    """What is carried out of the last step, and what was collected in each."""
    found = torch.ops.anyshape.loop_end(count, [*initial], [*carried], [*collected], number, goes_on)
    return found[: len(initial)], found[len(initial) :]


# ---- passes that leave no trace


@contextlib.contextmanager
def off_the_record() -> Iterator[None]:
    """Inside, torch computes shapes as ever, but the trace does not grow, and symbols that arise are of no concern."""
    mode = lookup(_MODE)()
    with contextlib.ExitStack() as stack:
        _TRACERS.append(_tracer())
        stack.callback(_TRACERS.pop)
        stack.enter_context(lookup(_UNTRACED)())
        if mode is not None and mode.shape_env is not None:
            stack.enter_context(mode.shape_env.ignore_fresh_unbacked_symbols())
        yield


_TRACERS: list[Any] = []
"""Those that were recording when a pass off the record began, one within the other."""


def is_off_the_record() -> bool:
    return bool(_TRACERS)


def _tracer() -> Any:
    mode = lookup(_PROXY_MODE)()
    if mode is not None:
        return mode.tracer
    return _TRACERS[-1] if _TRACERS else None


def calls_kept() -> Callable[[], None]:
    """A way back to the present calls of modules: torch counts those that an exception has left as still open."""
    stack = attribute(_tracer(), f"{_PROXIES}._ModuleStackTracer.module_stack")
    kept = dict(stack or {})

    def restore() -> None:
        if stack is not None:
            stack.clear()
            stack.update(kept)

    return restore


# ---- torch's `map(body, xs, y)`: a loop over the first axis, kept as a loop

# Recognised: `functorch.experimental.control_flow.map`. Torch traces the body into a program within the program, and
# has no translation for that. Put there: the marks of a loop, with the body traced once between them, over slices along
# the first axis; what it returns is stacked.


@contextlib.contextmanager
def _maps_as_loops(used: Used) -> Iterator[None]:
    """Inside, `map` is traced as a loop, under whatever name a model has imported it."""
    function = lookup("torch._higher_order_ops.map.map")
    if not isinstance(function, FunctionType) or missing(NEEDED):
        yield
        return

    def each(body: Callable[..., Any], sequences: Any, *others: Any) -> Any:
        used("control_flow.map: kept as Scan")
        return _stacked_results(body, sequences, *others)

    with patched(_Current, "each", staticmethod(each)), live_code.running([(function, _stand_in.__code__)]):
        yield


class _Current:
    each: Any = None


def _stand_in(f: Any, xs: Any, *args: Any) -> Any:
    """Its code runs in torch's file, which does not know our names."""
    from anyshape.conversion.control_flow.loop_trace import _Current

    return _Current.each(f, xs, *args)


def _stacked_results(body: Callable[..., Any], sequences: Any, *others: Any) -> Any:
    """What the body makes of each slice along the first axis, stacked."""
    leaves, structure = pytree.tree_flatten(sequences)
    count = leaves[0].shape[0]
    exploration = explore()
    begun = begin(count, [], leaves, ())
    for _ in exploration:
        exploration.give(body(pytree.tree_unflatten(begun.slices, structure), *others))
    results, structure = pytree.tree_flatten(exploration.joined())
    _, stacked = end(count, [], [], [one for one in results if isinstance(one, Tensor)], begun.number)
    steps = iter(stacked)
    return pytree.tree_unflatten([next(steps) if isinstance(one, Tensor) else one for one in results], structure)


MAPPED_BODIES = Repair("mapped bodies", _maps_as_loops)
