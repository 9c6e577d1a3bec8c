"""Sizes that the model lets move apart, and which everybody means as one."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from anyshape.declaration.calls import bind_call
from anyshape.declaration.targets import resolve_target
from anyshape.model.proposal.meant_ties import are_equal, coincidences, tie
from anyshape.model.proposal.moves import DimMove, ProbingGround
from anyshape.model.proposal.partners import find_moves
from anyshape.model.proposal.probe import RunBudget


def tied(model: Any, *args: Any, annotated: Any = (), is_graph: bool = False) -> tuple[ProbingGround, list[DimMove]]:
    target = resolve_target(model)
    ground = ProbingGround.of(target, bind_call(target, args), budget=RunBudget(400), seed=0)
    return ground, tie(ground, find_moves(ground), dict(annotated), is_graph=is_graph)


def apart(ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    return ids.sum(1), mask.sum(1)


def others(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    return left.sum(1), right.sum(1)


PAIR = torch.randn(3, 7), torch.randn(3, 7)


def steps(moves: list[DimMove]) -> list[dict[Any, int]]:
    return [dict(move.steps) for move in moves]


def test_an_input_and_its_mask_have_one_length_and_one_batch():
    _, moves = tied(apart, *PAIR)
    assert steps(moves) == [{("ids", 0): 1, ("mask", 0): 1}, {("ids", 1): 1, ("mask", 1): 1}]
    assert {move.basis for move in moves} == {"move together by convention"}


def test_two_inputs_of_one_length_stay_two_dims_and_that_is_told():
    ground, moves = tied(others, *PAIR)
    assert steps(moves) == [{("left", 0): 1, ("right", 0): 1}, {("left", 1): 1}, {("right", 1): 1}]
    (pair,) = coincidences(ground, moves)
    assert are_equal(ground, pair.one, pair.other)
    assert not are_equal(ground, moves[0], moves[1])


def test_nodes_and_edges_are_no_batch():
    _, moves = tied(others, *PAIR, is_graph=True)
    assert {("left", 0): 1} in steps(moves)


def test_annotations_tie_and_keep_apart():
    one = {("left", 1): "n", ("right", 1): "n"}
    _, moves = tied(others, *PAIR, annotated=one)
    assert {("left", 1): 1, ("right", 1): 1} in steps(moves)
    two = {("ids", 1): "n", ("mask", 1): "m"}
    _, moves = tied(apart, *PAIR, annotated=two)
    assert {("ids", 1): 1} in steps(moves)


def test_a_mask_as_long_as_two_lengths_follows_both():
    def read(past: Tensor, ids: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return past.sum(), ids.sum(), mask.sum()

    _, moves = tied(read, torch.randn(4), torch.randn(3), torch.randn(7))
    assert steps(moves) == [{("past", 0): 1, ("mask", 0): 1}, {("ids", 0): 1, ("mask", 0): 1}]
