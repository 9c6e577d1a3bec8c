"""Which lengths of a model's tensors are tables: one size beyond each is run, so features should not be among them."""

from __future__ import annotations

import torch
from torch import nn

from anyshape.model.kept_state import table_lengths


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
