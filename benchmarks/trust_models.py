"""Small networks of many architectures, with their inputs at any sizes and in contents that users meet.

Weights are as spread as trained ones (those of transformers times five): freshly made ones hide errors in attention.
The declared ranges are small enough to run every size, and too many sizes for anyshape to do the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps

import torch
import torch.nn.functional as F
from torch import nn

Sizes = dict[str, int]
PLAIN = "plain"
CONTENTS = ("other", "large", "negated", "zeros", "ties", "ends", "full", "nan", "inf")
"""Besides plain ones: values of another seed, thirty times as large, of the other sign, all zero, whole numbers with
many ties, masks and lengths at their lower ends, at their upper ends, one NaN, one infinity.
"""


class Draw:
    """Inputs of one content."""

    def __init__(self, seed: int, content: str = PLAIN) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.content = content

    def floats(self, *shape: int, positive: bool = False) -> torch.Tensor:
        kind = torch.rand if positive else torch.randn
        values = kind(shape, generator=self.generator)
        match self.content:
            case "large":
                return values * 30
            case "negated":
                return -values
            case "zeros":
                return torch.zeros(shape)
            case "ties":
                return (values * 2).round()
            case "nan" | "inf":
                return self._with_one(values, float(self.content))
        return values

    def _with_one(self, values: torch.Tensor, odd: float) -> torch.Tensor:
        if values.numel():
            place = torch.randint(values.numel(), (), generator=self.generator)
            values.view(-1)[place] = odd
        return values

    def ids(self, below: int, *shape: int) -> torch.Tensor:
        match self.content:
            case "ends" | "zeros":
                return torch.zeros(shape, dtype=torch.int64)
            case "full":
                return torch.full(shape, below - 1)
        return torch.randint(below, shape, generator=self.generator)

    def lengths(self, rows: int, most: int) -> torch.Tensor:
        match self.content:
            case "ends" | "zeros":
                return torch.ones(rows, dtype=torch.int64)
            case "full":
                return torch.full((rows,), most)
        found = torch.randint(1, most + 1, (rows,), generator=self.generator)
        found[0] = most
        return found

    def mask(self, rows: int, most: int) -> torch.Tensor:
        """True where something is; no row is empty."""
        return torch.arange(most) < self.lengths(rows, most)[:, None]


@dataclass(frozen=True)
class Subject:
    """An architecture, its inputs, and what is declared of them."""

    name: str
    build: Callable[[], nn.Module]
    inputs: Callable[[Sizes, Draw], Mapping[str, torch.Tensor]]
    dims: Mapping[str, str]
    ranges: Mapping[str, tuple[int, int]]
    example: Sizes

    @property
    def sizes(self) -> dict[str, str]:
        return {dim: f"{low}..{high}" for dim, (low, high) in self.ranges.items()}

    def made(self) -> nn.Module:
        torch.manual_seed(7)
        return self.build().eval()

    def call(self, sizes: Sizes | None = None, seed: int = 0, content: str = PLAIN) -> tuple[torch.Tensor, ...]:
        return tuple(self.inputs(sizes or self.example, Draw(seed, content)).values())


def sharpened(model: nn.Module, factor: float = 5.0) -> nn.Module:
    """Weights of linear layers as large as training makes them."""
    with torch.no_grad():
        for part in model.modules():
            if isinstance(part, nn.Linear):
                part.weight *= factor
    return model


# ---- sequences


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells = nn.LSTM(6, 8, batch_first=True, bidirectional=True)
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        steps, (last, _) = self.cells(x)
        return self.head(steps), last


class MaskedEncoder(nn.Module):
    """What is masked gets -1e9, as in much code."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.norm, self.wide, self.narrow = nn.LayerNorm(16), nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x, mask):
        batch, length = x.shape[:2]
        q, k, v = (part.view(batch, length, 4, 4).transpose(1, 2) for part in self.qkv(x * 2).chunk(3, -1))
        scores = (q @ k.transpose(-1, -2)) / 2
        scores = scores.masked_fill(~mask[:, None, None, :], -1e9)
        x = self.norm(x + self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, 16)))
        return x + self.narrow(F.gelu(self.wide(x)))


class CachedDecoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(30, 16), nn.Embedding(64, 16)
        self.qkv, self.head = nn.Linear(16, 48), nn.Linear(16, 30)

    def forward(self, ids, past_key, past_value):
        batch, length, past = *ids.shape, past_key.shape[2]
        x = self.words(ids) + self.places(torch.arange(past, past + length))
        q, k, v = (part.view(batch, length, 2, 8).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        k, v = torch.cat([past_key, k], 2), torch.cat([past_value, v], 2)
        allowed = torch.ones(length, past + length, dtype=torch.bool).tril(past)
        scores = (q @ k.transpose(-1, -2) / 8**0.5).masked_fill(~allowed, torch.finfo(x.dtype).min)
        x = x + (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, length, 16)
        return self.head(x), k, v


class PaddedWindows(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.norm = nn.MultiheadAttention(8, 2, batch_first=True), nn.LayerNorm(8)

    def forward(self, x):
        batch, length = x.shape[:2]
        padded = F.pad(x, (0, 0, 0, (4 - length % 4) % 4))
        windows = padded.reshape(-1, 4, 8)
        mixed = self.attention(windows, windows, windows, need_weights=False)[0]
        return self.norm(x + mixed.reshape(batch, -1, 8)[:, :length])


class CrossAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.head = nn.MultiheadAttention(16, 4, batch_first=True), nn.Linear(16, 5)

    def forward(self, queries, memory):
        found, weights = self.attention(queries * 2, memory, memory)
        return self.head(queries + found), weights


class SizesAsValues(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(6, 6)

    def forward(self, x):
        length = x.shape[1]
        ramp = torch.arange(length, dtype=x.dtype) / length
        x = self.layer(x) + ramp[None, :, None] * length**0.5
        return x.cumsum(1) / length, x.sum((1, 2)) / (length * x.shape[0])


class RaggedLengths(nn.Module):
    """Means over the true steps, and scores in which the others are -1e9: two scales in one tensor."""

    def __init__(self):
        super().__init__()
        self.layer, self.score = nn.Linear(6, 8), nn.Linear(8, 1)

    def forward(self, x, lengths):
        there = torch.arange(x.shape[1])[None, :] < lengths[:, None]
        hidden = torch.tanh(self.layer(x))
        mean = (hidden * there[..., None]).sum(1) / lengths[:, None]
        return mean, self.score(hidden)[..., 0].masked_fill(~there, -1e9)


class PairScores(nn.Module):
    """Logits of spans: an end before its start gets the smallest number."""

    def __init__(self):
        super().__init__()
        self.start, self.end = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        scores = self.start(x) @ self.end(x).transpose(1, 2)
        allowed = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu()
        return scores.masked_fill(~allowed, torch.finfo(x.dtype).min)


class ControlFlow(nn.Module):
    """A branch on the length, and a loop over the steps."""

    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.GRUCell(5, 8), nn.Linear(8, 4)

    def forward(self, x):
        state, states = x.new_zeros(x.shape[0], 8), []
        for step in range(x.shape[1]):
            state = self.cell(x[:, step], state)
            states.append(state)
        states = torch.stack(states, 1)
        if x.shape[1] > 16:
            states = states - states.mean(1, keepdim=True)
        return self.head(states)


def _bert() -> nn.Module:
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=60, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
        max_position_embeddings=48, attn_implementation="eager",
    )  # fmt: skip
    return ByName(sharpened(BertModel(config)), "input_ids", "attention_mask")


def _gpt() -> nn.Module:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=40, n_positions=64, n_embd=16, n_layer=1, n_head=2, attn_implementation="eager", bos_token_id=None,
        eos_token_id=None,
    )  # fmt: skip
    return ByName(sharpened(GPT2LMHeadModel(config)), "input_ids")


class ByName(nn.Module):
    """A model of transformers, called by keywords, one tensor out."""

    def __init__(self, model: nn.Module, *names: str) -> None:
        super().__init__()
        self.model, self.names = model, names

    def forward(self, ids, mask=None):
        given = dict(zip(self.names, (ids, mask), strict=False))
        return self.model(**given, use_cache=False)[0]


# ---- images


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8)
        self.second, self.head = nn.Conv2d(8, 12, 3, padding=1), nn.Linear(12, 5)

    def forward(self, image):
        x = F.max_pool2d(F.relu(self.norm(self.first(image))), 2)
        return self.head(F.silu(self.second(x)).mean((2, 3))).softmax(-1)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.middle = nn.Conv2d(2, 6, 3, padding=1), nn.Conv2d(6, 8, 3, stride=2, padding=1)
        self.up, self.last = nn.Conv2d(14, 6, 3, padding=1), nn.Conv2d(6, 2, 1)

    def forward(self, image):
        skip = F.relu(self.down(image))
        deep = F.leaky_relu(self.middle(skip))
        wide = F.interpolate(deep, size=skip.shape[2:], mode="bilinear", align_corners=False)
        return self.last(F.relu(self.up(torch.cat([wide, skip], 1))))


