"""What a size means, by the name of its input and the rank of its tensor."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from anyshape.declaration.calls import bind_call
from anyshape.declaration.targets import resolve_target
from anyshape.model.proposal.meanings import (
    Scene,
    attention_like,
    cache_like,
    image_like,
    meaning_of,
    text_like,
    words_of,
)


def scene(leaves, moving=None, module=None):
    target = resolve_target(lambda **inputs: inputs)
    signature = bind_call(target, (), leaves)
    every = [(name, axis) for name, value in leaves.items() for axis in range(value.dim())]
    return Scene.of(signature, [frozenset([place]) for place in (every if moving is None else moving)], module)


@pytest.mark.parametrize(
    ("leaf", "shape", "words"),
    [
        ("input_ids", (2, 5), ["batch", "seq"]),
        ("pixel_values", (2, 3, 8, 8), ["batch", "channels", "height", "width"]),
        ("video", (2, 3, 4, 8, 8), ["batch", "channels", "frames", "height", "width"]),
        ("waveform", (2, 400), ["batch", "samples"]),
        ("past_key", (2, 4, 6, 8), ["batch", None, "past", None]),
        ("decoder_input_ids", (2, 5), ["batch", "target"]),
        ("src", (2, 5), ["batch", "source"]),
        ("boxes", (2, 7, 4), ["batch", "boxes", None]),
        ("points", (7, 3), ["points", None]),
    ],
)
def test_axes_are_named_as_people_name_them(leaf, shape, words):
    whole = scene({leaf: torch.zeros(shape)})
    for axis, word in enumerate(words):
        if word is not None:
            assert meaning_of((leaf, axis), whole).word == word


def test_a_graph_has_nodes_and_edges():
    whole = scene({"x": torch.zeros(5, 3), "edge_index": torch.zeros(2, 9, dtype=torch.int64)})
    assert whole.is_graph
    assert meaning_of(("x", 0), whole).word == "nodes"
    assert meaning_of(("edge_index", 1), whole).word == "edges"


def test_time_comes_first_where_the_module_says_so():
    leaves = {"input": torch.zeros(5, 2, 8)}
    for module, words in ((nn.GRU(8, 4), ("seq", "batch")), (nn.GRU(8, 4, batch_first=True), ("batch", "seq"))):
        whole = scene(leaves, module=module)
        assert tuple(meaning_of(("input", axis), whole).word for axis in (0, 1)) == words


def test_names_are_taken_apart_into_words():
    assert words_of("userIds.past_k0") == ["user", "ids", "past", "k"]
    assert words_of("0.1") == []


def test_kinds_of_inputs_are_told_by_name_and_rank():
    assert attention_like("layer.query")
    assert not attention_like("pixel_values")
    assert cache_like("past_key_values.0.key")
    assert not cache_like("passed")
    assert image_like("x", torch.zeros(1, 3, 4, 4))
    assert text_like("input_ids", torch.zeros(1, 3))
    assert not text_like("input_ids", torch.zeros(1, 3, 4))
