"""`torch.equal`, `torch.allclose` and `torch.is_nonzero`: a look at values, written as what is looked at.

Recognised: the comparison of two tensors to a plain truth value, for which a trace has no answer. Put there: the same
comparison by elements and the question whether all of them hold, which a trace that takes both sides of a branch can
follow; where the shapes differ, `equal` is false, as in torch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor

from anyshape.conversion.operators.repair import Repair, Used
from anyshape.conversion.operators.repair_answering import Answer, answered


@contextlib.contextmanager
def _apply(used: Used) -> Iterator[None]:
    def equal(input: Tensor, other: Tensor) -> bool:  # noqa: A002
        used("torch.equal: compared in the file")
        return input.shape == other.shape and bool((input == other).all())

    def allclose(
        input: Tensor,  # noqa: A002
        other: Tensor,
        rtol: float = 1e-5,
        atol: float = 1e-8,
        equal_nan: bool = False,
    ) -> bool:
        used("torch.allclose: compared in the file")
        return bool(torch.isclose(input, other, rtol, atol, equal_nan).all())

    def is_nonzero(input: Tensor) -> bool:  # noqa: A002
        used("torch.is_nonzero: asked in the file")
        return bool(input.reshape(()) != 0)

    kinds: dict[str, Answer] = {"equal": equal, "allclose": allclose, "is_nonzero": is_nonzero}
    with answered({(owner, name): answer for owner in (torch, Tensor) for name, answer in kinds.items()}):
        yield


COMPARISONS = Repair("comparisons", _apply)
