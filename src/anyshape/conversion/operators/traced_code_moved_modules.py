"""`self.head.to(x.dtype)` in forward: a module that is already so is left alone.

Recognised: a module moved or cast during a trace, to where and what it already is. Torch would exchange its parameters
for others, which a trace does not allow. Put there: the module itself, as nothing would have changed.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from anyshape.conversion.operators.repair import Repair, Used
from anyshape.torchkit.patches import patched


def _is_already(module: nn.Module, wanted: tuple[Any, ...]) -> bool:
    tensors = list(itertools.chain(module.parameters(), module.buffers()))
    dtypes = [one for one in wanted if isinstance(one, torch.dtype)]
    devices = [torch.device(one) for one in wanted if isinstance(one, (str, torch.device))]
    if len(dtypes) + len(devices) != len(wanted):
        return False
    floating = [tensor for tensor in tensors if tensor.is_floating_point()]
    return all(t.dtype in dtypes for t in floating if dtypes) and all(t.device in devices for t in tensors if devices)


@contextlib.contextmanager
def _apply(used: Used) -> Iterator[None]:
    original = nn.Module.to

    def to(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
        named = [value for name, value in kwargs.items() if name in ("dtype", "device") and value is not None]
        if len(named) == len(kwargs) and _is_already(self, (*args, *named)):
            used(f"{type(self).__name__}.to() in forward: left as it is, since it is so already")
            return self
        return original(self, *args, **kwargs)

    with patched(nn.Module, "to", to):
        yield


# always right, and without it such a model is never traced
MOVED_MODULES = Repair("modules moved in forward", _apply, always=True)
