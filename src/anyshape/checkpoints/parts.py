"""A part of a model that becomes one file, and values that a transformers model accepts at any size.

Masks are ragged and ids cover the vocabulary: what looks alike in every row would let a wrong file pass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

Keywords = dict[str, Any]
"""A call of a part."""


@dataclass(frozen=True)
class ModelPart:
    """What `export` needs to know for one file."""

    name: str
    """Of the file, without suffix and as optimum calls it: `decoder_model_merged`."""
    module: nn.Module
    make_call: Callable[..., Keywords]
    """Keywords for the module at these sizes of the dims; the caller seeds the random numbers."""
    dims: Mapping[str, str | Sequence[str]]
    example: Mapping[str, int]
    """Dim -> a size at which the model runs."""
    sizes: Mapping[str, str] = field(default_factory=dict)
    where: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def make_inputs(self, **sizes: int) -> dict[str, Any]:
        """The call in the form that `export` takes."""
        return {"args": (), "kwargs": self.make_call(**{**self.example, **sizes})}


# ---- values of its inputs


def token_ids(rows: int, length: int, vocabulary: int) -> torch.Tensor:
    return torch.randint(0, vocabulary, (rows, length))


def text_ids(rows: int, length: int, config: Any) -> torch.Tensor:
    """Texts as tokenizers make them: ended by the token for it, without padding, of which some models count places."""
    ids, padding, ends = token_ids(rows, length, config.vocab_size), first_set(config, "pad_token_id"), ends_of(config)
    if padding is not None:
        ids[ids == padding] = (padding + 1) % config.vocab_size
    if ends and ends[0] < config.vocab_size:
        ids[:, -1:] = ends[0]
    return ids


def ends_of(config: Any) -> list[int]:
    """The tokens that end a text, the usual one first."""
    found = first_set(config, "eos_token_id")
    return [] if found is None else list(found) if isinstance(found, (list, tuple)) else [found]


def mask_padded_right(rows: int, length: int) -> torch.Tensor:
    """As tokenizers of encoders pad: the first row is full, each other one ends where it likes."""
    ends = torch.randint(1, length + 1, (rows, 1)) if length else torch.zeros(rows, 1)
    ends[:1] = length
    return (torch.arange(length) < ends).to(torch.int64)


def mask_padded_left(rows: int, length: int) -> torch.Tensor:
    """As decoders are padded, so that every row goes on at the same place."""
    return mask_padded_right(rows, length).flip(1)


def positions_of(mask: torch.Tensor, length: int) -> torch.Tensor:
    """The places of the last tokens, counted without padding, as `generate` counts them."""
    return (mask.cumsum(1) - 1).clamp(min=0)[:, mask.shape[1] - length :]


def floats(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(shape).to(dtype)


def first_set(config: Any, *names: str) -> Any:
    """The first of these settings that a config has and that is not None."""
    return next((value for name in names if (value := getattr(config, name, None)) is not None), None)
