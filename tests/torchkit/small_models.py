"""Small models of many kinds, each for another way through a conversion; all take `x` of batch, n and 4 features."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnxscript
import torch
import torch.nn.functional as F
from onnxscript import opset18
from torch import Tensor, nn
from torch.nn.utils import rnn

import anyshape
from tests.running import is_right

DIMS = {"x": "batch n 4"}
TRACED, OTHERS = (3, 5), ((1, 1), (2, 9), (7, 3))


class Around(nn.Module):
    """A function of some parts and x."""

    def __init__(self, function: Callable[..., Any], *parts: nn.Module) -> None:
        super().__init__()
        self.parts, self.function = nn.ModuleList(parts), function

    def forward(self, x: Tensor) -> Any:
        return self.function(*self.parts, x)


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm, self.first, self.second = nn.LayerNorm(4), nn.Linear(4, 8), nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.second(F.gelu(self.first(self.norm(x))))


class Padded(nn.Module):
    """Pads to whole strides, its number in a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("stride", torch.tensor(3))

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[1]
        missing = torch.ceil(length / self.stride).to(torch.int64) * self.stride - length
        return F.pad(x, (0, 0, 0, int(missing)))


class Kept(nn.Module):
    """Adds to a number that it keeps."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("bias", torch.ones(4))

    def forward(self, x: Tensor) -> Tensor:
        y = x * 2
        y += self.bias
        y[:, 0] = 7.0
        return torch.relu_(y)


def _by_size(x: Tensor) -> Tensor:
    return x * 2 if x.shape[1] > 4 else x - 1


def _looped(x: Tensor) -> Tensor:
    total = torch.zeros_like(x[:, 0])
    for step in range(x.shape[1]):
        total = total * 0.5 + x[:, step]
    return total


def _packed(layer: nn.LSTM, x: Tensor) -> Tensor:
    lengths = torch.full((x.shape[0],), x.shape[1])
    packed = rnn.pack_padded_sequence(x, lengths, batch_first=True)
    return rnn.pad_packed_sequence(layer(packed)[0], batch_first=True)[0]


def _with_gradients(x: Tensor) -> Tensor:
    with torch.enable_grad():
        return x.cumsum(1)


def _causal(layer: nn.TransformerEncoder, x: Tensor) -> Tensor:
    return layer(x, mask=nn.Transformer.generate_square_subsequent_mask(x.shape[1]))


@torch.library.custom_op("anyshape_small::twice", mutates_args=())
def twice(x: Tensor) -> Tensor:
    return x * 2


LIBRARY = torch.library.Library("anyshape_small", "FRAGMENT")
LIBRARY.define("thrice(Tensor x) -> Tensor")
LIBRARY.impl("thrice", lambda x: x * 3, "CPU")
LIBRARY.define("untold(Tensor x) -> Tensor")
LIBRARY.impl("untold", lambda x: x * 4, "CompositeExplicitAutograd")


@onnxscript.script(onnxscript.values.Opset("anyshape_small", 1), default_opset=opset18)
def _untold(x):  # without a return annotation
    return opset18.Mul(x, opset18.Constant(value_float=4.0))


TRANSLATED = {torch.ops.anyshape_small.untold.default: _untold}


def _encoder() -> nn.Module:
    layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


def _convolved(conv: nn.Module, norm: nn.Module, x: Tensor) -> Tensor:
    return F.relu(norm(conv(x.transpose(1, 2))), inplace=True)


MODELS: dict[str, Callable[[], nn.Module]] = {
    "mlp": lambda: Around(lambda a, b, x: b(F.relu(a(x))), nn.Linear(4, 8), nn.Linear(8, 2)),
    "convolution and norm": lambda: Around(_convolved, nn.Conv1d(4, 4, 3, padding=1), nn.BatchNorm1d(4)),
    "blocks alike": lambda: Around(lambda a, b, c, x: c(b(a(x))), Block(), Block(), Block()),
    "transformer": lambda: Around(lambda encoder, x: encoder(x), _encoder()),
    "causal transformer": lambda: Around(_causal, _encoder()),
    "lstm": lambda: Around(lambda lstm, x: lstm(x)[0], nn.LSTM(4, 3, batch_first=True)),
    "packed sequence": lambda: Around(_packed, nn.LSTM(4, 3, batch_first=True)),
    "writes": Kept,
    "no translation": lambda: Around(lambda x: torch.trapezoid(x, dim=1)),
    "several results": lambda: Around(lambda x: torch.std_mean(x, 2)),
    "written through a view": lambda: Around(lambda x: (y := x * 2, y.transpose(1, 2)[0].mul_(3.0))[0]),
    "other types": lambda: Around(lambda x: (x > 0).long() + x.double() * 3),
    "pooled": lambda: Around(lambda x: F.adaptive_avg_pool1d(x.transpose(1, 2), 2)),
    "root of a size": lambda: Around(lambda x: x * int(math.sqrt(x.shape[1]) * 3)),
    "number in a buffer": Padded,
    "branch": lambda: Around(_by_size),
    "loop": lambda: Around(_looped),
    "gradients": lambda: Around(_with_gradients),
    "operator in Python": lambda: Around(lambda x: twice(x) + 1),
    "operator of a library": lambda: Around(lambda x: torch.ops.anyshape_small.thrice(x) + 1),
    "operator with a translation": lambda: Around(lambda x: torch.ops.anyshape_small.untold(x) + 1),
    "bags": lambda: Around(lambda bag, x: bag((x[:, :, 0].abs() * 3).long().clamp(max=9)), nn.EmbeddingBag(10, 4)),
    "pinned": lambda: Around(lambda x: x + torch.zeros(3, 1, 4)),
}


def made(name: str) -> nn.Module:
    torch.manual_seed(0)
    return MODELS[name]().eval()


def export(name: str, path: Path) -> anyshape.Result:
    model = made(name)
    torch.manual_seed(1)
    table = {"custom_translation_table": TRANSLATED} if name == "operator with a translation" else {}
    sizes = {"n": "2.."} if name == "pooled" else None
    return anyshape.export(model, (torch.randn(*TRACED, 4),), path, dims=DIMS, sizes=sizes, quick=True, **table)


def is_right_elsewhere(name: str, path: Path) -> bool:
    """At sizes that nobody has traced."""
    model = made(name)
    torch.manual_seed(2)
    sizes = {"pooled": OTHERS[1:], "pinned": ((3, 1), (3, 9))}.get(name, OTHERS)
    return all(is_right(path, model, (torch.randn(*one, 4),)) for one in sizes)
