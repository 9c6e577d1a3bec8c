"""Files that are wrong in few elements, or beside values that are far larger, or where a decision falls otherwise.

Each file is what the function gives up to a size of 8; the model gives something else beyond. `check` must say so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import anyshape

torch.set_num_threads(1)
Function = Callable[..., Tensor]


def _drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


@dataclass(frozen=True)
class Pair:
    name: str
    small: Function
    large: Function
    x: Tensor
    dims: str = "n m"


class Forked(nn.Module):
    def __init__(self, small: Function, large: Function) -> None:
        super().__init__()
        self.small, self.large = small, large

    def forward(self, x: Tensor) -> Tensor:
        return self.large(x) if x.shape[0] > 8 else self.small(x)


def _masked(value: float) -> Function:
    return lambda x, times=1.0: (x * times).masked_fill(x > 0.5, value)


def _last_largest(x: Tensor) -> Tensor:
    """The last of several maxima, where `argmax` gives the first."""
    return x.shape[-1] - 1 - x.flip(-1).argmax(-1)


def _twice(function: Function) -> Function:
    return lambda x: function(x, 2.0)


X, EVEN = _drawn(5, 6), torch.arange(30.0).reshape(5, 6) * 2
HALVES = torch.arange(30.0).reshape(5, 6) / 2
PAIRS = (
    *(
        Pair(f"masked by {value:.1g}", _masked(value), _twice(_masked(value)), X)
        for value in (-1e9, float(torch.finfo(torch.float32).min), -1e4, 1e5)
    ),
    Pair("scores left out", lambda x: (x * 0).masked_fill(x > 0.5, -1e9), _masked(-1e9), X),
    Pair(
        "probabilities beside timestamps",
        lambda x: torch.cat([x.softmax(-1), x * 0 + 1.7e9], 1),
        lambda x: torch.cat([(x * 1.1).softmax(-1), x * 0 + 1.7e9], 1), X,
    ),
    Pair(
        "forces beside energies",
        lambda x: torch.cat([x.tanh(), 1e7 + x * 1e3], 1), lambda x: torch.cat([x.tanh() * 1.01, 1e7 + x * 1e3], 1), X,
    ),
    Pair("two scales", lambda x: torch.cat([x, x * 1e6], 1), lambda x: torch.cat([x * 1.001, x * 1e6], 1), X),
    Pair("floor of exact halves", lambda x: torch.floor(x * 0.5), lambda x: torch.ceil(x * 0.5 + 0.5), EVEN),
    Pair("rounding of halves", torch.round, lambda x: torch.floor(x + 0.5), HALVES),
    Pair("flag of what is zero, as a number", lambda x: (x.relu() > 0).float(), lambda x: (x.relu() >= 0).float(), X),
    Pair("flag of what is zero", lambda x: x.relu() > 0, lambda x: x.relu() >= 0, X),
    Pair("sign of what is zero", lambda x: x.relu().sign(), torch.ones_like, X),
    Pair("first and last of equals", lambda x: x.relu().argmax(-1), lambda x: _last_largest(x.relu()), -X.abs(), "n 6"),
    Pair(
        "one-hot of equals",
        lambda x: F.one_hot(x.round().clamp(-1, 1).argmax(-1), 6).float(),
        lambda x: F.one_hot(_last_largest(x.round().clamp(-1, 1)), 6).float(), X, "n 6",
    ),
    Pair("counts", lambda x: (x > 0).sum(-1), lambda x: (x > 0.1).sum(-1), X),
    Pair("a copy in part", lambda x: torch.cat([x, x / 3]), lambda x: torch.cat([x * (1 + 1e-6), x / 3]), X),
    Pair(
        "zero or next to it",
        lambda x: x - x.amax(-1, keepdim=True), lambda x: x - x.amax(-1, keepdim=True) - 1e-6, X,
    ),
)  # fmt: skip


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_a_few_wrong_elements_are_found(pair: Pair, tmp_path: Path) -> None:
    path, dims = tmp_path / "model.onnx", {"x": pair.dims}
    anyshape.export(Forked(pair.small, pair.small).eval(), (pair.x,), path, dims=dims, quick=True)
    with pytest.raises(anyshape.ExportError) as caught:
        anyshape.check(path, Forked(pair.small, pair.large).eval(), (pair.x,), dims=dims)
    assert [finding.rule for finding in caught.value.result.findings] == ["wrong-values"]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
def test_what_is_right_in_every_element_is_accepted(pair: Pair, tmp_path: Path) -> None:
    path, dims = tmp_path / "model.onnx", {"x": pair.dims}
    anyshape.export(Forked(pair.large, pair.large).eval(), (pair.x,), path, dims=dims, quick=True)
    result = anyshape.check(path, Forked(pair.large, pair.large).eval(), (pair.x,), dims=dims)
    assert result.verdict == "checked"


RIGHT: dict[str, tuple[Function, Tensor]] = {
    "variance and mean": (lambda x: torch.stack(torch.var_mean(x, -1, unbiased=False)), X),
    "topk of equals": (lambda x: x.relu().topk(3).indices, X),
    "sort of equals": (lambda x: x.round().sort(-1).indices, X),
    "sigmoid of what is far below zero": (lambda x: torch.sigmoid(x * 9), X),
    "silu": (lambda x: F.silu(x * 9), X),
    "gelu": (lambda x: F.gelu(x * 3), X),
    "elu": (lambda x: F.elu(x * 1e-3), X),
    "differences that cancel": (lambda x: x - x.mean(-1, keepdim=True), X + 100),
    "layer norm of a large mean": (lambda x: F.layer_norm(x, (6,)), X + 300),
    "log of a sum": (lambda x: x.logsumexp(-1), X - 1.7),
    "spectrum of real numbers": (lambda x: torch.view_as_real(torch.fft.rfft(x.flatten())), X),
    "what overflows to inf": (lambda x: torch.exp(x * 60), X),
}


@pytest.mark.parametrize("name", RIGHT)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_rounding_alone_is_no_reason_to_refuse(name: str, seed: int, tmp_path: Path) -> None:
    function, x = RIGHT[name]
    dims = {"x": "n 6"}
    result = anyshape.export(Forked(function, function), (x,), tmp_path / "m.onnx", dims=dims, seed=seed)
    assert result.verdict == "checked"
