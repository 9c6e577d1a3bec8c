"""Functions of torch that no trace or translation follows, spelled out: covariances, one-hot vectors, losses, steps.

Recognised: `torch.cov` and `torch.corrcoef`, which look whether anything is left to divide by; `F.one_hot` without a
number of classes; `F.ctc_loss`, whose kernel reads the lengths; `F.cross_entropy` of chances or with smoothed labels,
and steps of a quantisation by channels, which torch's translation does not know. Put there: the same in operators
that a trace follows; for CTC an operator of our own, which goes through the steps of time in an ONNX Scan.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import onnx_ir as ir
import torch
import torch.nn.functional as F  # noqa: N812  everybody's name for it
from torch import Tensor

from anyshape.conversion.operators.onnx_words import INT64, counted, literal, number, op, scanned, size_of, whole
from anyshape.conversion.operators.repair import Answer, Repair, Used, answering, know
from anyshape.conversion.speed.operator_table import define

# ---- the repair


def _covariance(
    used: Used, input: Tensor, *, correction: int = 1, fweights: Tensor | None = None,  # noqa: A002  torch's name
    aweights: Tensor | None = None,
) -> Any:  # fmt: skip
    used("torch.cov: divided without asking")
    rows = input if input.ndim == 2 else input.reshape(1, -1)
    rows = rows if rows.is_floating_point() else rows.to(torch.get_default_dtype())
    weights = torch.ones_like(rows[0])
    for given in (fweights, aweights):
        weights = weights if given is None else weights * given.reshape(-1)
    total = weights.sum()
    explained = total if aweights is None else (weights * aweights.reshape(-1)).sum()
    left = (total - correction * explained / total).clamp(min=0)
    apart = rows - (rows * weights).sum(1, keepdim=True) / total
    return (apart @ (apart * weights).mT / left).squeeze()


def _correlation(used: Used, input: Tensor) -> Any:  # noqa: A002  torch's name
    covariance = _covariance(used, input)
    if covariance.ndim == 0:
        return covariance / covariance
    spread = covariance.diagonal().sqrt()
    return (covariance / spread[:, None] / spread).clamp(-1, 1)


def _one_hot(used: Used, tensor: Tensor, num_classes: int = -1) -> Any:
    if not isinstance(num_classes, int) or num_classes != -1:
        return NotImplemented
    used("F.one_hot: as many classes as the values tell")
    classes = (tensor.max() + 1).item()
    know(classes >= 0)
    return (tensor.unsqueeze(-1) == torch.arange(classes, device=tensor.device)).to(torch.int64)


def _cross_entropy(
    used: Used, input: Tensor, target: Tensor, weight: Tensor | None = None,  # noqa: A002  torch's name
    size_average: bool | None = None, ignore_index: int = -100, reduce: bool | None = None, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    of_chances = target.is_floating_point()
    if not (label_smoothing or of_chances) or size_average is not None or reduce is not None:
        return NotImplemented
    used("F.cross_entropy: of chances, or smoothed")
    axis = min(input.ndim - 1, 1)
    classes, logs = input.shape[axis], input.log_softmax(axis)
    weighted = logs if weight is None else logs * weight.reshape(-1, *[1] * (input.ndim - 1 - axis))
    if of_chances:
        loss = -((target * (1 - label_smoothing) + label_smoothing / classes) * weighted).sum(axis)
        return loss.mean() if reduction == "mean" else loss.sum() if reduction == "sum" else loss
    is_there = target != ignore_index
    spread = torch.where(is_there, -weighted.sum(axis), 0)
    if reduction != "none":
        spread = spread.sum()
    if reduction == "mean":
        share = is_there if weight is None else torch.where(is_there, weight[torch.where(is_there, target, 0)], 0)
        spread = spread / share.sum()
    aimed = F.nll_loss(logs, target, weight, ignore_index=ignore_index, reduction=reduction)
    return (1 - label_smoothing) * aimed + label_smoothing / classes * spread


def _ctc_loss(
    used: Used, log_probs: Tensor, targets: Tensor, input_lengths: Any, target_lengths: Any, blank: int = 0,
    reduction: str = "mean", zero_infinity: bool = False,
) -> Any:  # fmt: skip
    if log_probs.ndim != targets.ndim + 1:  # targets one behind the other
        return NotImplemented
    used("F.ctc_loss: step by step")
    batched = log_probs.ndim == 3
    steps, labels = (log_probs, targets) if batched else (log_probs.unsqueeze(1), targets.unsqueeze(0))
    ends, lengths = (torch.as_tensor(one, dtype=torch.int64).reshape(-1) for one in (input_lengths, target_lengths))
    loss = torch.ops.anyshape_sizes.ctc_loss(steps, labels.to(torch.int64), ends, lengths, blank)
    if zero_infinity:
        loss = torch.where(loss == math.inf, 0.0, loss)
    if reduction == "mean":
        return (loss / lengths.clamp(min=1)).mean()
    return loss.sum() if reduction == "sum" else loss if batched else loss.squeeze(0)


def _quantised_and_back(
    used: Used, input: Tensor, scale: Tensor, zero_point: Tensor, axis: int, quant_min: int, quant_max: int,  # noqa: A002
) -> Any:  # fmt: skip
    used("torch.fake_quantize_per_channel_affine: rounded to steps of each channel")
    step, zero = (one.reshape(-1, *[1] * (input.ndim - 1 - axis % input.ndim)) for one in (scale, zero_point))
    steps = (input * (1 / step)).round().to(torch.int64) + zero.to(torch.int64)
    return (steps.clamp(quant_min, quant_max) - zero).to(input.dtype) * step


_COVARIANCES: dict[str, Answer] = {"cov": _covariance, "corrcoef": _correlation}
_ANSWERS: dict[tuple[Any, str], Answer] = {
    **{(owner, name): answer for owner in (torch, Tensor) for name, answer in _COVARIANCES.items()},
    (F, "one_hot"): _one_hot,
    (F, "ctc_loss"): _ctc_loss,
    (F, "cross_entropy"): _cross_entropy,
    (torch, "fake_quantize_per_channel_affine"): _quantised_and_back,
}
SPELLED_OUT = Repair("functions spelled out", answering(_ANSWERS), always=True)

define(
    "anyshape_sizes::ctc_loss",
    "(Tensor steps, Tensor labels, Tensor ends, Tensor lengths, int blank) -> Tensor",
    lambda steps, *_others: steps.new_empty((steps.shape[1],)),
)

# ---- ONNX


def _onnx_ctc_loss(steps: ir.Value, labels: ir.Value, ends: ir.Value, lengths: ir.Value, blank: int) -> Any:
    """Logarithms of the chances of all ways to each place among the labels with blanks between; `steps` is (time,
    batch, classes), `labels` (batch, labels).
    """
    between = op.Expand(literal(blank), op.Shape(labels))
    pairs = op.Concat(op.Unsqueeze(between, whole(2)), op.Unsqueeze(labels, whole(2)), axis=2)
    first = op.Slice(between, whole(0), whole(1), whole(1))
    places = op.Concat(op.Reshape(pairs, op.Concat(size_of(labels, 0), whole(-1), axis=0)), first, axis=1)
    places = op.Max(places, literal(0))  # behind the end of a row anything may stand
    none, start = number(-math.inf, steps), number(0, steps)
    index = counted(op.Shape(places, start=1, end=2))
    earlier = op.Pad(op.Slice(places, whole(0), whole(-2), whole(1)), whole(0, 2, 0, 0), literal(blank))
    may_skip = op.Not(op.Equal(places, earlier))
    begin = op.Expand(op.Where(op.Equal(index, literal(0)), start, none), op.Shape(places))

    def behind(ways: Any, by: int) -> Any:
        return op.Slice(op.Pad(ways, whole(0, by, 0, 0), none), whole(0), op.Shape(places, start=1, end=2), whole(1))

    def step(ways: Any, now: Any, time: Any) -> list[Any]:
        joined = _log_of_sum(ways, behind(ways, 1), op.Where(may_skip, behind(ways, 2), none), zero=start)
        further = op.Add(joined, op.GatherElements(now, places, axis=1))
        return [op.Where(op.Less(time, op.Unsqueeze(ends, whole(1))), further, ways)]

    times = counted(size_of(steps, 0))
    kinds = [steps.dtype, steps.dtype, INT64]
    (ways,) = scanned([begin], [steps, times], kinds, step, last=True)
    last = op.Unsqueeze(op.Mul(lengths, literal(2)), whole(1))
    is_end = op.Or(op.Equal(index, last), op.Equal(index, op.Sub(last, literal(1))))
    kept = op.Where(is_end, ways, none)
    most = _finite(op.ReduceMax(kept, whole(1), keepdims=1), start)
    total = op.Log(op.ReduceSum(op.Exp(op.Sub(kept, most)), whole(1), keepdims=0))
    return op.Neg(op.Add(total, op.Squeeze(most, whole(1))))


def _log_of_sum(*logs: Any, zero: Any) -> Any:
    """The largest one is taken out; where all are -inf, so is the result."""
    most = _finite(op.Max(*logs), zero)
    return op.Add(op.Log(op.Sum(*(op.Exp(op.Sub(one, most)) for one in logs))), most)


def _finite(value: Any, otherwise: Any) -> Any:
    return op.Where(op.IsInf(value), otherwise, value)


TRANSLATIONS: dict[str, Callable[..., Any]] = {"anyshape_sizes::ctc_loss": _onnx_ctc_loss}
