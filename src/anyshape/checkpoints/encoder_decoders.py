"""Models with an encoder and a decoder: two files, and the decoder's serves the first token and every later one.

The caches that belong to the encoder's states come back whole from the first call, so that the next ones need not
compute them. optimum and transformers.js pass empty ones at first, and what came back from then on.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import nn
from transformers import modeling_outputs

from anyshape.checkpoints.decoders import Pair, ResumedCache, context_length, pair_like, project_the_rest
from anyshape.checkpoints.encoders import encoder_part, inputs_of
from anyshape.checkpoints.parts import Keywords, ModelPart, floats, mask_padded_right, token_ids
from anyshape.errors import DeclarationError, named_line
from anyshape.sizes.spelling import spelled

PAST, LENGTH = "past_decoder_sequence_length", "decoder_sequence_length"
SOURCE, KNOWN = "encoder_sequence_length", "past_encoder_sequence_length"


class SecondHalf(nn.Module):
    """The decoder of a model, with the encoder's states given, and without a cache."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def run(self, input_ids: torch.Tensor, states: torch.Tensor, mask: torch.Tensor | None, **more: Any) -> Any:
        masks = {} if mask is None else {"attention_mask": mask}
        encoded = modeling_outputs.BaseModelOutput(last_hidden_state=cast("Any", states))
        return self.model(decoder_input_ids=input_ids, encoder_outputs=encoded, **masks, **more)

    def forward(
        self,
        input_ids: torch.Tensor,
        encoder_hidden_states: torch.Tensor,
        encoder_attention_mask: torch.Tensor | None = None,
    ) -> dict[str, Any]:
        result = self.run(input_ids, encoder_hidden_states, encoder_attention_mask, use_cache=False)
        return {"logits": result.logits}


class SecondHalfWithCache(SecondHalf):
    """The same with its caches as plain tensors."""

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        for module in _cross_attentions(model):
            module.register_forward_pre_hook(project_the_rest, with_kwargs=True)

    def forward(
        self,
        input_ids: torch.Tensor,
        encoder_hidden_states: torch.Tensor,
        encoder_attention_mask: torch.Tensor | None = None,
        past_key_values: Sequence[dict[str, Pair]] = (),
    ) -> dict[str, Any]:
        cache = ResumedCache(past_key_values)
        result = self.run(
            input_ids, encoder_hidden_states, encoder_attention_mask, past_key_values=cache, use_cache=True
        )
        return {"logits": result.logits, "present": cache.as_pairs()}


def _cross_attentions(model: Any) -> list[nn.Module]:
    """The modules that may look at the encoder's states, where they are written as transformers writes them now."""
    wanted = {"key_value_states", "past_key_values"}
    modules = [part for part in model.modules() if hasattr(part, "layer_idx")]
    return [part for part in modules if wanted <= set(inspect.signature(part.forward).parameters)]


def encoder_decoder_parts(model: Any, config: Any, *, cached: bool, wants_types: bool | None) -> list[ModelPart]:
    """`encoder_model.onnx`, and `decoder_model_merged.onnx` or, without a cache, `decoder_model.onnx`."""
    found = inputs_of(model, config, module=model.get_encoder(), wants_types=wants_types)
    inputs = {name: one.renamed(sequence_length=SOURCE) for name, one in found.items()}
    encoder = encoder_part(model.get_encoder(), inputs, name="encoder_model", outputs=("last_hidden_state",))
    text = config.get_text_config(decoder=True)
    states, cache = _states_and_cache(model, encoder, text)
    decoder = _decoder_part(model, text, states.shape[-1], is_masked="attention_mask" in encoder.dims)
    return [encoder, _part_with_cache(decoder, model, text, cache) if cached else decoder]


def _decoder_part(model: Any, config: Any, width: int, *, is_masked: bool) -> ModelPart:
    def make_call(**sizes: int) -> Keywords:
        rows, source = sizes["batch_size"], sizes[SOURCE]
        call: Keywords = {"input_ids": token_ids(rows, sizes[LENGTH], config.vocab_size)}
        if is_masked:
            call["encoder_attention_mask"] = mask_padded_right(rows, source)
        return {**call, "encoder_hidden_states": floats(rows, source, width, dtype=model.dtype)}

    dims: dict[str, str] = {"input_ids": f"batch_size {LENGTH}"}
    if is_masked:
        dims["encoder_attention_mask"] = f"batch_size {SOURCE}"
    dims["encoder_hidden_states"] = f"batch_size {SOURCE} _"
    example, limit = {"batch_size": 2, LENGTH: 3, SOURCE: 7}, context_length(config)
    sizes = {LENGTH: f"1..{limit}"} if limit else {}
    return ModelPart("decoder_model", SecondHalf(model), make_call, dims, example, sizes)


def _part_with_cache(plain: ModelPart, model: Any, config: Any, cache: Any) -> ModelPart:
    """The same decoder, in one file for the first token and every later one."""
    if not _cross_attentions(model) or not hasattr(cache, "cross_attention_cache"):
        task = _TASKS.get(model.main_input_name, "automatic-speech-recognition")
        raise DeclarationError(
            f"`{type(model).__name__}` attends to its encoder in a way of its own, so its caches cannot be passed on: "
            + spelled(f'task="{task}" exports it without', f"--task {task} exports it without")
        )
    layers = list(zip(cache.self_attention_cache.layers, cache.cross_attention_cache.layers, strict=True))

    def make_call(**sizes: int) -> Keywords:
        rows, past, known = sizes["batch_size"], sizes[PAST], sizes[KNOWN]
        pairs = [
            {"decoder": pair_like(own, rows, past, model.dtype), "encoder": pair_like(cross, rows, known, model.dtype)}
            for own, cross in layers
        ]
        return {**plain.make_call(**sizes), "past_key_values": pairs}

    dims = {
        **plain.dims,
        "past_key_values.*.decoder.*": f"batch_size _ {PAST} _",
        "past_key_values.*.encoder.*": f"batch_size _ {KNOWN} _",
    }
    limit = context_length(config)
    where = (f"{KNOWN} <= {SOURCE}", *((f"{PAST} + {LENGTH} <= {limit}",) if limit else ()))
    example, sizes = {**plain.example, PAST: 4, KNOWN: 5}, {PAST: "0..", KNOWN: "0.."}
    return ModelPart("decoder_model_merged", SecondHalfWithCache(model), make_call, dims, example, sizes, where)


_TASKS = {"input_ids": "text2text-generation", "pixel_values": "image-to-text"}
"""What a model is for, by what its encoder takes; all else is sound."""


def _states_and_cache(model: Any, encoder: ModelPart, config: Any) -> tuple[torch.Tensor, Any]:
    """The encoder's states for a small call, and what the decoder keeps of them."""
    ids = torch.full((2, 1), config.vocab_size - 1)
    try:
        with torch.no_grad():
            states = encoder.module(**encoder.make_call(**encoder.example))["last_hidden_state"]
            cache = SecondHalf(model).run(ids, states, None, use_cache=True).past_key_values
    except Exception as error:
        raise DeclarationError(f"`{type(model).__name__}` does not run on a small call: {named_line(error)}") from error
    return states, cache
