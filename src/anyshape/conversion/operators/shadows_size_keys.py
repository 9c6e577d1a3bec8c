"""What is kept under a size: `self.grids[height, width]`, a function under `functools.lru_cache`.

Recognised: a size of the trace that is hashed, which torch refuses, and a call of a cached function with such a size.
Put there: a hash that no plain number has, and the function without its cache. The model then finds nothing and builds
anew, as it does in PyTorch at a size that it never saw. Where it did see one, it must have kept the same: the check
runs those sizes, and those that stand as keys in the code that asks.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import itertools
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import torch

from anyshape.conversion.operators.repair import Repair, Used
from anyshape.conversion.operators.shadows import model_classes, model_globals, shadowed
from anyshape.torchkit.patches import patched

_CACHED: Any = type(functools.lru_cache(lambda: None))
_SALT = itertools.count()


def _hash(used: Used) -> Callable[[torch.SymInt], int]:
    salt = (torch.SymInt, next(_SALT))  # what a cache out of reach kept from an earlier trace is not found in this one

    def of(size: torch.SymInt) -> int:
        known = size.node.maybe_as_int()
        if known is not None:
            return hash(known)
        frame = inspect.currentframe()
        asking = frame.f_back if frame is not None else None
        used("what is kept under a size is built for every size", suspects=_keys_at(asking) if asking else ())
        return hash((*salt, size.node.expr))

    return of


def _keys_at(frame: FrameType) -> set[int]:
    """Whole numbers in the code that hashes a size, and keys of the tables that it can see."""
    code = frame.f_code
    seen = [*code.co_consts, *frame.f_locals.values(), *(frame.f_globals.get(name) for name in code.co_names)]
    found: set[int] = set()
    for value in seen:
        keys = list(value) if isinstance(value, (dict, set, frozenset, tuple)) else [value]
        flat = itertools.chain.from_iterable(key if isinstance(key, tuple) else (key,) for key in keys)
        found.update(number for number in flat if type(number) is int and number > 0)
    return found


def _uncached(function: Any, used: Used) -> Callable[..., Any]:
    @functools.wraps(function.__wrapped__)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not any(map(_holds_size, (*args, *kwargs.values()))):
            return function(*args, **kwargs)
        used(f"{function.__qualname__}: called without its cache")
        return function.__wrapped__(*args, **kwargs)

    call.cache_info, call.cache_clear = function.cache_info, function.cache_clear  # type: ignore[attr-defined]
    return call


def _holds_size(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(map(_holds_size, value))
    return isinstance(value, (torch.SymInt, torch.SymFloat))


@contextlib.contextmanager
def _apply(used: Used) -> Iterator[None]:
    functions = {id(f): _uncached(f, used) for names in model_globals() for f in names.values() if type(f) is _CACHED}
    with contextlib.ExitStack() as stack:
        stack.enter_context(shadowed({}, functions))
        for kind in model_classes():
            for name, value in list(vars(kind).items()):
                if type(value) is _CACHED:
                    stack.enter_context(patched(kind, name, _uncached(value, used)))
                elif isinstance(value, staticmethod) and type(value.__func__) is _CACHED:
                    stack.enter_context(patched(kind, name, staticmethod(_uncached(value.__func__, used))))
        stack.enter_context(patched(torch.SymInt, "__hash__", _hash(used)))
        yield


SIZE_KEYS = Repair("size keys", _apply)
