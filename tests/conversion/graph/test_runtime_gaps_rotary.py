"""Turned pairs of features stay ONNX's own operator at every batch."""

from __future__ import annotations

from pathlib import Path

import onnx
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import anyshape
from tests.running import is_right


def test_the_operator_serves_every_batch(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=20, hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, use_cache=False,
    )  # fmt: skip
    model, path = LlamaForCausalLM(config).eval(), tmp_path / "model.onnx"
    ids = torch.randint(20, (2, 5))
    result = anyshape.export(model, (ids,), path, dims={"input_ids": "batch seq"}, quick=True)
    operators = [node.op_type for node in onnx.load(path).graph.node]
    assert operators.count("RotaryEmbedding") == 4
    assert [attempt.strategy for attempt in result.attempts] == ["torch.export"]
    assert all(is_right(path, model, (torch.randint(20, sizes),)) for sizes in ((1, 1), (2, 5), (3, 9)))
