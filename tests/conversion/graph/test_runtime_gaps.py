"""What ONNX Runtime does wrong by itself, a file makes it do right: empty reductions, padded pools, turned pairs."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import LlamaConfig, LlamaForCausalLM

import anyshape
from tests.running import is_right

# ---- reductions of what may be empty give PyTorch's shapes and values


class Weighted(nn.Module):
    """Attention over a cache that may hold nothing: the feature axis is reduced, then the cache's own."""

    def forward(self, query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        weights = torch.softmax((query.unsqueeze(1) * keys).sum(-1), -1)
        return (weights.unsqueeze(-1) * values).sum(1)


class Reduced(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return x.mean(-1), x.amax(-1, keepdim=True), x.sum((0, 2)), x.prod(1), x.norm(dim=-1), x.logsumexp(-1)


def test_a_cache_may_be_empty(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    calls = [(torch.randn(2, 6), torch.randn(2, n, 6), torch.randn(2, n, 6)) for n in (4, 0, 1, 7)]
    dims = {"query": "batch 6", "keys": "batch past 6", "values": "batch past 6"}
    result = anyshape.export(Weighted(), calls[0], path, dims=dims, sizes={"past": "0.."}, quick=True)
    assert [attempt.strategy for attempt in result.attempts] == ["torch.export"]
    assert all(is_right(path, Weighted(), call) for call in calls)


def test_every_reduction_of_nothing_has_its_shape(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    result = anyshape.export(
        Reduced(), torch.rand(2, 3, 4), path, dims={"x": "batch n 4"}, sizes={"n": "0..", "batch": "0.."}, quick=True
    )
    assert [attempt.strategy for attempt in result.attempts] == ["torch.export"]
    calls = [torch.rand(shape) for shape in ((0, 3, 4), (2, 0, 4), (0, 0, 4), (5, 6, 4))]
    assert all(is_right(path, Reduced(), (call,)) for call in calls)


def test_axes_are_counted_from_the_front_also_in_a_branch(tmp_path: Path) -> None:
    class Branching(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.sum(-1) if x.shape[0] > 2 else x.mean(-1)

    path = tmp_path / "model.onnx"
    anyshape.export(Branching(), torch.rand(3, 5, 4), path, dims={"x": "batch n 4"}, sizes={"n": "0.."}, quick=True)
    assert all(is_right(path, Branching(), (torch.rand(shape),)) for shape in ((3, 0, 4), (1, 0, 4), (1, 2, 4)))


# ---- zeros around the input of a max pool count, also where all numbers are negative


class Pooled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.max_pool2d(F.pad(x, (1, 1, 1, 1)), 3, 2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64], ids=str)
def test_zeros_before_a_max_pool_stay_zeros(dtype: torch.dtype, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    calls = [-torch.rand(sizes).to(dtype) - 1 for sizes in ((2, 3, 9, 12), (1, 3, 1, 1), (3, 3, 8, 5))]
    result = anyshape.export(Pooled(), (calls[0],), path, dims={"x": "batch 3 height width"}, quick=True)
    assert [attempt.strategy for attempt in result.attempts] == ["torch.export"]
    assert all(is_right(path, Pooled(), (call,)) for call in calls)


# ---- turned pairs of features stay ONNX's own operator at every batch


def test_the_operator_serves_every_batch(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=20, hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, use_cache=False,
    )  # fmt: skip
    model, path = LlamaForCausalLM(config).eval(), tmp_path / "model.onnx"
    ids = torch.randint(20, (2, 5))
    result = anyshape.export(model, (ids,), path, dims={"input_ids": "batch seq"}, target="onnxruntime", quick=True)
    operators = [node.op_type for node in onnx.load(path).graph.node]
    assert operators.count("RotaryEmbedding") == 4
    assert [attempt.strategy for attempt in result.attempts] == ["torch.export"]
    assert all(is_right(path, model, (torch.randint(20, sizes),)) for sizes in ((1, 1), (2, 5), (3, 9)))
