"""Grouped products of mixtures of experts in float32: torch's shape function knows bfloat16 alone, its kernel does not.

Recognised: `F.grouped_mm` of other types. Put there: an operator of the same meaning, translated by
`conversion/operators/experts_experts.py`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812  everybody's name for it
from torch import Tensor

from anyshape.conversion.operators.repair import Repair, Used
from anyshape.conversion.operators.repair_answering import answered
from anyshape.torchkit.custom_operators import register_fake


def _shape(x: Tensor, weight: Tensor, ends: Tensor) -> Tensor:
    if weight.ndim == 3:
        return x.new_empty((x.shape[0], weight.shape[2]))
    return x.new_empty((ends.shape[0], x.shape[0], weight.shape[1]))


torch.library.define("anyshape_sizes::grouped_mm", "(Tensor x, Tensor weight, Tensor ends) -> Tensor")
register_fake("anyshape_sizes::grouped_mm", _shape)


@contextlib.contextmanager
def _apply(used: Used) -> Iterator[None]:
    def answer(mat_a: Tensor, mat_b: Tensor, *, offs: Tensor | None = None, **named: Any) -> Any:
        if mat_a.ndim != 2 or offs is None or any(value is not None for value in named.values()):
            return NotImplemented
        used("F.grouped_mm: a product for each group")
        return torch.ops.anyshape_sizes.grouped_mm(mat_a, mat_b, offs)

    with answered({(F, "grouped_mm"): answer}):
        yield


EXPERTS = Repair("grouped products", _apply)
