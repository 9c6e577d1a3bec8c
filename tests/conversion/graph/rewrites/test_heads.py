"""Attention takes heads as they come out of the products, and its result goes on without a Transpose."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import BertConfig, BertModel, DynamicCache, LlamaConfig, LlamaForCausalLM

from tests.conversion.graph.exported import both, exported, operators
from tests.running import is_right


class Heads(nn.Module):
    """Attention by hand, with as many heads of keys as the model likes."""

    def __init__(self, heads: int = 4, shared: int = 4) -> None:
        super().__init__()
        self.heads, self.shared = heads, shared
        self.query, self.key, self.value = (nn.Linear(16, 4 * count) for count in (heads, shared, shared))
        self.last = nn.Linear(4 * heads, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, seq, _ = x.shape
        query = self.query(x).view(batch, seq, self.heads, 4).transpose(1, 2)
        key = self.key(x).view(batch, seq, self.shared, 4).transpose(1, 2)
        value = self.value(x).view(batch, seq, self.shared, 4).transpose(1, 2)
        times = self.heads // self.shared
        if times > 1:
            key = key[:, :, None].expand(batch, self.shared, times, seq, 4).reshape(batch, self.heads, seq, 4)
            value = value[:, :, None].expand(batch, self.shared, times, seq, 4).reshape(batch, self.heads, seq, 4)
        found = F.scaled_dot_product_attention(query, key, value)
        return self.last(found.transpose(1, 2).reshape(batch, seq, -1))


SIZES = ((1, 1), (1, 7), (3, 1), (4, 9))


@pytest.mark.parametrize("shared", [4, 2, 1])
def test_heads_are_neither_moved_nor_repeated(tmp_path: Path, shared: int) -> None:
    torch.manual_seed(0)
    model = Heads(shared=shared).eval()
    path, plain = both(tmp_path, model, (torch.randn(2, 5, 16),), {"x": "batch seq 16"})
    found = operators(path)
    assert found["Attention"] == plain["Attention"] == 1
    assert plain["Transpose"] >= 4
    assert not {"Transpose", "Reshape", "Expand", "Shape", "Concat"} & set(found)
    assert all(is_right(path, model, (torch.randn(*sizes, 16),)) for sizes in SIZES)


class SeenTwice(Heads):
    """The result of attention is used with its heads apart, too."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        batch, seq, _ = x.shape
        query, key, value = (
            layer(x).view(batch, seq, 4, 4).transpose(1, 2) for layer in (self.query, self.key, self.value)
        )
        found = F.scaled_dot_product_attention(query, key, value)
        return found, self.last(found.transpose(1, 2).reshape(batch, seq, -1))


def test_a_result_whose_heads_are_asked_for_keeps_them(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = SeenTwice().eval()
    path = exported(tmp_path, model, (torch.randn(2, 5, 16),), {"x": "batch seq 16"})
    assert operators(path)["Transpose"] == 4
    assert all(is_right(path, model, (torch.randn(*sizes, 16),)) for sizes in SIZES)


def test_layers_of_torch_lose_all_their_transposes(tmp_path: Path) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, norm_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    path, plain = both(tmp_path, model, (torch.randn(2, 5, 16),), {"src": "batch seq 16"})
    found = operators(path)
    assert plain["Transpose"] > 10
    assert (found["Attention"], found["Split"], found["Transpose"], found["Gather"]) == (2, 2, 0, 0)
    assert all(is_right(path, model, (torch.randn(*sizes, 16),)) for sizes in SIZES)


def test_layers_that_take_positions_first_are_right(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = nn.TransformerEncoderLayer(16, 4, 32).eval()
    path = exported(tmp_path, model, (torch.randn(5, 2, 16),), {"src": "seq batch 16"})
    assert operators(path)["Attention"] == 1
    assert all(is_right(path, model, (torch.randn(*sizes, 16),)) for sizes in SIZES)


def test_a_mask_of_transformers_is_not_looked_up(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=20, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=16,
    )  # fmt: skip
    model = BertModel(config, add_pooling_layer=False).eval()
    dims = {"input_ids": "batch seq", "attention_mask": "batch seq"}
    mask = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]])
    path, plain = both(tmp_path, model, (torch.randint(20, (2, 5)), mask), dims, sizes={"seq": "1..16"})
    assert (plain["GatherND"], operators(path)["GatherND"]) == (1, 0)
    for batch, seq in SIZES:
        mask = torch.arange(seq)[None] < torch.randint(1, seq + 1, (batch, 1))
        assert is_right(path, model, (torch.randint(20, (batch, seq)), mask.long()))


class Step(nn.Module):
    """One step of a decoder, with its past."""

    def __init__(self) -> None:
        super().__init__()
        config = LlamaConfig(
            vocab_size=20, hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2,
        )  # fmt: skip
        self.model = LlamaForCausalLM(config)

    def forward(self, ids: torch.Tensor, past: DynamicCache) -> tuple[torch.Tensor, DynamicCache]:
        found = self.model(ids, past_key_values=past, use_cache=True)
        return found.logits, found.past_key_values


def past_of(batch: int, length: int) -> DynamicCache:
    cache = DynamicCache()
    for layer in range(2):
        cache.update(torch.randn(batch, 2, length, 4), torch.randn(batch, 2, length, 4), layer)
    return cache


def test_keys_and_values_of_the_past_are_given_to_attention(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = Step().eval()
    dims = {"ids": "batch seq", "past": "batch 2 past 4"}
    path = exported(tmp_path, model, (torch.randint(20, (2, 3)), past_of(2, 5)), dims, sizes={"past": "0.."})
    nodes = [node for node in onnx.load(path).graph.node if node.op_type == "Attention"]
    assert [len(node.input) for node in nodes] == [6, 6]
    assert [len(node.output) for node in nodes] == [3, 3]
    for batch, seq, length in ((1, 1, 0), (3, 1, 7), (1, 4, 1), (2, 2, 0)):
        assert is_right(path, model, (torch.randint(20, (batch, seq)), past_of(batch, length)))


# ---- transposes that undo each other


class TimeFirst(nn.Module):
    """A layer between two swaps of batch and time; what looks along time keeps them."""

    def __init__(self, *, looks_along_time: bool) -> None:
        super().__init__()
        self.linear, self.looks_along_time = nn.Linear(4, 6), looks_along_time

    def forward(self, x: Tensor) -> Tensor:
        rows = self.linear(x.transpose(0, 1))
        rows = rows.cumsum(0) if self.looks_along_time else rows
        return rows.transpose(0, 1).tanh()


@pytest.mark.parametrize("looks_along_time", [False, True])
def test_swaps_are_left_out_where_nothing_looks_along_time(tmp_path: Path, *, looks_along_time: bool) -> None:
    torch.manual_seed(0)
    model = TimeFirst(looks_along_time=looks_along_time)
    path, plain = both(tmp_path, model, (torch.randn(2, 5, 4),), {"x": "batch seq 4"})
    assert plain["Transpose"] >= 2
    assert operators(path)["Transpose"] == (2 if looks_along_time else 0)
    assert all(is_right(path, model, (torch.randn(*sizes, 4),)) for sizes in ((1, 1), (3, 7)))
