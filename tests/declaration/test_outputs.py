from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import pytest
import torch
from torch import nn
from transformers import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import CausalLMOutputWithPast

from anyshape.declaration.calls import bind_call
from anyshape.declaration.outputs import Adapter, as_tensor, flatten_outputs
from anyshape.declaration.targets import resolve_target


@dataclasses.dataclass
class Batch:
    ids: Any
    mask: Any = None


class Pair(NamedTuple):
    left: Any
    right: Any


class Plain:
    def __init__(self, **parts):
        vars(self).update(parts)


def tensor(*shape):
    return torch.zeros(shape or (2, 3))


def cache_of(*lengths):
    cache = DynamicCache()
    for index, length in enumerate(lengths):
        cache.update(torch.zeros(1, 2, length, 4), torch.ones(1, 2, length, 4), index)
    return cache


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (tensor(), ["output"]),
        (5, ["output"]),
        (True, ["output"]),
        ((tensor(),), ["output.0"]),
        ([tensor(), (tensor(), tensor())], ["output.0", "output.1.0", "output.1.1"]),
        ((tensor(), None, tensor()), ["output.0", "output.2"]),
        ({"logits": tensor(), "extra": [tensor()]}, ["logits", "extra.0"]),
        (Batch(tensor(), tensor()), ["ids", "mask"]),
        (Pair(tensor(), tensor()), ["left", "right"]),
        (torch.zeros(2, 2).max(dim=0), ["output.0", "output.1"]),
        (Plain(scores=tensor(), note="text"), ["scores"]),
        (CausalLMOutputWithPast(logits=tensor()), ["logits"]),
        (
            CausalLMOutputWithPast(logits=tensor(), past_key_values=cache_of(3)),
            ["logits", "present.0.key", "present.0.value"],
        ),
        (cache_of(3), ["present.0.key", "present.0.value"]),
        ((tensor(), cache_of(3)), ["output.0", "present.0.key", "present.0.value"]),
        (None, []),
        ("text", []),
        ({}, []),
    ],
)
def test_outputs_are_named_by_their_keys(result, expected):
    assert [name for name, _ in flatten_outputs(result)] == expected


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(True, torch.bool), (3, torch.int64), (0.5, torch.float32), (torch.zeros(2, dtype=torch.int8), torch.int8)],
)
def test_a_number_among_the_outputs_becomes_a_tensor(value, dtype):
    assert as_tensor(value).dtype == dtype
    assert as_tensor(value).shape == (() if not torch.is_tensor(value) else value.shape)


class Nested(nn.Module):
    def forward(self, batch, scale, states=None):
        assert states is None
        return {"sum": batch["a"] + batch["b"][0] * scale, "count": batch["a"].shape[0]}


def test_the_adapter_goes_from_flat_inputs_to_flat_tensors():
    target = resolve_target(Nested())
    signature = bind_call(target, ({"a": torch.ones(2), "b": [torch.ones(2)]}, 2.0, None))
    adapter = Adapter(target, signature, ("batch.a", "batch.b.0"))
    total, count = adapter(torch.full((3,), 5.0), torch.full((3,), 1.0))
    assert total.tolist() == [7.0, 7.0, 7.0]
    assert count.item() == 3


def test_flags_of_an_object_are_no_outputs_but_numbers_of_a_tuple_are() -> None:
    halves = (DynamicCache(), DynamicCache())
    for half in halves:
        half.update(torch.ones(1, 1, 2, 3), torch.ones(1, 1, 2, 3), 0)
    cache = EncoderDecoderCache(*halves)
    assert cache.is_updated
    names = [name for name, _ in flatten_outputs({"past_key_values": cache, "steps": 3})]
    assert names == [
        "present.self_attention_cache.0.key", "present.self_attention_cache.0.value",
        "present.cross_attention_cache.0.key", "present.cross_attention_cache.0.value", "steps",
    ]  # fmt: skip
