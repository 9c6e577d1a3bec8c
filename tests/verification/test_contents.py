"""The table of contents: what leaves of a kind may hold instead."""

from __future__ import annotations

import torch

from anyshape.verification.contents import common_contents, contents_of


def test_integers_keep_to_the_values_that_occur() -> None:
    (changes,) = {one.leaves for one in contents_of({"ids": torch.tensor([5, 2, 9])})}
    assert changes == ("ids",)
    made = {one.words: one.changed(torch.tensor([5, 2, 9])).tolist() for one in contents_of({"ids": torch.tensor([5])})}
    assert made == {
        "all at the smallest value": [2, 2, 2], "all at the largest value": [9, 9, 9], "all zero": [5, 2, 9],
    }  # fmt: skip


def test_leaves_of_a_kind_change_together_and_each_alone() -> None:
    leaves = {"x": torch.ones(2), "y": torch.ones(2), "mask": torch.ones(2) > 0, "scale": 0.5, "k": 3}
    first = contents_of(leaves)[:5]
    assert [one.leaves for one in first] == [("x", "y", "scale"), ("x",), ("y",), ("scale",), ("mask",)]
    assert {one.words for one in first} == {"negated", "inverted"}
    assert first[0].changed(0.5) == -0.5


def test_one_value_is_odd_and_no_other_changes() -> None:
    x = torch.arange(5.0)
    made = {one.words: one.changed(x) for one in common_contents({"x": x})}
    assert made["holding inf"].tolist() == [0, 1, torch.inf, 3, 4]
    assert made["holding -inf"].tolist() == [0, 1, -torch.inf, 3, 4]
    assert made["holding a NaN"].isnan().tolist() == [False, False, True, False, False]
    assert x.tolist() == [0, 1, 2, 3, 4]
