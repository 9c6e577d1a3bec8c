"""Runs in float64 without a wide copy of large weights."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from anyshape.sizes import budgets
from anyshape.torchkit import precision


@pytest.fixture(autouse=True)
def _small_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "LARGE_OPERAND", 2000)
    monkeypatch.setattr(budgets, "BYTES_OF_A_BLOCK", 1000)
    monkeypatch.setattr(budgets, "LARGEST_WIDE_COPY", 0)
    torch.manual_seed(0)


class Widest(TorchDispatchMode):
    """The bytes of the largest float64 tensor that any operator makes."""

    most = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if isinstance(result, torch.Tensor) and result.dtype == torch.float64:
            self.most = max(self.most, result.untyped_storage().nbytes())
        return result


def in_float64(model: nn.Module, *args: torch.Tensor) -> tuple[torch.Tensor, int]:
    with torch.no_grad(), Widest() as widest, precision.computing_in(torch.float64, model):
        result = model(*args)
    return result, widest.most


class Words(nn.Module):
    """A table of words in all its uses."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(300, 8)
        self.bags = nn.EmbeddingBag(300, 8, mode="mean")
        self.inner = nn.Linear(8, 8)
        self.head = nn.Linear(8, 300)
        self.head.weight = self.table.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        hidden = self.table(tokens) + self.bags(tokens).unsqueeze(1) + self.table.weight[tokens[0]].mean(0)
        scores = self.head(self.inner(hidden)) + hidden @ self.table.weight.t()
        return scores + (self.table.weight @ hidden[0].t()).t()


def test_a_table_of_words_is_never_widened() -> None:
    model, tokens = Words().eval(), torch.randint(0, 300, (1, 3))
    result, most = in_float64(model, tokens)
    wanted = copy.deepcopy(model).double()(tokens)
    assert result.dtype == torch.float64
    assert torch.allclose(result, wanted, rtol=1e-13, atol=1e-13)
    assert most < model.table.weight.numel() * 8


def test_a_row_that_bags_leave_out_is_left_out() -> None:
    model = nn.EmbeddingBag(300, 8, padding_idx=7).eval()
    tokens = torch.tensor([[7, 1, 2], [3, 7, 7]])
    result, _ = in_float64(model, tokens)
    assert torch.allclose(result, copy.deepcopy(model).double()(tokens), rtol=1e-13)


class Layers(nn.Module):
    """Operators that compare the types of their arguments before anybody is asked, and parts that others read."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(32, 32, 3, padding=1)
        self.norm = nn.BatchNorm1d(32)
        self.lstm = nn.LSTM(32, 32, batch_first=True)
        self.attention = nn.MultiheadAttention(32, 2, batch_first=True)
        self.encoder = nn.TransformerEncoderLayer(32, 2, 64, batch_first=True)
        self.gain = nn.Parameter(torch.randn(32, 32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.norm(self.conv(torch.relu(x).transpose(1, 2))).transpose(1, 2)
        x = self.lstm(x)[0] @ self.gain
        return self.encoder(self.attention(x, x, x)[0])


def test_layers_of_every_kind_compute_in_float64() -> None:
    model, x = Layers().eval(), torch.randn(2, 6, 32)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    storages = [parameter.data_ptr() for parameter in model.parameters()]
    result, _ = in_float64(model, x)
    wanted = copy.deepcopy(model).double()(x.double())
    assert torch.allclose(result, wanted, rtol=1e-12, atol=1e-12)
    assert not torch.allclose(model(x).double(), wanted, rtol=1e-12, atol=1e-12)
    assert [parameter.data_ptr() for parameter in model.parameters()] == storages
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


CONVOLUTIONS = [
    nn.Conv2d(6, 20, 5, padding=2), nn.Conv2d(6, 20, 5, stride=2, dilation=2, bias=False), nn.Conv1d(6, 30, 9),
    nn.Conv2d(6, 12, 9, groups=2), nn.ConvTranspose2d(6, 20, 5, stride=2),
]  # fmt: skip


@pytest.mark.parametrize("layer", CONVOLUTIONS, ids=str)
def test_large_convolutions_compute_in_float64(layer: nn.Module) -> None:
    images = torch.randn(2, 6, *[17] * (layer.weight.dim() - 2))
    model = nn.Sequential(nn.ReLU(), layer).eval()
    result, most = in_float64(model, images)
    assert torch.allclose(result, copy.deepcopy(model).double()(images.double()), rtol=1e-12, atol=1e-12)
    if layer.groups == 1 and not layer.transposed:
        assert most < layer.weight.numel() * 8 + result.nbytes


class Counting(nn.Module):
    """Writes to a buffer from one call of a part to the next."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("sums", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.sums += x.sum(0)
        return x + self.sums


def test_what_a_part_writes_lasts_until_its_next_call() -> None:
    part = Counting()
    model, x = nn.Sequential(part, part, nn.Linear(4, 600)), torch.randn(3, 4)
    result, _ = in_float64(copy.deepcopy(model), x)
    assert torch.allclose(result.float(), model(x), rtol=1e-5, atol=1e-5)


class Failing(nn.Linear):
    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002  nn.Linear's own name
        super().forward(input)
        raise ValueError("in the middle")


@pytest.mark.parametrize("limit", [0, 2**30])
def test_a_failure_gives_the_parameters_back(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(budgets, "LARGEST_WIDE_COPY", limit)
    model = nn.Sequential(nn.Linear(8, 100), Failing(100, 8))
    storages = [parameter.data_ptr() for parameter in model.parameters()]
    with pytest.raises(ValueError, match="in the middle"):
        in_float64(model, torch.randn(2, 8))
    assert [parameter.data_ptr() for parameter in model.parameters()] == storages
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert not nn.modules.module._global_forward_hooks


def test_copies_are_kept_until_somebody_writes() -> None:
    copies, parameter = precision.WideCopies(), nn.Parameter(torch.ones(3))
    first = copies.of(parameter, torch.float64)
    assert copies.of(parameter, torch.float64) is first
    assert copies.of(nn.Parameter(torch.ones(3)), torch.float64) is not first
    with torch.no_grad():
        parameter.mul_(2)
    assert copies.of(parameter, torch.float64).tolist() == [2.0] * 3
    parameter.data = torch.full((3,), 5.0)
    assert copies.of(parameter, torch.float64).tolist() == [5.0] * 3


def test_random_numbers_are_those_of_the_narrow_type() -> None:
    def drawn() -> list[torch.Tensor]:
        torch.manual_seed(0)
        return [torch.rand(3), torch.randn(3), torch.randint(9, (3,)), torch.rand(2, dtype=torch.float64)]

    narrow = drawn()
    with precision.computing_in(torch.float64, nn.Identity()):
        wide = drawn()
    assert [value.dtype for value in wide] == [torch.float64, torch.float64, torch.int64, torch.float64]
    assert all(torch.equal(one, other.to(one.dtype)) for one, other in zip(wide, narrow, strict=True))
