"""From moves to expressions of dims, and axes that look like features."""

from __future__ import annotations

import pytest
import torch

from anyshape.model.proposal.layout import dims_of, expressions, followers, looks_like_features, may_be_features
from anyshape.model.proposal.moves import DimMove


def written(sizes, *moves, probed=None, **options):
    found = dims_of([DimMove(steps, "", **options) for steps in moves], sizes, probed or sizes)
    return expressions(found, ["n", "m", "k"][: len(found)], sizes)


A, B, C = ("a", 0), ("b", 0), ("c", 0)


@pytest.mark.parametrize(
    ("sizes", "moves", "texts"),
    [
        ({A: 5}, [{A: 1}], {A: "n"}),
        ({A: 8}, [{A: 4}], {A: "n"}),
        ({A: 5, B: 6}, [{A: 1, B: 1}], {A: "n", B: "n + 1"}),
        ({A: 5, B: 10}, [{A: 1, B: 2}], {A: "n", B: "2 * n"}),
        ({A: 5, B: 7}, [{A: 1, B: 2}], {A: "n", B: "2 * n - 3"}),
        ({A: 4, B: 3, C: 7}, [{A: 1, C: 1}, {B: 1, C: 1}], {A: "n", B: "m", C: "n + m"}),
        ({A: 4, B: 3, C: 12}, [{A: 1, C: 3}, {B: 1, C: 4}], {A: "n", B: "m", C: "n * m"}),
        ({A: 10, B: 6}, [{A: 2, B: 1}], {A: "n", B: "n // 2 + 1"}),
    ],
)
def test_every_place_is_an_expression_of_the_dims_that_move_it(sizes, moves, texts):
    assert written(sizes, *moves) == texts


def test_a_grid_of_tokens_is_a_square():
    assert written({A: 16}, {A: 9}, is_square=True) == {A: "n * n"}


def test_the_past_stands_before_what_comes_now():
    sizes = {A: 4, B: 3, C: 7}
    dims = dims_of([DimMove({A: 1, C: 1}, ""), DimMove({B: 1, C: 1}, "")], sizes, sizes)
    assert expressions(dims, ["seq", "past"], sizes)[C] == "past + seq"


def test_a_dim_is_named_after_the_places_that_have_its_very_size():
    sizes = {A: 4, B: 4, C: 5}
    assert followers(dims_of([DimMove({A: 1, B: 1, C: 1}, "")], sizes, sizes), sizes) == [frozenset({A, B})]


@pytest.mark.parametrize(
    ("leaf", "shape", "axis", "moving", "expected"),
    [
        ("x", (2, 5, 8), 2, [1], True),
        ("x", (2, 5, 8), 1, [2], False),
        ("x", (2, 5, 8), 2, [], False),
        ("x", (2, 3, 8, 8), 1, [2, 3], True),
        ("x", (2, 3, 8, 8), 1, [2], False),
        ("query", (2, 4, 8, 16), 3, [], True),
        ("boxes", (7, 4), 1, [0], True),
        ("rows", (7, 4), 1, [0], False),
    ],
)
def test_features_are_told_by_rank_name_and_what_moves_beside_them(leaf, shape, axis, moving, expected):
    places = {(leaf, other) for other in moving}
    assert looks_like_features((leaf, axis), places, {leaf: torch.zeros(shape)}) is expected


def test_features_usually_stand_on_one_axis():
    assert may_be_features(("x", 1), 4)
    assert may_be_features(("x", 2), 3)
    assert not may_be_features(("x", 1), 2)
