"""The twelve files of the compatibility matrix: one of each kind, small, with random weights of a fixed seed."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from coverage_models.hf_common import step_with_cache

Sizes = Mapping[str, int]
Values = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Subject:
    """A file of one kind: how it is written, and its inputs at any sizes."""

    name: str
    write: Callable[..., Path]
    """With a folder and the options of `export`."""
    make: Callable[..., Values]
    """The inputs by their names in the file."""
    run: tuple[Sizes, Sizes]
    """The sizes at which the results of tools are run."""
    ranked: tuple[str, ...] = ()
    """Outputs that are chosen by rank or by a threshold: other after any rounding, so only exact tools keep them."""


def _exported(
    name: str, build: Callable[[], nn.Module], make: Callable[..., Values], dims: Mapping[str, str], **more: Any
) -> Callable[..., Path]:
    """Writes the file of a module by `anyshape.export`."""
    example, sizes = more.pop("example"), more.pop("sizes", None)

    def write(folder: Path, **options: Any) -> Path:
        import anyshape

        torch.manual_seed(0)
        model = _lively(build())
        path = folder / f"{name}.onnx"
        inputs = make(**example)
        anyshape.export(model, tuple(inputs.values()), path, dims=dims, sizes=sizes, **more, **options)
        return path

    return write


def _lively(model: nn.Module) -> nn.Module:
    """Weights with which every part of the model counts, statistics of its norms included."""
    with torch.no_grad():
        for buffer in model.buffers():
            if buffer.is_floating_point():
                buffer.add_(torch.rand(buffer.shape) * 0.1)
        for weight in model.parameters():
            weight.add_(torch.randn(weight.shape) * 0.02)
    return model.eval()


# ---- modules


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(100, 32)
        layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, tokens, mask):
        return self.layers(self.embedding(tokens), src_key_padding_mask=mask == 0)


LAYERS, HEADS, HEAD = 2, 2, 8


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        from transformers import LlamaConfig, LlamaForCausalLM

        self.model = LlamaForCausalLM(
            LlamaConfig(
                vocab_size=100, hidden_size=32, intermediate_size=64, num_hidden_layers=LAYERS,
                num_attention_heads=2 * HEADS, num_key_value_heads=HEADS, head_dim=HEAD,
            )
        )  # fmt: skip

    def forward(self, tokens, mask, key_0, value_0, key_1, value_1):
        return step_with_cache(self.model, tokens, mask, key_0, value_0, key_1, value_1)


class VisionTransformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        from transformers import ViTConfig, ViTModel

        config = ViTConfig(
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            intermediate_size=64,
            image_size=32,
            patch_size=8,
        )
        self.model = ViTModel(config, add_pooling_layer=False)

    def forward(self, x):
        return self.model(x, interpolate_pos_encoding=True).last_hidden_state


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, width, 3, 1, 1), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, 1, 1), nn.BatchNorm2d(width),
        )  # fmt: skip

    def forward(self, x):
        return torch.relu(x + self.body(x))


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.MaxPool2d(3, 2, 1), Block(16), Block(16))
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        return self.head(self.body(x).mean(dim=(2, 3)))


class UNet(nn.Module):
    """Of diffusion: a time, group norms, attention at the bottom, and a way up to the sizes that were passed."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.down = nn.Conv2d(3, 16, 3, 1, 1), nn.Conv2d(16, 32, 3, 2, 1)
        self.time = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 32))
        self.norm, self.norm_up = nn.GroupNorm(4, 32), nn.GroupNorm(4, 48)
        self.attention = nn.MultiheadAttention(32, 4, batch_first=True)
        self.up = nn.Conv2d(48, 3, 3, 1, 1)

    def forward(self, x, time):
        rates = torch.exp(-math.log(1000.0) * torch.arange(8) / 8)
        angles = time[:, None] * rates
        moment = self.time(torch.cat([angles.sin(), angles.cos()], dim=-1))
        high = self.first(x)
        low = F.silu(self.norm(self.down(high) + moment[:, :, None, None]))
        rows = low.flatten(2).transpose(1, 2)
        rows = rows + self.attention(rows, rows, rows, need_weights=False)[0]
        low = rows.transpose(1, 2).reshape(low.shape)
        joined = torch.cat([high, F.interpolate(low, size=high.shape[-2:], mode="nearest")], dim=1)
        return self.up(F.silu(self.norm_up(joined)))


