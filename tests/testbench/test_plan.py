from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyshape.sizes.notation import SizeRange, parse_sizes
from anyshape.testbench.plan import Plan, choose, horizon, members, trace_sizes

quick = settings(max_examples=40, deadline=None)


@st.composite
def plans(draw, *, tier=None):
    box, traced = {}, {}
    for dim in "abcd"[: draw(st.integers(1, 4))]:
        lo, step, count = draw(st.integers(0, 9)), draw(st.integers(1, 8)), draw(st.integers(0, 30))
        listed = draw(st.sets(st.integers(1, 50), min_size=1, max_size=5))
        box[dim] = (
            parse_sizes(sorted(listed), dim=dim) if draw(st.booleans()) else SizeRange(lo, lo + count * step, step)
        )
        traced[dim] = draw(st.sampled_from(list(members(box[dim]))))
    constants = tuple(draw(st.lists(st.integers(1, 60), max_size=4)))
    tier = tier or draw(st.sampled_from(["quick", "normal", "thorough"]))
    return Plan(box, traced, constants, tier=tier, seed=draw(st.integers(0, 3)), is_closed=draw(st.booleans()))


def box_of(**ranges):
    return {dim: parse_sizes(text, dim=dim) for dim, text in ranges.items()}


@quick
@given(plans())
def test_every_chosen_size_lies_in_the_box_and_is_chosen_once(plan):
    chosen = choose(plan)
    assert all(list(sizes) == list(plan.box) for sizes in chosen)
    assert all(size in plan.box[dim] for sizes in chosen for dim, size in sizes.items())
    assert len({tuple(sizes.values()) for sizes in chosen}) == len(chosen)


@quick
@given(plans())
def test_the_traced_size_comes_first_and_both_ends_are_run(plan):
    chosen = choose(plan)
    assert chosen[0] == plan.traced
    assert {dim: box.lo for dim, box in plan.box.items()} in chosen
    assert {dim: box.hi for dim, box in plan.box.items()} in chosen


def test_sizes_come_in_the_order_that_is_promised():
    plan = Plan(
        box_of(a="1..64", b="1..64"), {"a": 4, "b": 6}, (20,), first=({"a": 33, "b": 34},), last=({"a": 100, "b": 6},)
    )
    chosen = [tuple(sizes.values()) for sizes in choose(plan)]
    promised = [(4, 6), (1, 1), (2, 2), (33, 34), (64, 64), (20, 6), (64, 2), (3, 3), (2, 6), (100, 6)]
    places = [chosen.index(one) for one in promised]
    assert places == sorted(places)
    covered = {(a, b) for a in (1, 3, 5, 64) for b in (1, 5, 7, 64)}
    assert covered <= set(chosen[: chosen.index((20, 6))])
    assert {(19, 6), (21, 6), (4, 19), (4, 21), (6, 6), (7, 6), (4, 8), (4, 9), (1, 6), (3, 6)} <= set(chosen)


@quick
@given(plans())
def test_the_same_plan_gives_the_same_sizes(plan):
    assert choose(plan) == choose(plan)


@quick
@given(plans(), st.integers(1, 30))
def test_only_what_is_admitted_is_chosen(plan, most):
    total = sum(plan.traced.values()) + most
    admitting = Plan(
        plan.box, plan.traced, plan.constants, (), lambda s: s if sum(s.values()) <= total else None, plan.tier
    )
    assert all(sum(sizes.values()) <= total for sizes in choose(admitting))


@quick
@given(plans())
def test_one_step_more_and_less_than_the_traced_size_is_run_with_the_ends_of_every_other_dim(plan):
    chosen = choose(plan)
    for d, e in itertools.permutations(plan.box, 2):
        near = (plan.traced[d] - plan.box[d].step, plan.traced[d] + plan.box[d].step)
        ends = {plan.box[d].nearest(size) for size in (*near, plan.box[d].lo, plan.box[d].hi)}
        for end, other in itertools.product(ends, (plan.box[e].lo, plan.box[e].hi)):
            assert any(sizes[d] == end and sizes[e] == other for sizes in chosen), (d, end, e, other)


@quick
@given(plans(tier="normal"))
def test_every_two_dims_are_once_equal_where_they_can(plan):
    chosen = choose(plan)
    for d, e in itertools.combinations(plan.box, 2):
        if all(plan.box[dim].step == 1 and plan.box[dim].values is None and 3 in plan.box[dim] for dim in (d, e)):
            assert any(sizes[d] == sizes[e] == 3 for sizes in chosen)
            shared = min(plan.box[d].hi, plan.box[e].hi)
            assert any(sizes[d] == sizes[e] == shared for sizes in chosen)


