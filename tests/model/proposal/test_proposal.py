"""A proposal as text: ready to paste, and what is the same for a whole container is said once."""

from __future__ import annotations

import pytest
import torch

from anyshape.model.proposal.moves import DimMove
from anyshape.model.proposal.proposal import (
    DimProposal,
    Offer,
    dims_of,
    expressions,
    followers,
    looks_like_features,
    may_be_features,
    proposal_text,
    proposal_to_dict,
)
from anyshape.sizes.spelling import on_the_command_line

CACHE = {f"past.{layer}.{part}": ("batch", "_", "past", "_") for layer in range(2) for part in ("key", "value")}
FOUND = DimProposal(
    {"ids": ("batch", "seq"), "mask": ("batch", "past + seq"), **CACHE},
    {"past": "0.."},
    {"batch": "axis 0 of `ids` moves alone", "seq": "axis 1 of `ids` moves alone", "past": "move together"},
    (Offer("past.0.key", 1, "the model lets it vary, but it looks like features"),),
    ("found with 40 runs of the model",),
)


def test_the_text_can_be_pasted_and_says_what_it_is_based_on():
    assert proposal_text(FOUND, list(FOUND.dims)) == (
        "dims={\n"
        '    "ids": "batch seq",\n'
        '    "mask": "batch past + seq",\n'
        '    "past": "batch _ past _",\n'
        "},\n"
        "sizes={\n"
        '    "past": "0..",\n'
        "},\n"
        "\n"
        "batch  axis 0 of `ids` moves alone\n"
        "seq    axis 1 of `ids` moves alone\n"
        "past   move together\n"
        "\n"
        "static: axis 1 of `past.0.key`: the model lets it vary, but it looks like features\n"
        "\n"
        "note: found with 40 runs of the model"
    )


def test_a_command_is_given_options():
    line = "--dim 'ids=batch seq' --dim 'mask=batch past + seq' --dim 'past=batch _ past _' --size past=0.."
    with on_the_command_line():
        assert f"\n\n{line}\n\n" in proposal_text(FOUND, list(FOUND.dims))


def test_a_container_with_a_static_leaf_is_said_leaf_by_leaf():
    text = proposal_text(FOUND, [*FOUND.dims, "past.length"])
    assert '    "past": "batch' not in text
    assert '    "past.0": "batch _ past _",\n    "past.1": "batch _ past _",\n' in text


def test_without_dims_nothing_else_is_said_than_the_notes():
    assert proposal_text(DimProposal({}, {}, {}, (), ("no axis varies",)), ["x"]) == "dims={},\n\nnote: no axis varies"


def test_the_document_has_every_leaf():
    assert proposal_to_dict(FOUND)["dims"] == {leaf: list(row) for leaf, row in FOUND.dims.items()}
    assert proposal_to_dict(FOUND)["offers"] == [
        {"leaf": "past.0.key", "axis": 1, "why": "the model lets it vary, but it looks like features"}
    ]


# ---- from moves to expressions of dims, and axes that look like features


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
