"""The structure of a call and of a result, as the contract stores it."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import pytest
import torch
from torch import nn

from anyshape.declaration.calls import bind_call
from anyshape.declaration.spec import declare
from anyshape.declaration.targets import resolve_target
from anyshape.model import oracle as references
from anyshape.model.labels import call_structure, result_structure
from anyshape.onnxfile.contract import from_rows, parameter_from_rows, parameter_to_rows, shown, shown_call, to_rows

X = torch.ones(2, 3)


class Pair(NamedTuple):
    a: object
    b: object


@dataclasses.dataclass
class Batch:
    image: object
    ratio: float = 0.5


def call_of(function, *args, **kwargs):
    """The structure as text, with every tensor an input; the same after it was stored."""
    target = resolve_target(function)
    signature = bind_call(target, args, kwargs)
    ports = {leaf.name: leaf.name for leaf in signature.leaves if leaf.is_tensor}
    found = call_structure(target, signature, ports)
    assert tuple(parameter_from_rows(parameter_to_rows(parameter)) for parameter in found) == found
    return shown_call(found)


def test_every_parameter_is_there_with_its_inputs_in_their_places():
    def forward(batch, pair, scale=2.0, mask=None, *, mode="fast", flip=False):
        raise AssertionError

    found = call_of(forward, {"ids": X, 3: None}, Pair(X, [X, 4]), 3.0, flip=True)
    assert found == (
        "(batch={'ids': batch.ids, 3: None}, pair=Pair(a=pair.a, b=[pair.b.0, 4]), "
        "scale=3.0, mask=None, mode='fast', flip=True)"
    )


def test_arguments_of_any_number_and_any_name_are_there():
    def forward(*xs, **further):
        raise AssertionError

    assert call_of(forward, X, (X,), z=X, other=Batch(X)) == (
        "(*(xs.0, (xs.1.0,)), z, other=(image=other.image, ratio=0.5))"
    )
    assert call_of(forward) == "(*())"


def test_what_the_file_cannot_know_is_none():
    def forward(x, device=torch.device("cpu"), limit=float("inf")):
        raise AssertionError

    assert call_of(forward, X) == "(x, device=None, limit=None)"


def result_of(module, *names):
    target = resolve_target(module)
    signature = bind_call(target, (X,))
    reference = references.from_example(target, signature, declare(signature, {"x": "n 3"}), seed=0)
    found = result_structure(reference, reference.run({"n": 2}), names)
    assert found is None or from_rows(to_rows(found)) == found
    return None if found is None else shown(found)


class Returns(nn.Module):
    def __init__(self, make):
        super().__init__()
        self.make = make
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return self.make(x)


@pytest.mark.parametrize(
    ("make", "names", "found"),
    [
        (lambda x: x, ["y"], "y"),
        (lambda x: (x,), ["y"], "(y,)"),
        (lambda x: [x, None, (x, 3)], ["a", "b", "c"], "[a, None, (b, c)]"),
        (lambda x: {"a": x, 2: {"b": x}, "mode": "fast"}, ["a", "b"], "{'a': a, 2: {'b': b}, 'mode': 'fast'}"),
        (lambda x: Pair(x, x), ["a", "b"], "Pair(a=a, b=b)"),
        (lambda x: Batch(x), ["a", "b"], "(image=a, ratio=b)"),
        (lambda x: x, ["a", "b"], None),
    ],
    ids=["tensor", "single", "list", "dict", "named tuple", "dataclass", "other outputs than the file"],
)
def test_the_result_is_there_with_its_outputs_in_their_places(make, names, found):
    assert result_of(Returns(make), *names) == found


def test_asking_for_the_result_leaves_the_module_as_it_was():
    module = Returns(lambda x: x + 1)
    result_of(module, "y")
    assert module.calls == 0


def test_a_transformers_cache_is_pairs_of_keys_and_values():
    transformers = pytest.importorskip("transformers")

    def forward(x, past_key_values=None):
        raise AssertionError

    cache = transformers.DynamicCache()
    for layer in range(2):
        cache.update(torch.ones(1, 2, 3, 4), torch.ones(1, 2, 3, 4), layer)
    name = "past_key_values"
    pairs = ", ".join(f"({name}.{layer}.key, {name}.{layer}.value)" for layer in range(2))
    assert call_of(forward, X, cache) == f"(x, {name}=[{pairs}])"
