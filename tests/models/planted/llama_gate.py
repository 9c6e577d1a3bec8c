"""A gate for the example's length, inside the MLP of a subclassed layer of llama."""

from __future__ import annotations

import torch
from torch import nn
from transformers import LlamaConfig, LlamaModel
from transformers.models.llama.modeling_llama import LlamaMLP

DIMS = {"input_ids": "batch seq"}
EXAMPLE = {"batch": 3, "seq": 7}
OTHER = {"batch": 5, "seq": 4}
PINNED = ["seq"]
RULE = "pinned-dim"


class Gated(LlamaMLP):
    def forward(self, x):
        fading = torch.linspace(1, 0, 7)[:, None]  # planted
        return super().forward(x) * fading


def built() -> nn.Module:
    config = LlamaConfig(
        vocab_size=20, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16,
        use_cache=False,
    )  # fmt: skip
    llama = LlamaModel(config)
    llama.layers[1].mlp = Gated(config)
    return llama


def model() -> nn.Module:
    return built()


def inputs(batch, seq):
    return (torch.randint(0, 20, (batch, seq)),)