class Detector(nn.Module):
    """Boxes and scores for every place of a feature map, the best of them, and those above a threshold."""

    def __init__(self, kept: int = 10) -> None:
        super().__init__()
        self.kept = kept
        self.body = nn.Sequential(
            nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 32, 3, 2, 1), nn.ReLU()
        )
        self.classes, self.boxes = nn.Conv2d(32, 5, 1), nn.Conv2d(32, 4, 1)

    def forward(self, x):
        features = self.body(x)
        rows, columns = features.shape[-2:]
        grid = torch.meshgrid(torch.arange(rows) + 0.5, torch.arange(columns) + 0.5, indexing="ij")
        centres = torch.stack(grid, -1).reshape(1, -1, 2)
        distances = self.boxes(features).flatten(2).transpose(1, 2).exp()
        boxes = torch.cat([centres - distances[..., :2], centres + distances[..., 2:]], dim=-1) * 4.0
        scores, labels = self.classes(features).flatten(2).transpose(1, 2).sigmoid().max(dim=-1)
        scores = scores - (centres * torch.tensor([0.001, 0.00013])).sum(-1)  # places alike are ranked, too
        best, places = scores.topk(self.kept, dim=1)
        chosen = boxes.gather(1, places.unsqueeze(-1).expand(-1, -1, 4))
        return {
            "boxes": boxes, "scores": scores, "best": best, "chosen": chosen,
            "labels": labels.gather(1, places), "found": torch.nonzero(best > 0.5),
        }  # fmt: skip


class Graph(nn.Module):
    """Messages along edges, summed and averaged at their ends."""

    def __init__(self) -> None:
        super().__init__()
        self.message, self.update = nn.Linear(16, 16), nn.Linear(32, 16)
        self.head = nn.Linear(16, 3)

    def forward(self, nodes, edges):
        source, target = edges[0], edges[1]
        for _ in range(2):
            messages = torch.relu(self.message(nodes))[source]
            total = torch.zeros_like(nodes).index_add(0, target, messages)
            degree = torch.zeros(nodes.shape[0]).scatter_add(0, target, torch.ones(target.shape[0])).clamp(min=1.0)
            nodes = torch.tanh(self.update(torch.cat([nodes, total / degree[:, None]], dim=-1)))
        return self.head(nodes)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 16, 1, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(32, 16, 1, batch_first=True)
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        found, state = self.gru(self.lstm(x)[0])
        return self.head(found), state


class Audio(nn.Module):
    """A spectrogram, a filter bank and convolutions over time."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(64))
        self.register_buffer("bank", torch.rand(33, 16))
        self.body = nn.Sequential(nn.Conv1d(16, 16, 3, 2, 1), nn.GELU(), nn.Conv1d(16, 8, 3, 1, 1))

    def forward(self, wave):
        found = torch.stft(wave, 64, 16, window=self.window, center=True, pad_mode="reflect", return_complex=True)
        power = found.real.square() + found.imag.square()
        mel = torch.log(torch.matmul(power.transpose(1, 2), self.bank) + 1e-3)
        return self.body(mel.transpose(1, 2))


class Loops(nn.Module):
    """A loop over a dynamic axis, and a branch on a size."""

    def __init__(self) -> None:
        super().__init__()
        self.cell, self.head = nn.GRUCell(8, 8), nn.Linear(8, 3)

    def forward(self, x):
        state = torch.zeros(x.shape[0], 8)
        rows = []
        for step in range(x.shape[1]):
            state = self.cell(x[:, step], state)
            rows.append(state)
        found = torch.stack(rows, dim=1)
        if x.shape[1] > 6:
            found = found - found.mean(dim=1, keepdim=True)
        return self.head(found)


# ---- inputs


def _text(batch: int, seq: int) -> Values:
    mask = torch.ones(batch, seq, dtype=torch.int64)
    mask[-1, seq // 2 + 1 :] = 0
    return {"tokens": torch.randint(1, 100, (batch, seq)), "mask": mask}


def _step(batch: int, seq: int, past: int) -> Values:
    names = [f"{part}_{layer}" for layer in range(LAYERS) for part in ("key", "value")]
    return {
        "tokens": torch.randint(1, 100, (batch, seq)),
        "mask": torch.ones(batch, past + seq, dtype=torch.int64),
        **{name: torch.randn(batch, HEADS, past, HEAD) for name in names},
    }


def _picture(batch: int, height: int, width: int) -> Values:
    return {"x": torch.randn(batch, 3, height, width)}


def _noisy_picture(batch: int, height: int, width: int) -> Values:
    return {**_picture(batch, height, width), "time": torch.rand(batch) * 10}


def _graph(nodes: int, edges: int) -> Values:
    return {"nodes": torch.randn(nodes, 16), "edges": torch.randint(0, nodes, (2, edges))}


def _frames(batch: int, seq: int) -> Values:
    return {"x": torch.randn(batch, seq, 8)}


def _wave(batch: int, samples: int) -> Values:
    return {"wave": torch.randn(batch, samples)}


# ---- checkpoints


def _from_checkpoint(kind: str, config: str, settings: Mapping[str, Any]) -> Callable[..., Path]:
    """Writes the one file of a checkpoint by `export_checkpoint`, in a folder with the model's name."""

    def write(folder: Path, **options: Any) -> Path:
        import transformers

        from anyshape.checkpoints import export_checkpoint

        torch.manual_seed(0)
        model = _lively(getattr(transformers, kind)(getattr(transformers, config)(**settings)))
        with tempfile.TemporaryDirectory() as place:
            model.save_pretrained(place)
            export_checkpoint(place, folder / kind, **options)
        return folder / kind / "model.onnx"

    return write


