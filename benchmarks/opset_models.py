"""Small models of all kinds, with which every opset is tried: a call and its dims for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class Kind:
    """A kind of model: how to make it, a call of it, and which axes vary."""

    name: str
    make: Callable[[], nn.Module]
    args: Callable[[], tuple[Any, ...]]
    dims: dict[str, str]


class Of(nn.Module):
    """A function as a module, with the layers that it uses."""

    def __init__(self, function: Callable[..., Any], **layers: nn.Module) -> None:
        super().__init__()
        self.function = function
        for name, layer in layers.items():
            self.add_module(name, layer)

    def forward(self, x):
        return self.function(self, x)


class OfTwo(Of):
    def forward(self, x, y):
        return self.function(self, x, y)


class Step(nn.Module):
    """A step of a decoder: keys and values of the past, and the new ones behind them."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, x, key, value):
        q, k, v = (part.unflatten(-1, (2, 4)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        key, value = torch.cat([key, k], dim=2), torch.cat([value, v], dim=2)
        mixed = F.scaled_dot_product_attention(q, key, value)
        return self.out(mixed.transpose(1, 2).flatten(2)), key, value


class Patches(nn.Module):
    """As a ViT: patches, a class token, positions, an encoder layer."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 4, 4)
        self.token, self.places = nn.Parameter(torch.randn(1, 1, 8)), nn.Parameter(torch.randn(1, 17, 8))
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, activation="gelu")

    def forward(self, image):
        x = self.patches(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1)
        return self.layer(x + self.places)[:, 0]


class Loop(nn.Module):
    """A cell over the steps of a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRUCell(4, 6)

    def forward(self, x):
        state = x.new_zeros(x.shape[0], 6)
        for step in range(x.shape[1]):
            state = self.cell(x[:, step], state)
        return state


class Branch(nn.Module):
    def forward(self, x):
        return x * 2 if x.shape[0] > 3 else x - 1


class Lookup(nn.Module):
    """Tokens with positions, as the bottom of a text model."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(20, 8), nn.Embedding(32, 8)

    def forward(self, ids):
        return self.words(ids) + self.places(torch.arange(ids.shape[1]))


def _scattered(_, x, index):
    return torch.zeros_like(x).scatter(1, index, x)


def _added_up(_, x, index):
    return torch.zeros_like(x).scatter_add(1, index, x)


def _rotated(_, x):
    half = x.shape[-1] // 2
    return torch.cat([-x[..., half:], x[..., :half]], dim=-1)


def _causal(_, x):
    scores = x @ x.transpose(1, 2)
    mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
    return scores.masked_fill(~mask, float("-inf")).softmax(-1) @ x


def _rms(_, x):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


def _floats(*shape: int) -> Callable[[], tuple[torch.Tensor, ...]]:
    return lambda: (torch.randn(*shape),)


def _indexed(*shape: int) -> Callable[[], tuple[torch.Tensor, ...]]:
    return lambda: (torch.randn(*shape), torch.randint(0, shape[1], shape))


_IMAGE, _ROWS, _TEXT = {"x": "batch 4 height width"}, {"x": "batch 8"}, {"x": "batch seq 8"}
_PAIR = {"x": "batch 6", "y": "batch 6"}
_MAP = _floats(2, 4, 6, 7)
_SEQUENCE = _floats(2, 5, 8)


def _image(name: str, function: Callable[..., Any], **layers: nn.Module) -> Kind:
    return Kind(name, lambda: Of(function, **layers), _MAP, _IMAGE)


def _text(name: str, function: Callable[..., Any], **layers: nn.Module) -> Kind:
    return Kind(name, lambda: Of(function, **layers), _SEQUENCE, _TEXT)


def kinds() -> list[Kind]:
    torch.manual_seed(0)
    return [
        Kind("mlp", lambda: nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 3)), _floats(3, 8),
             {"input": "batch 8"}),
        _image("cnn with batch norm", lambda m, x: F.relu(m.n(m.c(x))), c=nn.Conv2d(4, 6, 3), n=nn.BatchNorm2d(6)),
        _image("padded conv", lambda m, x: m.c(F.pad(x, (1, 2, 0, 1))), c=nn.Conv2d(4, 4, 3)),
        _image("reflected pad", lambda _, x: F.pad(x, (1, 1, 2, 2), mode="reflect")),
        _image("chunk", lambda _, x: torch.cat([p * (i + 1) for i, p in enumerate(x.chunk(2, dim=1))], dim=1)),
        _image("group norm", lambda m, x: m.n(x), n=nn.GroupNorm(2, 4)),
        _image("instance norm", lambda m, x: m.n(x), n=nn.InstanceNorm2d(4, affine=True)),
        _text("layer norm", lambda m, x: m.n(x), n=nn.LayerNorm(8)),
        _text("rms norm", _rms),
        _text("reshape", lambda _, x: x.reshape(x.shape[0], x.shape[1] * 2, 4).transpose(1, 2)),
        _image("max pool", lambda _, x: F.max_pool2d(x, 2)),
        _image("adaptive pool", lambda _, x: F.adaptive_avg_pool2d(x, 1).flatten(1)),
        _image("interpolate by 2", lambda _, x: F.interpolate(x, scale_factor=2, mode="nearest")),
        _image("interpolate to a size", lambda _, x: F.interpolate(x, size=(9, 11), mode="bilinear")),
        _image("transposed conv", lambda m, x: m.c(x), c=nn.ConvTranspose2d(4, 2, 2, 2)),
        _text("gelu and silu", lambda _, x: F.silu(F.gelu(x)) + F.gelu(x, approximate="tanh")),
        _text("hard swish, mish, celu", lambda _, x: F.hardswish(x) + F.mish(x) + F.celu(x, 0.7)),
        _text("softmax over time", lambda _, x: x.softmax(1) + x.log_softmax(-1)),
        _text("attention", lambda m, x: m.a(x, x, x)[0], a=nn.MultiheadAttention(8, 2, batch_first=True)),
        _text("causal attention", _causal),
        _text("rotated halves", _rotated),
        _text("encoder layer", lambda m, x: m.a(x), a=nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)),
        Kind("decoder with cache", Step,
             lambda: (torch.randn(2, 1, 8), torch.randn(2, 2, 3, 4), torch.randn(2, 2, 3, 4)),
             {"x": "batch seq 8", "key": "batch 2 past 4", "value": "batch 2 past 4"}),
        Kind("vit", Patches, lambda: (torch.randn(2, 3, 16, 16),), {"image": "batch 3 16 16"}),
        _text("lstm", lambda m, x: m.r(x)[0], r=nn.LSTM(8, 5, batch_first=True)),
        _text("gru, both ways", lambda m, x: m.r(x)[0], r=nn.GRU(8, 5, batch_first=True, bidirectional=True)),
        Kind("embedding", Lookup, lambda: (torch.randint(0, 20, (2, 5)),), {"ids": "batch seq"}),
        Kind("loop", Loop, _floats(2, 3, 4), {"x": "batch seq 4"}),
        Kind("branch", Branch, _floats(5, 4), {"x": "batch 4"}),
        Kind("gather", lambda: OfTwo(lambda _, x, y: x.gather(1, y)), _indexed(3, 6), _PAIR),
        Kind("scatter", lambda: OfTwo(_scattered), _indexed(3, 6), _PAIR),
        Kind("scatter add", lambda: OfTwo(_added_up), _indexed(3, 6), _PAIR),
        _text("top k", lambda _, x: x.topk(3, dim=-1)[0]),
        _text("einsum", lambda m, x: torch.einsum("bsd,de->bse", x, m.a.weight), a=nn.Linear(8, 8, bias=False)),
        _text("cumulated sum", lambda _, x: x.cumsum(1)),
        _text("masked fill and where", lambda _, x: torch.where(x >= 0, x, x.masked_fill(x < -1, 0.5))),
        _text("reductions", lambda _, x: x.amax(1) + x.sum(1) + x.std(1) + x.prod(1) + x.logsumexp(1)),
        Kind("bits", lambda: Of(lambda _, x: (x & 3) | (x << 1)), lambda: (torch.randint(0, 20, (3, 8)),), _ROWS),
        _text("arg max and one hot", lambda _, x: F.one_hot(x.argmax(-1), 8)),
        Kind("grid sample", lambda: OfTwo(lambda _, x, y: F.grid_sample(x, y, align_corners=False)),
             lambda: (torch.randn(2, 4, 6, 7), torch.rand(2, 5, 3, 2) * 2 - 1),
             {"x": "batch 4 height width", "y": "batch rows columns 2"}),
        _text("spectrum", lambda _, x: torch.fft.rfft(x, dim=-1).abs()),
    ]  # fmt: skip
