"""outputs"""

from __future__ import annotations

import collections
import copy
import dataclasses
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence
from transformers import BatchEncoding, DynamicCache, EncoderDecoderCache
from transformers.cache_utils import DynamicSlidingWindowLayer
from transformers.modeling_outputs import CausalLMOutputWithPast

import anyshape
from anyshape.declaration.calls import (
    Adapter,
    as_tensor,
    bind_call,
    cast,
    casting,
    example_of,
    flatten_outputs,
    read_call,
)
from anyshape.declaration.targets import as_dtype, converted, resolve_target
from anyshape.errors import DeclarationError


@dataclasses.dataclass
class Batch:
    ids: Any
    mask: Any = None


@dataclasses.dataclass(frozen=True, slots=True)
class Frozen:
    ids: Any
    scale: float = 1.0


class Pair(NamedTuple):
    left: Any
    right: Any


class Plain:
    def __init__(self, **parts):
        vars(self).update(parts)


class Counting(dict):
    """A dict of the user's own."""


def bind(function, args, kwargs=None):
    return bind_call(resolve_target(function), args, kwargs)


def names_of(signature):
    return [leaf.name for leaf in signature.leaves]


def takes_one(x):
    return x


def tensor(*shape):
    return torch.zeros(shape or (2, 3))


def cache_of(*lengths, layer=None):
    cache = DynamicCache()
    for index, length in enumerate(lengths):
        cache.update(torch.zeros(1, 2, length, 4), torch.ones(1, 2, length, 4), index)
    return cache


def cross_cache():
    return EncoderDecoderCache(cache_of(3), cache_of(5))


def same(a, b):
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and torch.equal(a, b)
    if type(a) is not type(b):
        return False
    if isinstance(a, (dict, collections.UserDict)):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if dataclasses.is_dataclass(a):
        return all(same(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a))
    return same(vars(a), vars(b)) if hasattr(a, "__dict__") and not callable(a) else a == b


NESTED = [
    (lambda: tensor(), ["x"]),
    (lambda: [tensor(), tensor()], ["x.0", "x.1"]),
    (lambda: (tensor(), [tensor(), None]), ["x.0", "x.1.0"]),
    (lambda: {"ids": tensor(), 7: tensor(), "n": 3}, ["x.ids", "x.7", "x.n"]),
    (lambda: collections.OrderedDict(b=tensor(), a=tensor()), ["x.b", "x.a"]),
    (lambda: collections.defaultdict(list, a=[tensor()]), ["x.a.0"]),
    (lambda: Counting(a=tensor()), ["x.a"]),
    (lambda: collections.UserDict(a=tensor()), ["x.a"]),
    (lambda: BatchEncoding({"input_ids": tensor(), "attention_mask": tensor()}), ["x.input_ids", "x.attention_mask"]),
    (lambda: Batch(tensor()), ["x.ids"]),
    (lambda: Batch(tensor(), {"a": tensor()}), ["x.ids", "x.mask.a"]),
    (lambda: Frozen(tensor(), 0.5), ["x.ids", "x.scale"]),
    (lambda: Pair(tensor(), None), ["x.left"]),
    (lambda: Pair(3, True), ["x.left", "x.right"]),
    (lambda: Plain(ids=tensor(), note="text", inner=Plain(mask=tensor())), ["x.ids", "x.inner.mask"]),
    (lambda: Plain(layers=[{"a": tensor()}, {"b": tensor()}]), ["x.layers.0.a", "x.layers.1.b"]),
    (lambda: cache_of(3, 4), ["x.0.key", "x.0.value", "x.1.key", "x.1.value"]),
    (lambda: CausalLMOutputWithPast(logits=tensor(), past_key_values=cache_of(3)),
     ["x.logits", "x.past_key_values.0.key", "x.past_key_values.0.value"]),
    (lambda: DynamicCache(), []),
    (lambda: None, []),
    (lambda: torch.Size([2, 3]), []),
    (lambda: "text", []),
    (lambda: Plain(names=["a", "b"], count=3), []),
]  # fmt: skip


@pytest.mark.parametrize(("make", "expected"), NESTED)
def test_leaves_are_named_by_where_they_stand(make, expected):
    assert names_of(bind(takes_one, (make(), {}))) == expected