@pytest.mark.parametrize("constant", [17, 50, 2])
def test_every_constant_and_its_neighbours_are_run_on_every_dim(constant):
    plan = Plan(box_of(a="1..64", b="1..64", c="1..40"), {"a": 3, "b": 4, "c": 5}, (constant,))
    chosen = choose(plan)
    for dim, near in itertools.product("abc", (constant - 1, constant, constant + 1)):
        assert near not in plan.box[dim] or any(sizes[dim] == near for sizes in chosen)


def test_the_first_constants_are_kept_where_there_are_too_many():
    plan = Plan(box_of(a="1..2000"), {"a": 3}, tuple(range(1001, 1200, 3)))
    run = {sizes["a"] for sizes in choose(plan)}
    assert {1001, 1070} <= run
    assert len(run) < 150


def test_quick_is_shorter_than_normal_and_normal_than_thorough():
    counts = [
        len(choose(Plan(box_of(a="1..64", b="1..64"), {"a": 3, "b": 5}, (7, 9), tier=tier)))
        for tier in ("quick", "normal", "thorough")
    ]
    assert counts == sorted(counts)
    assert counts[0] < 20 < counts[1] <= 60 < counts[2]


def test_few_declared_sizes_are_all_run():
    plan = Plan(box_of(a="1..5", b="2..8 step 2"), {"a": 3, "b": 4}, is_closed=True)
    assert {tuple(s.values()) for s in choose(plan)} == set(itertools.product(range(1, 6), (2, 4, 6, 8)))


def test_a_static_model_is_run_once():
    assert choose(Plan({}, {})) == [{}]


def test_every_dim_passes_through_its_whole_range():
    sizes = {s["a"] for s in choose(Plan(box_of(a="1..1000"), {"a": 3}))}
    assert all(any(low <= size < low + 200 for size in sizes) for low in range(1, 1000, 200))


# ---- open ranges


@pytest.mark.parametrize(
    ("declared", "traced", "top"),
    [("1..", 3, 13), ("1..", 40, 81), ("1..", 16, 64), ("1..", 1, 9), ("1..512", 3, 512), ("32.. step 32", 64, 128),
     ("32.. step 100", 32, 232), ("0..", 2, 9)],
)  # fmt: skip
def test_an_open_range_ends_at_a_moderate_multiple(declared, traced, top):
    box = horizon(parse_sizes(declared, dim="n"), traced)
    assert (box.hi, box.is_open) == (top, False)
    assert box.hi in box
    assert len(box) > 2


@pytest.mark.parametrize(("text", "expected"), [("2..8 step 3", [2, 5, 8]), ("7, 3", [3, 7])])
def test_members_are_all_sizes_of_a_range(text, expected):
    assert list(members(parse_sizes(text, dim="n"))) == expected


# ---- where to trace


@quick
@given(
    st.dictionaries(st.sampled_from("abcde"), st.integers(1, 9), min_size=1), st.sets(st.integers(1, 12), max_size=6)
)
def test_traced_sizes_are_at_least_two_and_different_and_unlike_constants(example, constants):
    traced = trace_sizes(example, dict.fromkeys(example, SizeRange()), constants, lambda _: True)
    assert len(set(traced.values())) == len(traced)
    assert min(traced.values()) >= 2
    assert constants.isdisjoint(traced.values())


def test_traced_sizes_stay_close_to_the_example_and_in_the_ranges():
    ranges = {
        "a": parse_sizes("1..512", dim="a"),
        "b": parse_sizes("32..96 step 32", dim="b"),
        "c": parse_sizes([7], dim="c"),
    }
    assert trace_sizes({"a": 5, "b": 40, "c": 7}, ranges, (), lambda _: True) == {"a": 5, "b": 32, "c": 7}


def test_tied_dims_are_traced_at_one_size_of_at_least_two():
    ranges = dict.fromkeys("abc", SizeRange())
    traced = trace_sizes({"a": 1, "b": 1, "c": 2}, ranges, (), lambda s: s["a"] == s["b"])
    assert traced == {"a": 2, "b": 2, "c": 3}


def test_a_dim_that_cannot_move_keeps_its_size():
    ranges = dict.fromkeys("ab", SizeRange())
    assert trace_sizes({"a": 1, "b": 1}, ranges, (), lambda s: s["a"] == 1) == {"a": 1, "b": 3}
    assert trace_sizes({"a": 4, "b": 4}, ranges, (), lambda s: s["a"] == s["b"] == 4) == {"a": 4, "b": 4}
