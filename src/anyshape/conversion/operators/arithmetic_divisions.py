"""`torch.div(n, 2, rounding_mode="floor")` of a size: a whole number that is still a size.

Recognised: a division of two numbers, one of them a size of the trace, rounded to a whole number. Torch makes a tensor
of it, and what is cut or viewed by it has a size that comes from values. Put there: the division of sizes. It rounds
down; towards zero is the same where neither number can be negative, and is left to torch where one can.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import SymInt

from anyshape.conversion.operators.recurrent import is_known
from anyshape.conversion.operators.repair import Repair, Used
from anyshape.conversion.operators.repair_answering import answered


@contextlib.contextmanager
def _apply(used: Used) -> Iterator[None]:
    def div(input: Any, other: Any, *, rounding_mode: str | None = None, **others: Any) -> Any:  # noqa: A002
        if others or rounding_mode is None or not _is_of_sizes(input, other):
            return NotImplemented
        if rounding_mode == "trunc" and not (is_known(input >= 0) and is_known(other > 0)):
            return NotImplemented
        used("torch.div of a size: stays a size")
        return input // other

    with answered({(torch, name): div for name in ("div", "divide")}):
        yield


def _is_of_sizes(*numbers: Any) -> bool:
    whole = all(isinstance(number, int | SymInt) for number in numbers)
    return whole and any(isinstance(number, SymInt) for number in numbers)


DIVISIONS = Repair("torch.div of sizes", _apply)
