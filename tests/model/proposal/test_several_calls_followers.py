from __future__ import annotations

import pytest

from anyshape.model.proposal.several_calls import by_input, follows_by_name


@pytest.mark.parametrize("leaf", ["attention_mask", "batch.position_ids", "x.pos", "attn_bias", "valid", "padding0"])
def test_what_says_something_about_others_is_told_by_name(leaf):
    assert follows_by_name(leaf)


@pytest.mark.parametrize("leaf", ["ids", "pose", "postal", "past_key_values.0.key", "padlock"])
def test_other_inputs_are_not(leaf):
    assert not follows_by_name(leaf)


def test_a_mask_goes_with_the_input_whose_name_it_shares():
    places = [("src", 1), ("tgt", 1), ("src_mask", 1), ("tgt_mask", 1)]
    assert by_input(places) == [[places[0], places[2]], [places[1], places[3]]]


def test_what_stands_in_one_container_is_one_input():
    assert by_input([("past.0.key", 2), ("past.0.value", 2), ("attention_mask", 1)]) == []
