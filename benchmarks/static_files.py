"""Static ONNX files of many architectures, made by torch's two exporters at batch 1 and at batch 2."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

import static_models as small
from coverage_models.stand_ins import stand_ins
from silence import silence

EXPORTERS = ("dynamo", "torchscript")
BATCHES = (1, 2)
LENGTH = 16

Inputs = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Architecture:
    """A network, and its inputs at any number of samples and any length."""

    name: str
    build: Callable[[int], nn.Module]
    """Of the batch that it is traced at."""
    inputs: Callable[[int, int], Inputs]
    dims: Mapping[str, str]
    """Of each input: `batch seq 6`."""

    @property
    def has_sequence(self) -> bool:
        return any("seq" in text for text in self.dims.values())


@dataclass(frozen=True)
class StaticFile:
    """One file and what it was made of."""

    architecture: Architecture
    exporter: str
    batch: int
    path: Path

    @property
    def name(self) -> str:
        return f"{self.architecture.name}.{self.exporter}.b{self.batch}"

    @property
    def model(self) -> nn.Module:
        return built(self.architecture, self.batch)


def built(architecture: Architecture, batch: int) -> nn.Module:
    torch.manual_seed(0)
    return architecture.build(batch).eval()


class ByName(nn.Module):
    """A model of transformers, called by keywords, one tensor out."""

    def __init__(self, model: nn.Module, *names: str, **more: Any) -> None:
        super().__init__()
        self.model, self.names, self.more = model, names, more

    def forward(self, *values: torch.Tensor) -> torch.Tensor:
        return self.model(**dict(zip(self.names, values, strict=True)), **self.more, return_dict=False)[0]


# ---- inputs


def picture(side: int, depth: int = 3) -> Callable[[int, int], Inputs]:
    return lambda batch, _: {"x": torch.randn(batch, depth, side, side)}


def steps(depth: int) -> Callable[[int, int], Inputs]:
    return lambda batch, length: {"x": torch.randn(batch, length, depth)}


def words(batch: int, length: int) -> Inputs:
    return {"input_ids": torch.randint(2, 50, (batch, length))}


def masked_words(batch: int, length: int) -> Inputs:
    mask = torch.ones(batch, length, dtype=torch.long)
    if length > 3:
        mask[0, -2:] = 0
    return {**words(batch, length), "attention_mask": mask}


PICTURE = {"x": "batch _ _ _"}
STEPS = {"x": "batch seq _"}
WORDS = {"input_ids": "batch seq"}
MASKED = {"input_ids": "batch seq", "attention_mask": "batch seq"}


# ---- architectures


def by_hand() -> Iterator[Architecture]:
    def one(name: str, build: Any, inputs: Any, dims: Mapping[str, str]) -> Architecture:
        return Architecture(name, build, inputs, dims)

    def of(kind: Any, *arguments: Any) -> Callable[[int], nn.Module]:
        return lambda _: kind(*arguments)

    yield one("mlp", of(small.Mlp), lambda batch, _: {"x": torch.randn(batch, 10)}, {"x": "batch _"})
    yield one("cnn", of(small.Flattened), picture(16), PICTURE)
    yield one("literal_view", small.LiteralView, picture(16), PICTURE)
    yield one("torch_attention", of(small.TorchAttention), steps(12), STEPS)
    yield one("torch_encoder", of(small.TorchEncoder), steps(32), STEPS)
    yield one("nano_gpt", of(small.NanoGpt), words, WORDS)
    yield one("rotary", of(small.Rotary), words, WORDS)
    yield one("lstm", of(small.LastStep, nn.LSTM), steps(6), STEPS)
    yield one("gru", of(small.LastStep, nn.GRU), steps(6), STEPS)
    yield one("rnn", of(small.LastStep, nn.RNN), steps(6), STEPS)
    yield one("bilstm_state", of(small.GivenState), steps(6), STEPS)
    yield one(
        "gru_state",
        of(small.StateOut),
        lambda batch, length: {"x": torch.randn(batch, length, 6), "state": torch.randn(batch, 2, 8)},
        {"x": "batch seq _", "state": "batch _ _"},
    )
    yield one("queries", of(small.Queries), steps(16), STEPS)
    yield one("yolo", of(small.YoloHeads), picture(16), PICTURE)
    yield one("ssd", of(small.SsdHeads), picture(16), PICTURE)
    yield one("unet", of(small.UNet), picture(16), PICTURE)
    yield one("windows", of(small.Windows), picture(16), PICTURE)
    yield one("mean_by_length", of(small.MeanByLength), steps(8), STEPS)
    yield one("audio", of(small.Audio), lambda batch, n: {"x": torch.randn(batch, 10 * n)}, {"x": "batch seq"})
    yield one("tcn", of(small.Tcn), lambda batch, n: {"x": torch.randn(batch, 8, n)}, {"x": "batch _ seq"})
    yield one("mixer", of(small.Mixer), picture(16), PICTURE)
    yield one("squeeze_excite", of(small.Excited), picture(16), PICTURE)
    yield one(
        "graph",
        of(small.GraphLayer),
        lambda batch, n: {"nodes": torch.randn(batch, n, 8), "adjacency": torch.rand(batch, n, n).round()},
        {"nodes": "batch seq _", "adjacency": "batch seq seq"},
    )
    yield one("class_token", of(small.ClassToken), steps(16), STEPS)
    yield one("masked_mean", of(small.Pooler), masked_words, MASKED)
    yield one("shuffle", of(small.Shuffled), picture(8, 4), PICTURE)
    yield one("sub_pixel", of(small.SubPixel), picture(8), PICTURE)


def of_transformers() -> Iterator[Architecture]:
    import transformers as hf

    sizes = {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    text = {**sizes, "intermediate_size": 64, "max_position_embeddings": 128}
    distilled = {
        "vocab_size": 50,
        "max_position_embeddings": 128,
        "dim": 32,
        "n_layers": 2,
        "n_heads": 4,
        "hidden_dim": 64,
    }
    names = ("input_ids", "attention_mask")
    for name, kind, config in (
        ("bert", hf.BertModel, hf.BertConfig(**text)),
        ("roberta", hf.RobertaModel, hf.RobertaConfig(**text)),
        ("electra", hf.ElectraModel, hf.ElectraConfig(**text, embedding_size=32)),
        ("distilbert", hf.DistilBertModel, hf.DistilBertConfig(**distilled)),
    ):
        yield Architecture(name, lambda _, k=kind, c=config: ByName(k(c), *names), masked_words, MASKED)
    gpt = hf.GPT2Config(vocab_size=50, n_embd=32, n_layer=2, n_head=4, n_positions=128)
    yield Architecture("gpt2", lambda _: ByName(hf.GPT2Model(gpt), "input_ids", use_cache=False), words, WORDS)
    t5 = hf.T5Config(vocab_size=50, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4)
    yield Architecture("t5_encoder", lambda _: ByName(hf.T5EncoderModel(t5), *names), masked_words, MASKED)
    vit = hf.ViTConfig(**{**sizes, "intermediate_size": 64, "image_size": 32, "patch_size": 8})
    pixels = {"pixel_values": "batch _ _ _"}
    yield Architecture(
        "hf_vit",
        lambda _: ByName(hf.ViTModel(vit, add_pooling_layer=False), "pixel_values"),
        lambda batch, _: {"pixel_values": torch.randn(batch, 3, 32, 32)},
        pixels,
    )
    heard = hf.WhisperConfig(
        vocab_size=50, d_model=32, encoder_layers=2, decoder_layers=1, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=64, num_mel_bins=8, max_source_positions=16,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1,
    )  # fmt: skip
    yield Architecture(
        "whisper_encoder",
        lambda _: ByName(hf.WhisperModel(heard).get_encoder(), "input_features"),
        lambda batch, _: {"input_features": torch.randn(batch, 8, 32)},
        {"input_features": "batch _ _"},
    )


def of_timm() -> Iterator[Architecture]:
    def create(name: str, **options: Any) -> Callable[[int], nn.Module]:
        def build(_: int) -> nn.Module:
            with stand_ins("torchvision", "PIL"):
                import timm

                return timm.create_model(name, pretrained=False, num_classes=10, **options)

        return build

    small_vit = {"img_size": 32, "patch_size": 8, "embed_dim": 32, "depth": 2, "num_heads": 4}
    swin = {"img_size": 32, "patch_size": 2, "window_size": 4, "embed_dim": 16, "depths": (2, 2), "num_heads": (2, 4)}
    yield Architecture("resnet18", create("resnet18"), picture(64), PICTURE)
    yield Architecture("mobilenetv3", create("mobilenetv3_small_050"), picture(64), PICTURE)
    yield Architecture("convnext", create("convnext_atto"), picture(64), PICTURE)
    yield Architecture("timm_vit", create("vit_tiny_patch16_224", **small_vit), picture(32), PICTURE)
    yield Architecture("swin", create("swin_tiny_patch4_window7_224", **swin), picture(32), PICTURE)


def architectures() -> list[Architecture]:
    return [*by_hand(), *of_transformers(), *of_timm()]


# ---- files


def make_file(architecture: Architecture, exporter: str, batch: int, folder: Path) -> StaticFile | str:
    """The file, everything in it static; or why the exporter does not make it."""
    file = StaticFile(architecture, exporter, batch, folder / f"{architecture.name}.{exporter}.b{batch}.onnx")
    if file.path.exists():
        return file
    inputs = architecture.inputs(batch, LENGTH)
    options: dict[str, Any] = {"dynamo": True, "verbose": False} if exporter == "dynamo" else {"dynamo": False}
    try:
        with silence():
            torch.onnx.export(
                file.model, tuple(inputs.values()), str(file.path), input_names=list(inputs), external_data=False,
                **options,
            )  # fmt: skip
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    return file
