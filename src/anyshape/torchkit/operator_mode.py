"""A mode of torch's in which every operator of the user's module passes by."""

from __future__ import annotations

import contextlib
import sys
from typing import Self

import torch

from anyshape.torchkit.private_names import TorchDispatchMode


class OperatorMode(TorchDispatchMode):
    """What records operators, or runs them in other arithmetic, inherits from this."""

    supports_higher_order_operators = True  # torch.cond and its kin: one step, as an operator is

    def __init__(self) -> None:
        super().__init__()
        self._open = contextlib.ExitStack()

    def __enter__(self) -> Self:
        # torch.compile, which `map` and its like use in eager, too, leaves a frame out for good that it first meets in
        # a mode, and fails in the next call without one; where it was not loaded yet, nothing has used it
        if "torch._dynamo" in sys.modules:
            self._open.enter_context(torch.compiler.set_stance("force_eager"))
        super().__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._open.close()
