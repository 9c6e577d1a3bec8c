"""Which sizes are timed: those that are asked for, and nothing that a file is not for."""

from __future__ import annotations

import pytest

from anyshape.errors import DeclarationError
from anyshape.sizes import budgets
from anyshape.sizes.notation import SizeRange, parse_condition, parse_sizes
from anyshape.testbench.timed_sizes import SizesOffered, sizes_to_time


def _offered(usual, ranges=None, where=(), work=lambda _: 0.0):
    conditions = [parse_condition(one) for one in where]
    ranges = {dim: parse_sizes((ranges or {}).get(dim, "1.."), dim=dim) for dim in usual}

    def admit(sizes):
        inside = all(size in ranges[dim] for dim, size in sizes.items())
        return sizes if inside and all(one.holds(sizes) for one in conditions) else None

    return SizesOffered(usual, ranges, admit, work)


def _asked(**sizes):
    return {dim: parse_sizes(text, dim=dim) for dim, text in sizes.items()}


def test_a_dim_alone_grows_by_four():
    assert sizes_to_time(_offered({"seq": 16}), {}) == ([{"seq": 16}, {"seq": 64}, {"seq": 256}, {"seq": 1024}], [])


def test_two_dims_grow_one_at_a_time_inside_their_ranges():
    chosen, _ = sizes_to_time(_offered({"batch": 1, "seq": 16}, {"seq": "1..100"}), {})
    assert chosen == [
        {"batch": 1, "seq": 16}, {"batch": 1, "seq": 64}, {"batch": 4, "seq": 16}, {"batch": 1, "seq": 100},
        {"batch": 16, "seq": 16},
    ]  # fmt: skip


def test_what_is_predicted_to_be_much_work_is_not_timed_unasked():
    offered = _offered({"seq": 16}, work=lambda sizes: budgets.WORK_OF_A_TIMED_SIZE * sizes["seq"] / 64)
    assert sizes_to_time(offered, {}) == ([{"seq": 16}, {"seq": 64}], [])
    assert sizes_to_time(offered, _asked(seq="4096")) == ([{"seq": 4096}], [])


def test_a_static_file_has_one_size():
    assert sizes_to_time(_offered({}), {}) == ([{}], [])


def test_what_is_asked_for_is_combined_and_the_rest_stays_usual():
    chosen, excluded = sizes_to_time(_offered({"batch": 1, "seq": 16, "past": 5}), _asked(seq="8, 2", batch="1, 4"))
    assert chosen == [
        {"batch": 1, "seq": 2, "past": 5}, {"batch": 1, "seq": 8, "past": 5}, {"batch": 4, "seq": 2, "past": 5},
        {"batch": 4, "seq": 8, "past": 5},
    ]  # fmt: skip
    assert excluded == []


def test_of_a_range_a_few_are_taken_with_both_ends():
    def taken(text):
        return [one["seq"] for one in sizes_to_time(_offered({"seq": 16}), _asked(seq=text))[0]]

    assert taken("1..512") == [1, 3, 12, 42, 147, 512]
    assert taken("8..64 step 8") == [8, 24, 64]
    assert taken("8..") == [8, 25, 81, 256]
    assert taken("7") == [7]


def test_what_relations_exclude_is_told():
    offered = _offered({"batch": 1, "seq": 16}, where=["batch*seq <= 64"])
    chosen, excluded = sizes_to_time(offered, _asked(batch="1, 8", seq="8, 64"))
    assert chosen == [{"batch": 1, "seq": 8}, {"batch": 1, "seq": 64}, {"batch": 8, "seq": 8}]
    assert excluded == [{"batch": 8, "seq": 64}]


def test_a_dim_that_nobody_asked_about_may_follow():
    offered = SizesOffered(
        {"a": 2, "b": 2}, {"a": SizeRange(), "b": SizeRange()}, lambda s: {"a": s["a"], "b": s["a"]}, lambda _: 0.0
    )
    assert sizes_to_time(offered, _asked(a="3, 5"))[0] == [{"a": 3, "b": 3}, {"a": 5, "b": 5}]
    assert sizes_to_time(offered, _asked(b="3")) == ([], [{"b": 3}])


def test_too_many_sizes_are_one_sentence():
    many = ", ".join(map(str, range(1, 51)))
    with pytest.raises(DeclarationError) as refusal:
        sizes_to_time(_offered({"seq": 16, "batch": 1}), _asked(seq=many, batch="1, 2"))
    assert str(refusal.value) == "sizes asks for 100 sizes, more than the 48 that are timed"