@pytest.mark.parametrize("make", [make for make, _ in NESTED])
def test_a_rebuilt_call_equals_the_original(make):
    original = make()
    (rebuilt,), kwargs = bind(takes_one, (original, {})).build({})
    assert same(original, rebuilt)
    assert kwargs == {}


@pytest.mark.parametrize(("make", "expected"), NESTED)
def test_other_leaves_make_another_call_and_leave_the_example_alone(make, expected):
    original = make()
    before = copy.deepcopy(original)
    signature = bind(takes_one, (original, {}))
    new = {leaf.name: torch.full((5,), 9.0) for leaf in signature.leaves if leaf.is_tensor}
    (rebuilt,), _ = signature.build(new)
    assert same(original, before)
    assert all(
        torch.equal(v, torch.full((5,), 9.0))
        for v in bind(takes_one, (rebuilt, {})).values.values()
        if torch.is_tensor(v)
    )


def test_a_rebuilt_cache_grows_without_the_example():
    cache = cache_of(3)
    (rebuilt,), _ = bind(takes_one, (cache,)).build({})
    rebuilt.update(torch.zeros(1, 2, 1, 4), torch.zeros(1, 2, 1, 4), 0)
    assert (cache.get_seq_length(), rebuilt.get_seq_length()) == (3, 4)


def test_a_sliding_window_counts_what_it_was_given():
    cache = DynamicCache()
    cache.layers.append(DynamicSlidingWindowLayer(sliding_window=8))
    cache.update(torch.zeros(1, 2, 3, 4), torch.zeros(1, 2, 3, 4), 0)
    longer = torch.zeros(1, 2, 5, 4)
    (rebuilt,), _ = bind(takes_one, (cache,)).build({"x.0.key": longer, "x.0.value": longer})
    assert (cache.get_seq_length(), rebuilt.get_seq_length()) == (3, 5)


def test_both_caches_of_an_encoder_and_decoder_are_taken_apart():
    signature = bind(takes_one, (cross_cache(),))
    assert names_of(signature) == [
        "x.self_attention_cache.0.key", "x.self_attention_cache.0.value",
        "x.cross_attention_cache.0.key", "x.cross_attention_cache.0.value", "x.is_updated.0",
    ]  # fmt: skip
    (rebuilt,), _ = signature.build({"x.cross_attention_cache.0.key": torch.zeros(1, 2, 9, 4)})
    assert isinstance(rebuilt, EncoderDecoderCache)
    assert rebuilt.cross_attention_cache.layers[0].keys.shape[2] == 9


def test_what_the_model_marks_in_a_cache_does_not_reach_the_example():
    cache = cross_cache()
    (rebuilt,), _ = bind(takes_one, (cache,)).build({})
    rebuilt.is_updated[0] = False
    assert cache.is_updated == {0: True}


def test_a_packed_sequence_is_put_together_as_it_was():
    packed = pack_padded_sequence(torch.randn(2, 4, 3), torch.tensor([2, 4]), batch_first=True, enforce_sorted=False)
    signature = bind(takes_one, (packed,))
    (rebuilt,), _ = signature.build({})
    assert names_of(signature) == ["x.data", "x.batch_sizes", "x.sorted_indices", "x.unsorted_indices"]
    assert isinstance(rebuilt, PackedSequence)
    assert torch.equal(rebuilt.unsorted_indices, packed.unsorted_indices)


def test_leaves_need_no_gradient_and_share_the_memory():
    x = torch.zeros(2, requires_grad=True)
    (leaf,) = bind(takes_one, (x,)).leaves
    assert not leaf.value.requires_grad
    assert leaf.value.data_ptr() == x.data_ptr()


# ---- how the call is bound


def two(x, y=None, *, flag=True):
    return x


def any_keywords(x, **others):
    return x


def any_arguments(*parts, mask=None, **others):
    return parts


