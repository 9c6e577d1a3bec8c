"""Where a module builds what it keeps, and where it may read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import anyshape
from anyshape.model.kept_state import kept_lengths, kept_sizes, table_lengths
from anyshape.sizes.notation import SizeRange
from tests.running import is_right


class Ramp(nn.Module):
    """Multiplies by a ramp that it keeps; `stale` is what it holds for length 6, `longest` up to where it reads."""

    def __init__(self, kept: Tensor, *, at_most: bool) -> None:
        super().__init__()
        self.ramp, self.at_most = kept, at_most
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        n = x.shape[1]
        if n > len(self.ramp) if self.at_most else n != len(self.ramp):
            self.ramp = torch.arange(n).float()
        return x * self.ramp[:n]


@pytest.mark.parametrize("at_most", [True, False])
@pytest.mark.parametrize("length", [6, 15])
def test_a_module_that_kept_something_exports_for_all_sizes(length: int, at_most: bool, tmp_path: Path) -> None:
    model, path = Ramp(torch.arange(length).float(), at_most=at_most).eval(), tmp_path / "model.onnx"
    kept = model.ramp
    result = anyshape.export(model, torch.randn(3, 6), path, dims={"x": "batch seq"}, quick=True)
    assert [attempt.strategy for attempt in result.attempts] == ["torch.export"]
    assert model.ramp is kept
    assert model.calls == 0
    for sizes in ((1, 1), (3, 6), (2, length), (1, length + 1), (2, 33)):
        again = Ramp(torch.arange(length).float(), at_most=at_most).eval()
        assert is_right(path, again, (torch.randn(*sizes),))


@pytest.mark.parametrize("length", [6, 15])
def test_what_was_kept_and_is_not_what_would_be_built_is_used_at_its_size_alone(length: int, tmp_path: Path) -> None:
    model, path = Ramp(torch.ones(length), at_most=False).eval(), tmp_path / "model.onnx"
    anyshape.export(model, torch.randn(3, 6), path, dims={"x": "batch seq"}, quick=True)
    for sizes in ((1, 1), (3, 6), (2, length), (1, length + 1), (2, 33)):
        again = Ramp(torch.ones(length), at_most=False).eval()
        assert is_right(path, again, (torch.randn(*sizes),))


class Holder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(50))
        self.register_buffer("mask", torch.zeros(12, 12))
        self.tables: dict[Any, Any] = {(7, 9): [torch.zeros(3)], 20: None, "name": None}
        self.child = nn.Conv2d(31, 31, 3)


def test_lengths_are_of_what_is_kept_beside_parameters_and_of_keys() -> None:
    assert kept_lengths(Holder()) == (3, 7, 9, 12, 20)


def test_each_dim_is_tried_at_the_lengths_that_it_may_take() -> None:
    ranges = {"batch": SizeRange(1, 4), "seq": SizeRange(1)}
    assert kept_sizes({"batch": 2, "seq": 5}, ranges, (3, 7)) == [
        {"batch": 3, "seq": 5},
        {"batch": 2, "seq": 3},
        {"batch": 2, "seq": 7},
    ]


class GivesItsBuffer(nn.Module):
    """Writes into a buffer and returns a view of it."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(4, 3))

    def forward(self, x: Tensor) -> Tensor:
        rows = self.seen[: x.shape[0]]
        rows.copy_(x * 2)
        return rows


def test_an_output_that_is_a_view_of_a_buffer_is_read_before_the_buffer_is_put_back(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    anyshape.export(GivesItsBuffer().eval(), torch.randn(2, 3), path, dims={"x": "batch 3"}, sizes={"batch": "1..4"})
    for batch in (1, 2, 3, 4):
        assert is_right(path, GivesItsBuffer().eval(), (torch.randn(batch, 3),))


# ---- which lengths of a model's tensors are tables: one size beyond each is run, so features should not be among them


class Positions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros(1, 50, 6))
        self.register_buffer("window", torch.ones(40))


def test_layers_hold_features_and_no_tables() -> None:
    layers = nn.Sequential(
        nn.Conv2d(3, 64, 7), nn.BatchNorm2d(64), nn.Linear(128, 256), nn.LayerNorm(30), nn.GroupNorm(4, 32),
        nn.LSTM(11, 13), nn.ConvTranspose1d(17, 19, 5),
    )  # fmt: skip
    assert table_lengths(layers) == []


def test_embeddings_buffers_and_parameters_of_other_modules_are_tables() -> None:
    model = nn.Sequential(nn.Embedding(512, 64), nn.EmbeddingBag(77, 8), Positions())
    assert table_lengths(model) == [6, 40, 50, 77, 512]
    assert table_lengths(model, least_axes=2) == [6, 50, 77, 512]


class Block(nn.Module):
    """With a kernel, and a table beside it."""

    def __init__(self) -> None:
        super().__init__()
        self.kernel_size = 3
        self.weight, self.positions = nn.Parameter(torch.zeros(8, 8)), nn.Parameter(torch.zeros(1, 100))


class Positioned(nn.Embedding):
    def __init__(self) -> None:
        super().__init__(512, 64)
        self.register_buffer("positions", torch.zeros(100, 64))


def test_layers_of_others_may_hold_tables_beside_their_weights() -> None:
    assert table_lengths(Block()) == [100]
    assert table_lengths(Positioned()) == [64, 100, 512]
