"""Do the files generate what the model generates? Run in ONNX Runtime, token by token, beside the check of values.

The check of each file compares calls. This one compares what users do with them: a prompt and one more token must give
what the longer prompt gives, and the most likely tokens must be those of transformers' own `generate`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers

from anyshape.checkpoints.decoders import context_length
from anyshape.checkpoints.encoder_decoders import KNOWN, PAST
from anyshape.checkpoints.parts import ModelPart, first_set, mask_padded_left, positions_of, token_ids
from anyshape.torchkit.patches import patched
from anyshape.verbs.load import load

Run = Callable[[torch.Tensor, torch.Tensor, Any], tuple[torch.Tensor, Any]]
"""Ids, the mask of all tokens so far and the past -> the last token's logits and the present."""

GenerationConfig: Any = transformers.GenerationConfig
GenerationMixin: Any = transformers.GenerationMixin

ROWS, PROMPT, TOKENS = 2, 5, 8


@dataclass(frozen=True)
class Generator:
    """A file that generates, and what the model itself makes of the same prompt."""

    run: Run
    empty: Any
    """The past before the first token."""
    prompt: torch.Tensor
    reference: Callable[[int], torch.Tensor]
    """The tokens that transformers generates after the prompt."""
    tolerance: float


@dataclass(frozen=True)
class GenerationEvidence:
    """What was seen, a clause each; or what is wrong."""

    facts: tuple[str, ...] = ()
    fault: str | None = None
    notes: tuple[str, ...] = ()


def check_generation(model: Any, config: Any, parts: Mapping[Path, ModelPart], *, seed: int) -> GenerationEvidence:
    """Run the files of a decoder, or of an encoder and a decoder."""
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(seed)
        generator = (_decoder_generator if len(parts) == 1 else _encoder_decoder_generator)(model, config, parts)
        room = (context_length(config.get_text_config(decoder=True)) or 10**6) - generator.prompt.shape[1]
        wanted = generator.reference(min(TOKENS, room))
        tokens = torch.cat([generator.prompt, wanted], dim=1)
        fault = step_difference(generator, tokens) or first_difference(generator, wanted)
    rows, count = wanted.shape
    return GenerationEvidence(
        () if fault else (
            f"a prompt of {PROMPT} and one more token as the prompt of {PROMPT + 1}",
            f"{count} tokens of {rows} prompts as `generate` of transformers",
        ),
        fault,
    )  # fmt: skip


def step_difference(generator: Generator, tokens: torch.Tensor) -> str | None:
    """A prompt and one more token against the longer prompt, with rows of different lengths."""
    ids = tokens[:, : PROMPT + 1]
    mask = mask_padded_left(*ids.shape)
    whole, _ = generator.run(ids, mask, generator.empty)
    _, past = generator.run(ids[:, :-1], mask[:, :-1], generator.empty)
    step, _ = generator.run(ids[:, -1:], mask, past)
    difference, largest = (step - whole).abs().max().item(), whole.abs().max().item()
    if difference <= generator.tolerance * largest:
        return None
    length = ids.shape[1]
    return (
        f"a prompt of {length - 1} and one more token differ from the prompt of {length} "
        f"by {difference:.2g} (largest {largest:.2g})"
    )


def first_difference(generator: Generator, wanted: torch.Tensor) -> str | None:
    """The most likely tokens one by one; where two are equally likely, either may be taken."""
    ids, past, mask = generator.prompt, generator.empty, torch.ones_like(generator.prompt)
    for place in range(wanted.shape[1]):
        expected = wanted[:, place : place + 1]
        logits, past = generator.run(ids, mask, past)
        found = logits.argmax(-1, keepdim=True)
        lost = (logits.gather(1, found) - logits.gather(1, expected)).max().item()
        if not lost <= generator.tolerance * logits.abs().max().item():
            given, own = found.flatten().tolist(), expected.flatten().tolist()
            return f"token {place + 1} is {given}, but `generate` of transformers gives {own}"
        ids, mask = expected, torch.cat([mask, torch.ones_like(expected)], dim=1)
    return None


# ---- two makers


def _decoder_generator(model: Any, config: Any, parts: Mapping[Path, ModelPart]) -> Generator:
    [(path, part)] = parts.items()
    file, takes_places = load(path), "position_ids" in part.dims

    def run(ids: torch.Tensor, mask: torch.Tensor, past: Any) -> tuple[torch.Tensor, Any]:
        places = {"position_ids": positions_of(mask, ids.shape[1])} if takes_places else {}
        result = file(input_ids=ids, attention_mask=mask, **places, past_key_values=past)
        return result["logits"][:, -1].float(), result["present"]

    prompt = token_ids(ROWS, PROMPT, config.get_text_config(decoder=True).vocab_size)
    empty = part.make_call(batch_size=ROWS, sequence_length=1, past_sequence_length=0)["past_key_values"]

    def reference(count: int) -> torch.Tensor:
        return _generated_tokens(model, count, input_ids=prompt, attention_mask=torch.ones_like(prompt))

    return Generator(run, empty, prompt, reference, _tolerance(model))


def _encoder_decoder_generator(model: Any, config: Any, parts: Mapping[Path, ModelPart]) -> Generator:
    (encoder_path, encoder), (path, part) = parts.items()
    file, call = load(path), encoder.make_call(**{**encoder.example, "batch_size": ROWS})
    states = load(encoder_path)(**call)["last_hidden_state"]
    masks = {"encoder_attention_mask": call["attention_mask"]} if "encoder_attention_mask" in part.dims else {}

    def run(ids: torch.Tensor, _mask: torch.Tensor, past: Any) -> tuple[torch.Tensor, Any]:
        result = file(input_ids=ids, encoder_hidden_states=states, **masks, past_key_values=past)
        return result["logits"][:, -1].float(), result["present"]

    start = _start_token(model, config)
    empty = part.make_call(**{**part.example, "batch_size": ROWS, PAST: 0, KNOWN: 0})["past_key_values"]

    def reference(count: int) -> torch.Tensor:
        return _generated_tokens(model, count, start, **call)

    return Generator(run, empty, torch.full((ROWS, 1), start), reference, _tolerance(model))


def _start_token(model: Any, config: Any) -> int:
    """The token that a decoder begins with."""
    text = config.get_text_config(decoder=True)
    places = (getattr(model, "generation_config", None), config, text)
    found = (first_set(place, "decoder_start_token_id", "bos_token_id") for place in places)
    return next((int(token) for token in found if token is not None), 0)


def _tolerance(model: Any) -> float:
    """How far logits may lie apart, as a part of the largest: a type of half the bits rounds more."""
    return 1e-3 if model.dtype in (torch.float32, torch.float64) else 3e-2


def _generated_tokens(model: Any, count: int, start: int | None = None, **call: Any) -> torch.Tensor:
    """The most likely tokens, as transformers finds them, without what a checkpoint's own settings would change."""
    settings = GenerationConfig(
        max_new_tokens=count, do_sample=False, num_beams=1, pad_token_id=0, use_cache=True, decoder_start_token_id=start
    )
    with patched(model, "generation_config", GenerationConfig()):
        # not the model's own method: Whisper's puts languages and timestamps around it
        ids: torch.Tensor = GenerationMixin.generate(model, generation_config=settings, **call)
    return ids[:, -count:]
