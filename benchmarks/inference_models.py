"""The models of the inference benchmark: small, of real architectures, with random weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import nn

from coverage_models.hf_common import lively, step_with_cache
from coverage_models.timm_models import create

Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Subject:
    """A model, its inputs at any sizes, and the three sizes at which it is timed."""

    name: str
    build: Callable[[], nn.Module]
    make: Callable[..., tuple[torch.Tensor, ...]]
    dims: Mapping[str, str]
    """For each input, in the order of the call, its axes."""
    example: Sizes
    timed: tuple[Sizes, ...]
    ranges: Mapping[str, str] | None = None


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(1000, 256)
        layer = nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)

    def forward(self, tokens):
        return self.layers(self.embedding(tokens))


class Bert(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        from transformers import BertConfig, BertModel

        self.model = BertModel(
            BertConfig(
                vocab_size=1000, hidden_size=256, num_hidden_layers=2, num_attention_heads=4, intermediate_size=1024
            )
        )

    def forward(self, tokens, mask):
        return self.model(tokens, attention_mask=mask).last_hidden_state


LLAMA_LAYERS, LLAMA_HEADS, LLAMA_HEAD = 2, 4, 32


class Llama(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        from transformers import LlamaConfig, LlamaForCausalLM

        self.model = LlamaForCausalLM(
            LlamaConfig(
                vocab_size=1000, hidden_size=256, intermediate_size=688, num_hidden_layers=LLAMA_LAYERS,
                num_attention_heads=2 * LLAMA_HEADS, num_key_value_heads=LLAMA_HEADS,
            )
        )  # fmt: skip

    def forward(self, tokens, mask):
        return self.model(tokens, attention_mask=mask, use_cache=False).logits


class LlamaWithCache(Llama):
    def forward(self, tokens, mask, key_0, value_0, key_1, value_1):
        return step_with_cache(self.model, tokens, mask, key_0, value_0, key_1, value_1)


class Recurrent(nn.Module):
    def __init__(self, kind: type[nn.RNNBase]) -> None:
        super().__init__()
        self.layers = kind(64, 128, 2, batch_first=True)
        self.head = nn.Linear(128, 16)

    def forward(self, x):
        return self.head(self.layers(x)[0])


class Detector(nn.Module):
    """Boxes and scores for every place of a feature map; the best of them, and those above a threshold."""

    def __init__(self, kept: int = 20) -> None:
        super().__init__()
        self.kept = kept
        self.body = nn.Sequential(
            nn.Conv2d(3, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU(),
            nn.Conv2d(32, 64, 3, 2, 1), nn.BatchNorm2d(64), nn.ReLU(),
            nn.Conv2d(64, 64, 3, 2, 1), nn.ReLU(),
        )  # fmt: skip
        self.classes, self.boxes = nn.Conv2d(64, 10, 1), nn.Conv2d(64, 4, 1)

    def forward(self, x):
        features = self.body(x)
        rows, columns = features.shape[-2:]
        centres = torch.stack(
            torch.meshgrid(torch.arange(rows) + 0.5, torch.arange(columns) + 0.5, indexing="ij"), -1
        ).reshape(1, -1, 2)
        distances = self.boxes(features).flatten(2).transpose(1, 2).relu()
        boxes = torch.cat([centres - distances[..., :2], centres + distances[..., 2:]], dim=-1) * 8.0
        scores, labels = self.classes(features).flatten(2).transpose(1, 2).sigmoid().max(dim=-1)
        best, places = scores.topk(self.kept, dim=1)
        chosen = boxes.gather(1, places.unsqueeze(-1).expand(-1, -1, 4))
        return chosen, best, labels.gather(1, places), torch.nonzero(best > 0.6)


def text(batch: int, seq: int) -> tuple[torch.Tensor, ...]:
    return (torch.randint(1, 1000, (batch, seq)),)


def masked_text(batch: int, seq: int) -> tuple[torch.Tensor, ...]:
    return (*text(batch, seq), torch.ones(batch, seq, dtype=torch.int64))


def step(batch: int, seq: int, past: int) -> tuple[torch.Tensor, ...]:
    kept = [torch.randn(batch, LLAMA_HEADS, past, LLAMA_HEAD) for _ in range(2 * LLAMA_LAYERS)]
    return (*text(batch, seq), torch.ones(batch, past + seq, dtype=torch.int64), *kept)


def picture(batch: int, height: int, width: int) -> tuple[torch.Tensor, ...]:
    return (torch.randn(batch, 3, height, width),)


def frames(batch: int, seq: int) -> tuple[torch.Tensor, ...]:
    return (torch.randn(batch, seq, 64),)


_TEXT_SIZES = ({"batch": 1, "seq": 8}, {"batch": 1, "seq": 128}, {"batch": 4, "seq": 64})
_FRAME_SIZES = ({"batch": 1, "seq": 16}, {"batch": 8, "seq": 64}, {"batch": 4, "seq": 200})
_CACHE = {f"{part}_{layer}": f"batch {LLAMA_HEADS} past {LLAMA_HEAD}" for layer in (0, 1) for part in ("key", "value")}
_PICTURE = {"x": "batch 3 height width"}


def _sides(*rows: tuple[int, int, int]) -> tuple[Sizes, ...]:
    return tuple({"batch": batch, "height": height, "width": width} for batch, height, width in rows)


def subjects() -> list[Subject]:
    small = {"batch": 2, "seq": 6}
    patches = {"height": "16..1024 step 16", "width": "16..1024 step 16"}
    vit = create("vit_tiny_patch16_224", embed_dim=192, depth=4, num_heads=3, img_size=224, dynamic_img_size=True)
    return [
        Subject("encoder", lambda: lively(Encoder()), text, {"tokens": "batch seq"}, small, _TEXT_SIZES),
        Subject(
            "bert", lambda: lively(Bert()), masked_text, {"tokens": "batch seq", "mask": "batch seq"},
            small, _TEXT_SIZES, {"seq": "1..512"},
        ),
        Subject(
            "llama", lambda: lively(Llama()), masked_text, {"tokens": "batch seq", "mask": "batch seq"},
            small, _TEXT_SIZES,
        ),
        Subject(
            "llama cache", lambda: lively(LlamaWithCache()), step,
            {"tokens": "batch seq", "mask": "batch past+seq", **_CACHE}, {**small, "past": 5},
            tuple({"batch": b, "seq": s, "past": p} for b, s, p in ((1, 1, 16), (1, 1, 256), (4, 8, 64))),
        ),
        Subject("vit", vit, picture, _PICTURE, *_split(_sides((2, 64, 96), (1, 64, 64), (1, 224, 224), (2, 160, 96))),
                patches),
        Subject("resnet18", create("resnet18"), picture, _PICTURE,
                *_split(_sides((2, 64, 96), (1, 64, 64), (1, 160, 128), (4, 64, 64)))),
        Subject("lstm", lambda: lively(Recurrent(nn.LSTM)), frames, {"x": "batch seq 64"}, small, _FRAME_SIZES),
        Subject("gru", lambda: lively(Recurrent(nn.GRU)), frames, {"x": "batch seq 64"}, small, _FRAME_SIZES),
        Subject("detector", lambda: lively(Detector()), picture, _PICTURE,
                *_split(_sides((2, 64, 96), (1, 64, 64), (1, 224, 224), (4, 128, 96))),
                {"height": "48..1024", "width": "48..1024"}),
    ]  # fmt: skip


def _split(rows: tuple[Sizes, ...]) -> tuple[Sizes, tuple[Sizes, ...]]:
    return rows[0], rows[1:]
