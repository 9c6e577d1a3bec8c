"""The widest declaration for which a file is right."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

import anyshape
from anyshape.results.verification import Check, Failure, Verification
from anyshape.sizes.notation import SizeRange, parse_condition
from anyshape.stages.conclusion import assumed_conditions
from anyshape.stages.offers import cut_ranges


def seen(right: list[int], wrong: list[int]) -> Verification:
    return Verification(
        tuple(Check({"n": size}, 0, 0.0) for size in right),
        tuple(Failure({"n": size}, 0, "wrong-values", "y", "differs") for size in wrong),
    )


def test_conditions_are_the_fewest_that_keep_what_is_right_and_rule_out_what_is_wrong() -> None:
    conditions = [parse_condition(text) for text in ("n <= 4", "n <= 8", "n != 2", "n >= 3")]
    assert list(map(str, assumed_conditions(seen([1, 2, 3, 4], [9, 12]), conditions))) == ["n <= 4"]
    assert assumed_conditions(seen([1, 9], [4]), conditions) == []


@given(st.integers(1, 50), st.lists(st.integers(1, 99), max_size=5))
def test_cut_ranges_keep_the_traced_size_and_lose_the_wrong_ones(kept: int, wrong: list[int]) -> None:
    wrong = [size for size in wrong if size != kept]
    cut = cut_ranges({"n": SizeRange(1, 99)}, seen([kept], wrong), {"n": kept})["n"]
    assert kept in cut
    assert not any(size in cut for size in wrong)


class AboveFour(nn.Module):
    def forward(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        return (x, x) if x.shape[0] > 4 else x * 2


def test_a_narrower_file_leaves_what_is_known_of_the_model_alone() -> None:
    result = anyshape.export(AboveFour(), torch.randn(3), dims={"x": "n"}, narrow=True, quick=True)
    assert result.verdict == "narrowed"
    assert result.limits == ()
    assert result.given_up == ("only where n <= 4",)
