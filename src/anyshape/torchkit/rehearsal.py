"""Operators that may end the process run in a copy of it first, whose death is an answer.

A size that is tried need not fit the others. Public functions look at what they are given; an operator of the user's
own, and what torch calls in its own derivatives with sizes that it knows, may read and write beside it instead.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from anyshape.sizes import budgets
from anyshape.torchkit.private_names import lookup

_TORCHS_OWN = {"aten", "prim", "prims", "profiler", "inductor", "higher_order", "_c10d_functional"}
_UNGUARDED = {"aten::_scaled_dot_product_flash_attention_for_cpu"}
"""Which divide by a size that the public function never gives them."""
_REPEATS = 4
"""One write beside a tensor may meet nothing; what was freed before is met by the next."""
_node_of_derivative = lookup("torch._C._current_autograd_node")


def may_end_the_process(operator: Any) -> bool:
    """Whether nobody promises that it looks at the sizes that it is given."""
    name = operator.name().partition(".")[0]
    if operator.namespace not in _TORCHS_OWN or name in _UNGUARDED:
        return True
    is_of_derivatives = _node_of_derivative is not None and _node_of_derivative() is not None
    return "backward" in name and not is_of_derivatives  # in a derivative, sizes are those that torch has kept


def survives(operator: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether a copy of this process comes back from the call, with a result or with an exception."""
    if not hasattr(os, "fork"):
        return True
    with warnings.catch_warnings(action="ignore"):  # of threads: the copy waits for none of them
        process = os.fork()
    if process == 0:
        _run_and_leave(operator, args, kwargs)
    return os.WIFEXITED(os.waitpid(process, 0)[1])


def _run_and_leave(operator: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)  # the C library tells of a broken heap there
        _leave_no_traces()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, budgets.SECONDS_OF_A_REHEARSAL)
        torch.set_num_threads(1)  # threads are not copied, and those of a pool would be waited for
        for _ in range(_REPEATS):
            operator(*args, **kwargs)
        _shake_heap()
    finally:
        os._exit(0)  # whatever it raises, it will raise here as well


def _leave_no_traces() -> None:
    """Of a death that is expected: neither a stack nor a core."""
    import resource  # not on Windows, which has no copies either

    faulthandler.disable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _shake_heap() -> None:
    """The C library looks at its lists where it joins what is free, and ends a process that wrote over them."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def signature_of_call(operator: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """What two calls have in common of which one need not be rehearsed: all but the values of tensors."""
    return repr((operator.name(), _without_values([*args, kwargs])))


def _without_values(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return tuple(value.shape), value.dtype, value.stride() if value.layout is torch.strided else value.layout
    if isinstance(value, (list, tuple)):
        return [_without_values(one) for one in value]
    if isinstance(value, Mapping):
        return {name: _without_values(one) for name, one in value.items()}
    return value