def dict_and_keywords(batch, **others):
    return batch


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "expected"),
    [
        (two, tensor(), None, ["x"]),
        (two, (tensor(), tensor()), None, ["x", "y"]),
        (two, (), {"y": tensor(), "x": tensor()}, ["y", "x"]),
        (two, (tensor(), {"y": tensor()}), None, ["x", "y"]),
        (two, ({"y": tensor(), "x": tensor()},), None, ["y", "x"]),
        (two, {"y": tensor(), "x": tensor()}, None, ["y", "x"]),
        (two, BatchEncoding({"x": tensor(), "y": tensor()}), None, ["x", "y"]),
        (two, (tensor(), {"ids": tensor()}), None, ["x", "y.ids"]),
        (two, (tensor(), {"ids": tensor()}, {}), None, ["x", "y.ids"]),
        (two, (tensor(), {}), None, ["x"]),
        (two, ({"ids": tensor()},), None, ["x.ids"]),
        (two, ({"x": tensor()},), {"y": tensor()}, ["x.x", "y"]),
        (two, (tensor(), {"y": tensor(), "flag": False}), None, ["x", "y", "flag"]),
        (two, [tensor(), tensor()], None, ["x.0", "x.1"]),
        (any_keywords, (tensor(), {"mask": tensor()}), None, ["x", "mask"]),
        (any_keywords, ({"x": tensor(), "mask": tensor()},), None, ["x", "mask"]),
        (any_arguments, (tensor(), tensor()), None, ["parts.0", "parts.1"]),
        (any_arguments, (tensor(), {"mask": tensor(), "more": tensor()}), None, ["parts.0", "mask", "more"]),
        (
            any_arguments,
            (tensor(), tensor(), tensor(), {"mask": tensor()}),
            None,
            ["parts.0", "parts.1", "parts.2", "mask"],
        ),
        (dict_and_keywords, ({"ids": tensor()},), None, ["batch.ids"]),
        (dict_and_keywords, ({"ids": tensor()}, {"more": tensor()}), None, ["batch.ids", "more"]),
    ],
)
def test_positions_come_first_and_a_trailing_dict_of_unbound_parameters_is_keywords(function, args, kwargs, expected):
    signature = bind(function, args, kwargs)
    assert names_of(signature) == expected
    positional, keywords = signature.build({})
    function(*positional, **keywords)


def test_keywords_stay_keywords_and_none_stays_none():
    positional, keywords = bind(two, (tensor(), None), {"flag": False}).build({})
    assert positional[1] is None
    assert keywords == {"flag": False}


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((), {}, "the example does not fit `two(x, y, flag)`: missing a required argument: 'x'"),
        ((1, 2, 3), {}, "the example does not fit `two(x, y, flag)`: too many positional arguments"),
        ((1,), {"z": 2}, "the example does not fit `two(x, y, flag)`: got an unexpected keyword argument 'z'"),
        ((1,), {"x": 2}, "the example does not fit `two(x, y, flag)`: multiple values for argument 'x'"),
    ],
)
def test_a_call_that_does_not_fit_names_the_signature(args, kwargs, message):
    with pytest.raises(DeclarationError) as caught:
        bind(two, args, kwargs)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (torch.eye(2).to_sparse(),
         "`x.0` is a sparse_coo tensor, ONNX inputs are dense: pass indices and values as inputs instead"),
        (torch.zeros(2, dtype=torch.float8_e5m2),
         "`x.0` is float8_e5m2, which numpy lacks: pass float16, and cast it in the model"),
        (np.zeros(2), "`x.0` is a numpy array: pass torch.from_numpy(x.0)"),
        ({"1": tensor(), 1: tensor()}, "the keys ['1', 1] of a dict are the same as text: rename one"),
        ({"a.b": tensor(), "a": {"b": tensor()}}, "two inputs are called `x.0.a.b`: rename a key of the example"),
    ],
)  # fmt: skip
def test_what_cannot_be_an_input_gets_one_sentence(value, message):
    with pytest.raises(DeclarationError) as caught:
        bind(takes_one, ([value],))
    assert str(caught.value) == message


def test_complex_numbers_are_pairs_among_the_leaves_and_themselves_in_the_call():
    given = torch.complex(torch.randn(2, 3), torch.randn(2, 3)).conj()
    signature = bind(takes_one, ([given],))
    (leaf,) = signature.leaves
    assert (leaf.shape, tuple(leaf.value.shape), leaf.value.dtype) == ((2, 3), (2, 3, 2), torch.float32)
    (((rebuilt,),), _) = signature.build({"x.0": leaf.value.transpose(0, 1)})
    assert torch.equal(rebuilt, given.T)