class DetectorHead(nn.Module):
    """Boxes around the points of a grid, scores, and the best class of each."""

    def __init__(self):
        super().__init__()
        self.body, self.box, self.kind = nn.Conv2d(4, 8, 3, padding=1), nn.Conv2d(8, 4, 1), nn.Conv2d(8, 3, 1)

    def forward(self, features):
        height, width = features.shape[2:]
        x = F.relu(self.body(features))
        y, x_ = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")
        points = torch.stack([x_, y, x_, y], -1).reshape(-1, 4) * 8.0 + 4.0
        boxes = points + self.box(x).exp().flatten(2).transpose(1, 2) * 8.0
        scores = self.kind(x).flatten(2).transpose(1, 2).sigmoid()
        return boxes, scores, scores.argmax(-1)


class Resized(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Conv2d(2, 4, 1)

    def forward(self, image):
        height, width = image.shape[2:]
        x = F.interpolate(self.layer(image), size=(2 * height + 1, width // 2 + 1), mode="bilinear", align_corners=True)
        return F.avg_pool2d(x, 2, stride=1), image.amax((2, 3))


# ---- the rest


class GraphNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.message, self.update = nn.Linear(12, 8), nn.Linear(14, 6)

    def forward(self, nodes, edges):
        source, target = edges[0], edges[1]
        messages = F.relu(self.message(torch.cat([nodes[source], nodes[target]], -1)))
        gathered = nodes.new_zeros(nodes.shape[0], 8).index_add(0, target, messages)
        return self.update(torch.cat([nodes, gathered], -1))


class BigSums(nn.Module):
    """Energies in millions beside forces near one, in one tensor."""

    def __init__(self):
        super().__init__()
        self.charge = nn.Linear(3, 1)

    def forward(self, places):
        apart = (places[:, :, None] - places[:, None]).square().sum(-1) + 0.5
        charge = self.charge(places)
        energy = (charge @ charge.transpose(1, 2) / apart).sum(-1, keepdim=True) * 1e7
        force = (places[:, :, None] - places[:, None]) / apart[..., None] ** 2
        return torch.cat([energy, force.sum(2)], -1)


class TinyProbabilities(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 300)

    def forward(self, x):
        p = (self.layer(x) * 4).softmax(-1)
        return p[..., :20], (p * p.log()).sum(-1).exp().cumprod(1)[..., -1:]


class DeepMlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(12, 12) for _ in range(24))
        self.norm = nn.LayerNorm(12)

    def forward(self, x):
        for layer in self.layers:
            x = x + torch.tanh(layer(self.norm(x)))
        return x


class BestWords(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.layer = nn.Embedding(20, 8), nn.Linear(8, 6)

    def forward(self, ids, bias):
        scores = F.relu(self.layer(self.words(ids)) + bias)
        best = scores.argmax(-1)
        return best, F.one_hot(best, 6).to(scores.dtype), (scores > 0).sum(-1)


class Ranked(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, x):
        scores = self.layer(x)[..., 0]
        values, places = scores.topk(min(3, scores.shape[1]), 1)
        ordered, order = torch.sort(x[..., 0], dim=1, descending=True, stable=True)
        return values, places, ordered, order


class Quantised(nn.Module):
    """Bins, flags and signs of the inputs themselves."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(5, 5)

    def forward(self, x, y):
        bins = torch.floor(x * 0.5)
        kept = F.relu(x) > 0
        return bins, kept, (bins.clamp(-3, 3) + 3).long(), torch.where(x > y, self.layer(x), y.round())


# ---- a branch that a trace freezes


def branching(model: nn.Module, subject: Subject, condition: Callable[[Sizes], bool]) -> nn.Module:
    """The same network, but that all is doubled at some sizes, by a decision in Python."""
    places = {}
    for index, axes in enumerate(subject.dims.values()):
        places.update({dim: (index, axis) for axis, dim in enumerate(axes.split()) if dim in subject.ranges})

    @wraps(type(model).forward)
    def forward(self, *args):
        found = self.model(*args)
        several = [found] if isinstance(found, torch.Tensor) else list(found)
        if condition({dim: args[index].shape[axis] for dim, (index, axis) in places.items()}):
            several = [one * 2 if one.is_floating_point() else one for one in several]
        return several[0] if isinstance(found, torch.Tensor) else tuple(several)

    made = type("Branching", (nn.Module,), {"forward": forward})()
    made.model = model
    return made.eval()


# ---- the table


def _sequence(d: int, positive: bool = False):
    return lambda sizes, draw: {"x": draw.floats(sizes["b"], sizes["s"], d, positive=positive)}


def _image(name: str, channels: int):
    return lambda n, draw: {name: draw.floats(n["b"], channels, n["h"], n["w"], positive=True)}


BATCH_AND_STEPS = {"b": (1, 9), "s": (1, 48)}
IMAGES = {"b": (1, 3), "h": (8, 20), "w": (8, 19)}
X = {"x": "b s _"}

SUBJECTS: tuple[Subject, ...] = (
    Subject("lstm", Recurrent, _sequence(6), X, BATCH_AND_STEPS, {"b": 3, "s": 7}),
    Subject(
        "encoder with mask", MaskedEncoder,
        lambda n, draw: {"x": draw.floats(n["b"], n["s"], 16), "mask": draw.mask(n["b"], n["s"])},
        {"x": "b s _", "mask": "b s"}, BATCH_AND_STEPS, {"b": 3, "s": 7},
    ),
    Subject("conv net", ConvNet, _image("image", 3), {"image": "b _ h w"}, IMAGES, {"b": 2, "h": 12, "w": 15}),
    Subject("u-net", UNet, _image("image", 2), {"image": "b _ h w"}, IMAGES, {"b": 2, "h": 10, "w": 13}),
    Subject(
        "detector head", DetectorHead, lambda n, draw: {"features": draw.floats(n["b"], 4, n["h"], n["w"])},
        {"features": "b _ h w"}, {"b": (1, 3), "h": (1, 13), "w": (1, 12)}, {"b": 2, "h": 5, "w": 6},
    ),
    Subject(
        "graph net", GraphNet,
        lambda n, draw: {"nodes": draw.floats(n["n"], 6), "edges": draw.ids(n["n"], 2, n["e"])},
        {"nodes": "n _", "edges": "_ e"}, {"n": (1, 20), "e": (1, 24)}, {"n": 5, "e": 9},
    ),
    Subject(
        "decoder with cache", CachedDecoder,
        lambda n, draw: {
            "ids": draw.ids(30, n["b"], n["s"]),
            "past_key": draw.floats(n["b"], 2, n["p"], 8),
            "past_value": draw.floats(n["b"], 2, n["p"], 8),
        },
        {"ids": "b s", "past_key": "b _ p _", "past_value": "b _ p _"},
        {"b": (1, 4), "s": (1, 10), "p": (1, 14)}, {"b": 2, "s": 3, "p": 5},
    ),
    Subject("padded windows", PaddedWindows, _sequence(8), X, BATCH_AND_STEPS, {"b": 3, "s": 7}),
    Subject(
        "cross attention", CrossAttention,
        lambda n, draw: {"queries": draw.floats(n["b"], n["t"], 16), "memory": draw.floats(n["b"], n["s"], 16)},
        {"queries": "b t _", "memory": "b s _"}, {"b": (1, 4), "t": (1, 11), "s": (1, 13)}, {"b": 2, "t": 3, "s": 5},
    ),
    Subject("sizes as values", SizesAsValues, _sequence(6), X, BATCH_AND_STEPS, {"b": 3, "s": 7}),
    Subject(
        "ragged lengths", RaggedLengths,
        lambda n, draw: {"x": draw.floats(n["b"], n["s"], 6), "lengths": draw.lengths(n["b"], n["s"])},
        {"x": "b s _", "lengths": "b"}, BATCH_AND_STEPS, {"b": 3, "s": 7},
    ),
    Subject("span scores", PairScores, _sequence(8), X, BATCH_AND_STEPS, {"b": 3, "s": 7}),
    Subject("big sums", BigSums, lambda n, draw: {"places": draw.floats(n["b"], n["n"], 3)}, {"places": "b n _"},
            {"b": (1, 9), "n": (2, 48)}, {"b": 3, "n": 7}),
    Subject("tiny probabilities", TinyProbabilities, _sequence(8), X, {"b": (1, 16), "s": (1, 26)}, {"b": 3, "s": 5}),
    Subject("deep mlp", DeepMlp, _sequence(12), X, BATCH_AND_STEPS, {"b": 3, "s": 7}),
    Subject(
        "bert", _bert, lambda n, draw: {"ids": draw.ids(60, n["b"], n["s"]), "mask": draw.mask(n["b"], n["s"]).long()},
        {"ids": "b s", "mask": "b s"}, BATCH_AND_STEPS, {"b": 3, "s": 7},
    ),
    Subject("gpt", _gpt, lambda n, draw: {"ids": draw.ids(40, n["b"], n["s"])}, {"ids": "b s"}, BATCH_AND_STEPS,
            {"b": 3, "s": 7}),
    Subject("branch and loop", ControlFlow, _sequence(5), X, {"b": (1, 16), "s": (1, 28)}, {"b": 3, "s": 7}),
    Subject(
        "best words", BestWords,
        lambda n, draw: {"ids": draw.ids(20, n["b"], n["s"]), "bias": draw.floats(n["b"], n["s"], 6)},
        {"ids": "b s", "bias": "b s _"}, BATCH_AND_STEPS, {"b": 3, "s": 7},
    ),
    Subject("ranked", Ranked, _sequence(4), X, {"b": (1, 12), "s": (1, 40)}, {"b": 3, "s": 7}),
    Subject("resized", Resized, _image("image", 2), {"image": "b _ h w"}, {"b": (1, 3), "h": (2, 14), "w": (2, 14)},
            {"b": 2, "h": 5, "w": 9}),
    Subject(
        "quantised", Quantised,
        lambda n, draw: {"x": draw.floats(n["b"], n["s"], 5) * 3, "y": draw.floats(n["b"], n["s"], 5)},
        {"x": "b s _", "y": "b s _"}, BATCH_AND_STEPS, {"b": 3, "s": 7},
    ),
)  # fmt: skip
