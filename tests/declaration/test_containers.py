from __future__ import annotations

import collections
import dataclasses
from typing import Any, NamedTuple

import pytest
import torch
from transformers import DynamicCache

from anyshape.declaration.containers import container_of, is_cache, parts_of
from anyshape.errors import DeclarationError


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclasses.dataclass(frozen=True)
class Frozen:
    ids: Any
    scale: float = 1.0


class Plain:
    def __init__(self, **parts):
        vars(self).update(parts)


def cache():
    made = DynamicCache()
    made.update(torch.zeros(1, 2, 3, 4), torch.ones(1, 2, 3, 4), 0)
    return made


ONE = torch.ones(2)
CONTAINERS = [
    ([ONE, 3], "list", ["0", "1"]),
    ((ONE,), "tuple", ["0"]),
    ({"a": ONE, 2: 5}, "dict", ["a", "2"]),
    (collections.OrderedDict(a=ONE), "dict", ["a"]),
    (Pair(ONE, 2), "namedtuple", ["left", "right"]),
    (Frozen(ONE), "fields", ["ids", "scale"]),
    (Plain(x=ONE, note="n"), "fields", ["x", "note"]),
    (cache(), "cache", ["0.key", "0.value"]),
]


@pytest.mark.parametrize(("value", "kind", "names"), CONTAINERS)
def test_a_container_has_a_kind_and_named_parts(value, kind, names):
    found, parts = parts_of(value)
    assert (found, list(parts)) == (kind, names)


@pytest.mark.parametrize(("value", "kind", "names"), CONTAINERS)
def test_a_container_is_put_together_with_other_parts_and_stays_as_it_was(value, kind, names):
    parts, join = container_of(value)(value)
    other = torch.full((1, 2, 3, 4), 7.0)
    twin = join({**parts, names[0]: other})
    assert type(twin) is type(value)
    assert parts_of(twin)[1][names[0]] is other
    assert parts_of(value)[1][names[0]] is parts[names[0]]


@pytest.mark.parametrize("value", [3, "text", None, torch.Size([2]), Plain(note="n"), torch.nn.Linear(1, 1), Plain])
def test_what_holds_no_tensors_is_no_container(value):
    assert container_of(value) is None
    assert parts_of(value) is None


def test_a_cache_is_told_by_its_layers():
    assert is_cache(cache())
    assert not is_cache({"layers": []})
    assert not is_cache(Plain(layers=[{"keys": 1}]))


def test_keys_that_are_one_as_text_are_refused():
    with pytest.raises(DeclarationError, match="are the same as text: rename one"):
        parts_of({1: ONE, "1": ONE})


def test_a_number_of_a_cache_that_follows_an_axis_follows_it_again():
    value = cache()
    value.layers[0].max_cache_len = 3
    parts, join = container_of(value)(value)
    longer = {name: torch.zeros(1, 2, 9, 4) for name in parts}
    assert join(longer).layers[0].max_cache_len == 9
    assert value.layers[0].max_cache_len == 3
