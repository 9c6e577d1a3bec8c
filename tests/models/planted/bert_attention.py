"""A reshape with the example's batch, inside the attention of a subclassed layer of BERT."""

from __future__ import annotations

import torch
from torch import nn
from transformers import BertConfig, BertModel
from transformers.models.bert.modeling_bert import BertSelfOutput

DIMS = {"input_ids": "batch seq"}
EXAMPLE = {"batch": 3, "seq": 7}
OTHER = {"batch": 5, "seq": 4}
PINNED = ["batch"]
RULE = "pinned-dim"


class Output(BertSelfOutput):
    def forward(self, hidden_states, input_tensor):
        heads = hidden_states.reshape(3, -1, 2, 8)  # planted
        return super().forward(heads.flatten(2), input_tensor)


def built() -> nn.Module:
    config = BertConfig(
        vocab_size=20, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=32,
    )  # fmt: skip
    bert = BertModel(config, add_pooling_layer=False)
    bert.encoder.layer[1].attention.output = Output(config)
    return bert


def model() -> nn.Module:
    return built()


def inputs(batch, seq):
    return (torch.randint(0, 20, (batch, seq)),)