def test_an_object_that_contains_itself_gets_one_sentence():
    circle = Plain(ids=tensor())
    circle.self = circle
    with pytest.raises(DeclarationError) as caught:
        bind(takes_one, (circle,))
    assert str(caught.value) == "the example holds an object that contains itself: pass its tensors instead"


# ---- a call in one value

_X = torch.ones(2, 3)


@pytest.mark.parametrize(
    ("given", "args", "kwargs"),
    [
        ((1, 2), (1, 2), None),
        ({"x": 1}, {"x": 1}, None),
        ({}, {}, None),
        ({"args": (1, 2)}, (1, 2), None),
        ({"args": [1, 2]}, (1, 2), None),
        ({"args": 1}, 1, None),
        ({"kwargs": {"x": 1}}, (), {"x": 1}),
        ({"args": (1,), "kwargs": {"y": 2}}, (1,), {"y": 2}),
        ({"args": (1,), "x": 2}, {"args": (1,), "x": 2}, None),
    ],
)
def test_a_call_in_one_value(given: Any, args: Any, kwargs: Any) -> None:
    assert read_call(given) == (args, kwargs)


def test_one_tensor_as_arguments_is_not_taken_apart() -> None:
    result = anyshape.export(
        nn.Linear(3, 2), make_inputs=lambda batch=2: {"args": torch.randn(batch, 3)}, dims={"input": ["batch", 3]}
    )
    assert result.verdict == "checked"
    assert result(_X)[0].shape == (2, 2)


# ---- Lightning's `example_input_array`, in every form that Lightning takes

X, Y = torch.zeros(2, 3), torch.ones(2, 3)


@pytest.mark.parametrize(
    ("given", "call"),
    [
        (X, ((X,), {})),
        ((X, Y), ((X, Y), {})),
        ([X, Y], ((X, Y), {})),
        ({"x": X, "y": Y}, ((), {"x": X, "y": Y})),
        (None, None),
    ],
    ids=["tensor", "tuple", "list", "dict", "none"],
)
def test_the_example_that_a_module_carries_is_a_call(given: Any, call: Any):
    module = nn.Linear(3, 3)
    module.example_input_array = given
    assert example_of(module) == call


def test_a_module_without_one_has_none():
    assert example_of(nn.Linear(3, 3)) is None


# ---- the outputs of a call


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


# ---- another type


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", torch.float64])
def test_a_floating_type_is_read_from_its_name_or_taken_as_it_is(dtype):
    assert as_dtype(dtype) == (getattr(torch, dtype) if isinstance(dtype, str) else dtype)


@pytest.mark.parametrize("dtype", ["int8", torch.int64, "nn", 16, "float1"])
def test_a_type_that_is_not_floating_is_refused(dtype):
    with pytest.raises(DeclarationError) as caught:
        as_dtype(dtype)
    assert str(caught.value) == f"dtype is {dtype!r}: give a floating type such as torch.float16 or 'bfloat16'"


def test_the_user_s_own_module_is_not_touched():
    module = nn.Linear(2, 3)
    twin = converted(resolve_target(module), torch.float64)
    assert twin.module.weight.dtype == torch.float64
    assert module.weight.dtype == torch.float32


def test_floats_of_a_call_are_cast_and_nothing_else():
    target = resolve_target(lambda x, ids, scale: x)
    call = cast(bind_call(target, (torch.ones(2), torch.ones(2, dtype=torch.int64), 0.5)), torch.float16)
    assert [getattr(value, "dtype", type(value)) for value in call.values.values()] == [
        torch.float16, torch.int64, float,
    ]  # fmt: skip


def test_what_make_inputs_makes_is_cast_in_whichever_form_it_comes():
    target = resolve_target(nn.Linear(2, 3))
    for made in (torch.ones(1, 2), (torch.ones(1, 2),), {"input": torch.ones(1, 2)}, {"args": [torch.ones(1, 2)]}):
        given = casting(lambda made=made: made, target, torch.float64)()
        (value,) = (*given["args"], *given["kwargs"].values())
        assert value.dtype == torch.float64
