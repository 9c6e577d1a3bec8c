"""Models without a cache: text, images, sound and pairs of them, in one file with the names that optimum gives."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from anyshape.checkpoints.parts import Keywords, ModelPart, first_set, floats, mask_padded_right, text_ids, token_ids
from anyshape.errors import DeclarationError, named_line

SIGNALS = ("pixel_values", "input_values", "input_features")
_ORDER = ("input_ids", *SIGNALS, "attention_mask", "token_type_ids")
_OUTPUTS = (
    "last_hidden_state", "pooler_output", "logits", "start_logits", "end_logits", "pred_boxes", "pred_masks",
    "logits_per_image", "logits_per_text", "text_embeds", "image_embeds", "embeddings", "prediction_logits",
    "seq_relationship_logits", "predicted_depth", "reconstruction", "class_queries_logits", "masks_queries_logits",
)  # fmt: skip
"""The results that a user asks a model for; hidden states, attentions and caches are not among them."""


class Encoder(nn.Module):
    """A model that is called with keywords and returns what is asked for, by name."""

    def __init__(self, model: Any, outputs: Sequence[str], fixed: Mapping[str, Any]) -> None:
        super().__init__()
        self.model = model
        self._outputs = tuple(outputs)
        self._fixed = dict(fixed)

    def forward(self, **call: torch.Tensor) -> Any:
        result = self.model(**call, **self._fixed)
        if not isinstance(result, Mapping):
            return result  # code that a checkpoint brings along may return anything
        tensors = {name: value for name, value in result.items() if isinstance(value, torch.Tensor)}
        return {name: tensors[name] for name in self._outputs if name in tensors} or tensors


@dataclass(frozen=True)
class ModelInput:
    """One input: its axes, sizes at which the model runs, and values of any shape."""

    axes: tuple[str, ...]
    """Dims, and `_` where an axis is fixed."""
    shape: tuple[int, ...]
    make: Callable[..., torch.Tensor]
    note: str = ""
    """What is to be said about it."""

    def renamed(self, **names: str) -> ModelInput:
        return replace(self, axes=tuple(names.get(axis, axis) for axis in self.axes))

    def value(self, sizes: Mapping[str, int]) -> torch.Tensor:
        return self.make(*(sizes.get(axis, size) for axis, size in zip(self.axes, self.shape, strict=True)))


ModelInputs = dict[str, ModelInput]


def encoder_part(
    model: Any, inputs: ModelInputs, *, name: str = "model", outputs: Sequence[str] = _OUTPUTS
) -> ModelPart:
    taken = set(inspect.signature(model.forward).parameters)
    fixed = {key: value for key, value in (("use_cache", False), ("return_dict", True)) if key in taken}
    dims = {key: " ".join(one.axes) for key, one in inputs.items() if set(one.axes) != {"_"}}
    pairs = [pair for one in inputs.values() for pair in zip(one.axes, one.shape, strict=True)]
    example = {axis: size for axis, size in pairs if axis != "_"}

    def make_call(**sizes: int) -> Keywords:
        return {key: one.value(sizes) for key, one in inputs.items()}

    notes = tuple(one.note for one in inputs.values() if one.note)
    return ModelPart(name, Encoder(model, outputs, fixed), make_call, dims, example, notes=notes)


def inputs_of(model: Any, config: Any, *, module: Any = None, wants_types: bool | None = None) -> ModelInputs:
    """The inputs that a model needs: what its config and its `forward` speak of, tried on the model itself."""
    module = model if module is None else module
    taken = set(inspect.signature(module.forward).parameters)
    signals = [name for name in SIGNALS if name in taken]
    text = {} if "input_ids" not in taken else _text_inputs(config, taken, wants_types=wants_types)
    found: ModelInputs = {}
    if text and (not signals or getattr(model, "main_input_name", "input_ids") == "input_ids"):
        found |= text
    for name in signals:
        found[name] = _signal_input(name, config, module, model.dtype, found)
    if not found:
        listed = ", ".join(f"`{name}`" for name in ("input_ids", *SIGNALS))
        raise DeclarationError(f"`{type(model).__name__}` takes none of {listed}")
    if text and signals and len(found) > len(signals):
        found = _two_batches(found, signals)
    return {name: found[name] for name in _ORDER if name in found}


def _two_batches(found: ModelInputs, signals: Sequence[str]) -> ModelInputs:
    """A model of pairs compares every text with every image: they need not be equally many."""
    return {
        name: one.renamed(batch_size="image_batch_size" if name in signals else "text_batch_size")
        for name, one in found.items()
    }


def _text_inputs(config: Any, taken: set[str], *, wants_types: bool | None) -> ModelInputs:
    text = config.get_text_config()
    axes, shape = ("batch_size", "sequence_length"), (2, min(7, first_set(text, "max_position_embeddings") or 7))
    types = first_set(text, "type_vocab_size") or 0
    found = {"input_ids": ModelInput(axes, shape, lambda rows, length: text_ids(rows, length, text))}
    if "attention_mask" in taken:
        found["attention_mask"] = ModelInput(axes, shape, mask_padded_right)
    if "token_type_ids" in taken and (types > 1 if wants_types is None else wants_types):
        found["token_type_ids"] = ModelInput(axes, shape, lambda rows, length: token_ids(rows, length, max(1, types)))
    return found


# ---- images and sound


@dataclass(frozen=True)
class SignalShape:
    """How an image or a sound may come: axes that may vary, the sizes that the config speaks of, others to try."""

    axes: tuple[str, ...]
    sizes: tuple[int, ...]
    others: tuple[int, ...]


def _signal_input(name: str, config: Any, module: Any, dtype: torch.dtype, known: ModelInputs) -> ModelInput:
    """The input in the first shape that the model takes; its axes vary where another size runs, too."""

    def error(shape: tuple[int, ...]) -> Exception | None:
        call = {key: one.value({}) for key, one in known.items()}
        try:
            with torch.no_grad():
                module(**call, **{name: make(*shape)})
        except Exception as failure:  # noqa: BLE001  the model's own
            return failure
        return None

    def make(*shape: int) -> torch.Tensor:
        return floats(*shape, dtype=dtype)

    shapes = _possible_shapes(name, config)
    shape = next((shape for shape in shapes if error(shape.sizes) is None), None)
    if shape is None:
        said, listed = named_line(error(shapes[0].sizes)), list(shapes[0].sizes)
        raise DeclarationError(f"`{type(module).__name__}` does not run on `{name}` of the shape {listed}: {said}")
    if error(shape.others) is None:
        return ModelInput(shape.axes, shape.sizes, make)
    kept = " x ".join(str(size) for size in shape.sizes[1:])
    fixed = ("batch_size", *("_" for _ in shape.sizes[1:]))
    return ModelInput(fixed, shape.sizes, make, f"`{name}` is fixed at {kept}: the model takes no other size")


def _possible_shapes(name: str, config: Any) -> list[SignalShape]:
    if name == "pixel_values":
        return [_image_shape(first_set(config, "vision_config", "encoder") or config)]
    bins = first_set(config, "num_mel_bins", "input_feat_per_channel", "feature_size")
    if bins is None:
        return [SignalShape(("batch_size", "sequence_length"), (2, 2000), (2, 2777))]
    places = first_set(config, "max_source_positions")
    frames = 2 * places if places else first_set(config, "max_length") or 128
    in_front = SignalShape(("batch_size", "_", "sequence_length"), (2, bins, frames), (2, bins, frames - 16))
    at_the_end = SignalShape(("batch_size", "sequence_length", "_"), (2, frames, bins), (2, frames - 16, bins))
    return [in_front, at_the_end] if name == "input_features" else [at_the_end, in_front]


def _image_shape(config: Any) -> SignalShape:
    height, width = _height_and_width(first_set(config, "image_size") or 64)
    down, right = _height_and_width(first_set(config, "patch_size") or 16)
    channels = first_set(config, "num_channels", "in_channels") or 3
    larger = (2, channels, height + 4 * max(16, down), width + 8 * max(16, right))
    return SignalShape(("batch_size", "_", "height", "width"), (2, channels, height, width), larger)


def _height_and_width(size: Any) -> tuple[int, int]:
    if isinstance(size, Mapping):
        return int(size["height"]), int(size["width"])
    return (int(size), int(size)) if isinstance(size, int) else (int(size[0]), int(size[1]))