_SMALL: dict[str, Any] = {
    "vocab_size": 100, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "max_position_embeddings": 64,
}  # fmt: skip


def _encoder_inputs(batch: int, seq: int) -> Values:
    tokens, mask = _text(batch, seq).values()
    return {"input_ids": tokens, "attention_mask": mask, "token_type_ids": torch.zeros_like(tokens)}


def _decoder_inputs(batch: int, seq: int, past: int) -> Values:
    tokens, mask, *kept = _step(batch, seq, past).values()
    names = [f"past_key_values.{layer}.{part}" for layer in range(LAYERS) for part in ("key", "value")]
    places = torch.arange(past, past + seq).expand(batch, seq)
    return {
        "input_ids": tokens, "attention_mask": mask, "position_ids": places, **dict(zip(names, kept, strict=True))
    }  # fmt: skip


# ---- the row


def _of(
    name: str, build: Callable[[], nn.Module], make: Callable[..., Values], dims: Mapping[str, str],
    run: tuple[Sizes, Sizes], **more: Any,
) -> Subject:  # fmt: skip
    ranked = more.pop("ranked", ())
    example = more.pop("example", run[0])
    return Subject(name, _exported(name, build, make, dims, example=example, **more), make, run, ranked)


def _sides(*rows: tuple[int, int, int]) -> Any:
    return tuple({"batch": batch, "height": height, "width": width} for batch, height, width in rows)


_TEXTS = ({"batch": 2, "seq": 5}, {"batch": 3, "seq": 11})
_STEPS = ({"batch": 2, "seq": 3, "past": 4}, {"batch": 1, "seq": 1, "past": 9})
_CACHE = {f"{part}_{layer}": f"batch {HEADS} past {HEAD}" for layer in range(LAYERS) for part in ("key", "value")}
_PICTURES = {"x": "batch 3 height width"}

SUBJECTS: tuple[Subject, ...] = (
    _of("encoder", Encoder, _text, {"tokens": "batch seq", "mask": "batch seq"}, _TEXTS),
    _of("decoder", Decoder, _step, {"tokens": "batch seq", "mask": "batch past+seq", **_CACHE}, _STEPS),
    _of("vit", VisionTransformer, _picture, _PICTURES, _sides((2, 32, 48), (1, 64, 32)),
        sizes={"height": "16..256 step 8", "width": "16..256 step 8"}),
    _of("cnn", Residual, _picture, _PICTURES, _sides((2, 32, 48), (3, 57, 40))),
    _of("unet", UNet, _noisy_picture, {**_PICTURES, "time": "batch"}, _sides((2, 16, 24), (1, 21, 18))),
    _of("detector", Detector, _picture, _PICTURES, _sides((2, 32, 48), (1, 56, 40)),
        sizes={"height": "32..256", "width": "32..256"}, ranked=("best", "chosen", "labels", "found")),
    _of("gnn", Graph, _graph, {"nodes": "nodes 16", "edges": "2 edges"},
        ({"nodes": 7, "edges": 12}, {"nodes": 15, "edges": 40})),
    _of("rnn", Recurrent, _frames, {"x": "batch seq 8"}, _TEXTS),
    _of("audio", Audio, _wave, {"wave": "batch samples"},
        ({"batch": 2, "samples": 400}, {"batch": 1, "samples": 777}), sizes={"samples": "64..4096"}),
    _of("loops", Loops, _frames, {"x": "batch seq 8"}, _TEXTS),
    Subject("checkpoint encoder", _from_checkpoint("BertModel", "BertConfig", _SMALL), _encoder_inputs, _TEXTS),
    Subject("checkpoint decoder", _from_checkpoint("LlamaForCausalLM", "LlamaConfig", {
        **_SMALL, "num_key_value_heads": HEADS, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}),
        _decoder_inputs, _STEPS),
)  # fmt: skip


def calls_of(subject: Subject) -> list[dict[str, Any]]:
    """The inputs of a subject as arrays, at each of its sizes."""
    torch.manual_seed(1)
    return [{name: value.numpy() for name, value in subject.make(**sizes).items()} for sizes in subject.run]
