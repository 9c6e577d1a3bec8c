"""The limits of a model that is nothing but a condition on sizes: what is found, and how many runs it takes."""

from __future__ import annotations

import itertools
import random

import pytest

from anyshape.model.limit_search import tie_candidates
from anyshape.model.limits import Boundaries, Limit, UnmadeCallError, effective_range
from anyshape.sizes.notation import SizeRange, parse_condition, parse_sizes
from anyshape.testbench.plan import Plan, choose, horizon

MOST_RUNS = 200


class Model:
    """Runs where a Python condition holds, and counts how often it is asked."""

    def __init__(self, condition, **base):
        self.condition, self.base = condition, base
        self.asked = {}

    def __call__(self, sizes):
        return self.asked.setdefault(tuple(sizes.values()), self._error_at(sizes))

    def _error_at(self, sizes):
        return None if self.runs(sizes) else ValueError(f"{self.condition} is wrong at {sizes}")

    def runs(self, sizes):
        return bool(eval(self.condition, {}, dict(sizes)))


def boundaries_of(model, sizes="1..64", constants=(), suggestions=()):
    ranges = {dim: parse_sizes(sizes, dim=dim) for dim in model.base}
    found = Boundaries(model, ranges, model.base, constants, map(parse_condition, suggestions))
    found.probe()
    return found


def explored(model, sizes="1..64", suggestions=()):
    """Every planned size is run, and failures are explained, as a verification does."""
    found = boundaries_of(model, sizes, (), suggestions)
    done = set()
    while not found.pins and (queue := [s for s in choose(plan_of(found, sizes)) if tuple(s.values()) not in done]):
        for planned in queue:
            done.add(tuple(planned.values()))
            known = len(found.limits)
            if model(planned) is not None:
                found.explain(planned)
            if len(found.limits) != known:
                break
    return found


def plan_of(found, sizes):
    ranges = {dim: effective_range(parse_sizes(sizes, dim=dim), found.limits, dim) for dim in found.base}
    box = {dim: horizon(declared, found.base[dim]) for dim, declared in ranges.items()}
    return Plan(box, found.base, (), (), found.admit)


def texts(found):
    return sorted(map(str, found.limits))


def sizes_of(dims):
    """All sizes of a box, or those of a small one and some by lot."""
    if dims < 3:
        return itertools.product(range(1, 65), repeat=dims)
    by_lot = random.Random(0)
    return [
        *itertools.product(range(1, 10), repeat=dims),
        *([by_lot.randint(1, 64) for _ in range(dims)] for _ in range(300)),
    ]


CASES = [
    (Model("True", a=3, b=4, c=5), []),
    (Model("seq <= 37", seq=5, batch=2), ["seq <= 37"]),
    (Model("seq >= 4", seq=6), ["seq >= 4"]),
    (Model("3 <= n <= 9", n=5), ["n <= 9", "n >= 3"]),
    (Model("a != 7", a=5), ["a <= 6 or a >= 8"]),
    (Model("h % 8 == 0", h=16, batch=2), ["h % 8 == 0"]),
    (Model("h % 8 == 0 and w % 8 == 0", h=16, w=16), ["h % 8 == 0", "w % 8 == 0"]),
    (Model("n % 4 == 1", n=5), ["n % 4 == 1"]),
    (Model("n % 3 == 2", n=8, batch=2), ["n % 3 == 2"]),
    (Model("a == b", a=4, b=4, c=4), ["b == a"]),
    (Model("a == b == c", a=4, b=4, c=4, d=4), ["b == a", "c == a"]),
    (Model("a == b + 1", a=5, b=4), ["a == b + 1"]),
    (Model("a == 2 * b", a=8, b=4), ["a == 2 * b"]),
    (Model("total == past + seq", past=3, seq=5, total=8, batch=2), ["total == past + seq"]),
    (Model("patches == h * w", h=3, w=5, patches=15), ["patches == h * w"]),
    (Model("n == g * g", g=4, n=16), ["n == g * g"]),
    (Model("a + b <= 40", a=5, b=7, c=3), ["a + b <= 40"]),
    (Model("a <= b", a=5, b=7), ["b >= a"]),
    (Model("a <= b", a=7, b=7), ["b >= a"]),
    (Model("a - b <= 3", a=3, b=4), ["a - b <= 3"]),
    (Model("a * b <= 60", a=5, b=4), ["a * b <= 60"]),
    (Model("a * b >= 6", a=5, b=4), ["a * b >= 6"]),
    (Model("a <= 37 and b <= 11", a=5, b=3), ["a <= 37", "b <= 11"]),
    (Model("a == b and a <= 20", a=4, b=4), ["a <= 20", "b == a"]),
    (Model("a == b and c <= 20", a=4, b=4, c=3), ["b == a", "c <= 20"]),
    (Model("a == b and a % 2 == 0", a=4, b=4), ["a % 2 == 0", "b == a"]),
    (Model("a == b and a % 8 == 0", a=16, b=16), ["a % 8 == 0", "b == a"]),
    (Model("h % 8 == 0 and h <= 40", h=16, batch=2), ["h % 8 == 0", "h <= 40"]),
    (Model("h % 8 == 0 and h >= 16", h=32), ["h % 8 == 0", "h >= 16"]),
    (Model("h % 8 == 0 and b == c", h=16, b=3, c=3), ["c == b", "h % 8 == 0"]),
    (Model("a + b <= 40 and a >= 3", a=5, b=7), ["a + b <= 40", "a >= 3"]),
    (Model("total == past + seq and total <= 50", past=3, seq=5, total=8), ["past + seq <= 50", "total == past + seq"]),
]  # fmt: skip


@pytest.mark.parametrize(("model", "expected"), CASES, ids=lambda value: getattr(value, "condition", ""))
def test_limits_are_found_within_a_moderate_number_of_runs(model, expected):
    model.asked.clear()
    found = explored(model)
    assert texts(found) == expected
    assert found.unexplained == found.pins == ()
    assert len(model.asked) < MOST_RUNS


@pytest.mark.parametrize(("model", "expected"), CASES, ids=lambda value: getattr(value, "condition", ""))
def test_found_limits_are_the_condition_itself(model, expected):
    found = explored(model)
    for size in sizes_of(len(model.base)):
        sizes = dict(zip(model.base, size, strict=True))
        assert found.holds(sizes) is model.runs(sizes), sizes


@pytest.mark.parametrize(("model", "expected"), CASES, ids=lambda value: getattr(value, "condition", ""))
def test_sizes_are_moved_inside_the_limits(model, expected):
    found = explored(model)
    moved = [found.admit(dict.fromkeys(model.base, size)) for size in (1, 2, 3, 7, 30, 64)]
    assert all(model.runs(sizes) for sizes in moved if sizes is not None)
    assert sum(sizes is not None for sizes in moved) >= 5
    assert found.admit(dict(model.base)) == model.base


def test_every_limit_says_where_and_how_pytorch_fails():
    for model, _ in CASES:
        for limit in explored(model).limits:
            assert not model.runs(limit.breaks_at)
            assert str(limit.error) == str(model(dict(limit.breaks_at)))
            assert not limit.condition.holds(limit.breaks_at)


def test_sizes_that_were_not_declared_are_never_run():
    for model, _ in CASES:
        model.asked.clear()
        explored(model)
        assert all(size in range(1, 65) for sizes in model.asked for size in sizes)


# ---- pins


@pytest.mark.parametrize("base", [{"a": 5}, {"a": 5, "b": 3}, {"b": 5, "a": 5}, {"b": 10, "a": 5, "c": 2}])
def test_a_dim_with_one_size_is_pinned(base):
    model = Model("a == 5", **base)
    found = boundaries_of(model)
    (pin,) = found.pins
    assert (pin.dim, pin.size) == ("a", 5)
    assert not model.runs(pin.breaks_at)
    assert str(pin.error) == str(model(dict(pin.breaks_at)))
    assert found.limits == ()
    assert len(model.asked) < MOST_RUNS


def test_a_dim_that_was_declared_with_one_size_is_no_pin():
    found = boundaries_of(Model("a == 5", a=5, b=3), sizes=[3, 5])
    assert [pin.dim for pin in found.pins] == []


@pytest.mark.parametrize("condition", ["a in (4, 8, 16, 32)", "a % b == 0", "a % 3 != 0"])
def test_a_dim_that_runs_at_some_other_size_is_no_pin(condition):
    found = boundaries_of(Model(condition, a=8, b=4))
    assert found.pins == ()
    assert not any(limit.condition.relation == "==" and limit.condition.left.is_name for limit in found.limits)


# ---- what no rule explains


@pytest.mark.parametrize(
    ("model", "limits"),
    [
        (Model("a * b * c <= 200", a=3, b=4, c=5), []),
        (Model("2 * a + b <= 50", a=3, b=4), ["a <= 24", "b <= 48"]),
    ],
    ids=lambda value: getattr(value, "condition", ""),
)
def test_what_no_rule_explains_is_kept_as_it_is(model, limits):
    found = explored(model)
    assert texts(found) == limits
    assert found.unexplained
    for sizes, error in found.unexplained:
        assert not model.runs(sizes)
        assert str(error) == str(model(sizes))
    assert len(model.asked) < 3 * MOST_RUNS


def test_a_guard_of_a_trace_explains_what_runs_alone_cannot():
    model = Model("2 * a + b <= 50", a=3, b=4)
    found = explored(model, suggestions=["a < b", "2 * a + b <= 50"])
    assert texts(found) == ["2 * a + b <= 50"]


def test_a_guard_that_a_run_contradicts_is_no_limit():
    model = Model("2 * a + b <= 50", a=3, b=4)
    found = boundaries_of(model, suggestions=["a + b <= 8"])
    assert model(dict(a=30, b=30)) is not None
    found.runs({"a": 20, "b": 3})
    assert not found.explain({"a": 23, "b": 30})
    assert found.limits == ()


def test_ties_from_elsewhere_may_follow_each_other_and_divide():
    found = boundaries_of(Model("True", a=4, b=4, c=4), sizes="0..64")
    found = found.with_limits(Limit(parse_condition(text)) for text in ("c == a", "a == b", "c == a // b * b"))
    assert found.admit({"a": 9, "b": 5, "c": 7}) == {"a": 5, "b": 5, "c": 5}
    assert found.admit({"a": 9, "b": 0, "c": 7}) == {"a": 1, "b": 1, "c": 1}


def test_a_size_that_runs_needs_no_explanation():
    found = boundaries_of(Model("a <= 37", a=5))
    assert found.explain({"a": 9})
    assert found.limits == found.unexplained == ()


# ---- tables


def test_one_size_beyond_every_table_is_run():
    model = Model("seq <= 512", seq=8, batch=2)
    found = boundaries_of(model, "1..", constants=(2, 16, 512, 4096))
    found.probe_tables(lambda sizes: max(sizes.values()) < 5000)
    assert texts(found) == ["seq <= 512"]
    assert (513, 2) in model.asked
    assert (4097, 2) not in model.asked
    assert len(model.asked) < 80


def test_a_table_that_is_too_dear_is_not_run():
    model = Model("seq <= 512", seq=8)
    found = boundaries_of(model, "1..", constants=(512,))
    found.probe_tables(lambda sizes: max(sizes.values()) < 100)
    assert found.limits == ()


def test_tables_are_found_for_tied_dims_and_multiples():
    model = Model("a == b and a <= 256 and h % 16 == 0 and h <= 128", a=4, b=4, h=32)
    found = boundaries_of(model, "1..", constants=(128, 256))
    found.probe_tables(lambda sizes: True)
    assert texts(found) == ["a <= 256", "b == a", "h % 16 == 0", "h <= 128"]


# ---- ranges as the limits leave them


@pytest.mark.parametrize(
    ("declared", "limits", "expected"),
    [
        ("1..", [], "1.."),
        ("1..", ["n <= 37"], "1..37"),
        ("1..64", ["n <= 37", "n >= 3"], "3..37"),
        ("1..64", ["n < 37", "n > 3"], "4..36"),
        ("1..", ["n == 5"], "5..5"),
        ("1..", ["n % 8 == 0"], "8.. step 8"),
        ("1..64", ["n % 8 == 1", "n >= 3"], "9..57 step 8"),
        ("1..", ["n % 4 == 0", "n % 6 == 0"], "12.. step 12"),
        ("32..1024 step 32", ["n <= 100"], "32..96 step 32"),
        ("32.. step 32", ["n >= 40"], "64.. step 32"),
        ("2..30 step 2", ["n % 3 == 0"], "6..30 step 6"),
        ("1, 8, 16, 40", ["n <= 37", "n % 8 == 0"], "{8, 16}"),
        ("1..64", ["m <= 3", "n + m <= 9"], "1..64"),
        ("1..", ["2 * n <= 9"], "1.."),
        ("1..64", ["n != 1", "n <= 37", "2 * n >= 9"], "1..37"),
        ("1..64", ["n % 0 == 0", "n <= 37"], "1..37"),
    ],
)
def test_a_range_is_what_the_limits_on_its_dim_leave(declared, limits, expected):
    found = effective_range(parse_sizes(declared, dim="n"), [Limit(parse_condition(c)) for c in limits], "n")
    assert str(found) == expected
    assert found.hi is None or found.hi in found


@pytest.mark.parametrize("declared", [SizeRange(1, 9), SizeRange(lo=2, hi=4, values=(2, 4))])
def test_a_range_that_the_limits_leave_empty_stays_as_declared(declared):
    assert effective_range(declared, [Limit(parse_condition("n >= 50"))], "n") == declared


def test_a_copy_keeps_to_further_limits_and_leaves_the_first_alone():
    found = boundaries_of(Model("seq <= 37", seq=5))
    narrower = found.with_limits([Limit(parse_condition("seq <= 20"), of_export=True)])
    assert (narrower.holds({"seq": 30}), found.holds({"seq": 30})) == (False, True)
    narrower.explain({"seq": 50})
    assert (texts(narrower), texts(found)) == (["seq <= 20", "seq <= 37"], [])


def test_a_run_that_contradicts_a_limit_takes_it_back():
    model = Model("n <= 8 or n == 50", n=5)
    found = boundaries_of(model)
    assert found.explain({"n": 20})
    assert texts(found) == ["n <= 8"]
    found.note_run({"n": 8})
    assert texts(found) == ["n <= 8"]
    found.note_run({"n": 50})
    assert (texts(found), found.unexplained[0][0]) == ([], {"n": 20})


def test_a_claim_of_a_contract_is_not_taken_back():
    found = boundaries_of(Model("True", n=5)).with_limits([Limit(parse_condition("n <= 8"))])
    found.note_run({"n": 50})
    assert texts(found) == ["n <= 8"]


def test_dims_that_broadcast_move_together_or_alone():
    found = boundaries_of(Model("a == b or a == 1 or b == 1", a=4, b=4))
    assert texts(found) == ["b == a or a == 1 or b == 1"]
    assert found.admit({"a": 9, "b": 5}) == {"a": 9, "b": 9}
    assert found.admit({"a": 9, "b": 1}) == {"a": 9, "b": 1}
    assert (found.loose({"a": 9, "b": 9}), found.loose({"a": 9, "b": 1})) == (["a"], ["a", "b"])


@pytest.mark.parametrize(("condition", "pinned"), [("n == 16", ["n"]), ("n in (1, 16)", ["n"]), ("n in (9, 16)", [])])
def test_a_pin_is_asked_for_at_further_sizes(condition, pinned):
    assert [pin.dim for pin in boundaries_of(Model(condition, n=16)).pins] == pinned


def test_calls_that_cannot_be_made_are_no_limit_of_the_model():
    def error_at(sizes):
        if sizes["n"] > 10:
            return UnmadeCallError(f"make_inputs fails at n = {sizes['n']}: ValueError: small")
        return None if sizes["k"] <= 5 else ValueError("wide")

    found = Boundaries(error_at, dict.fromkeys("nk", SizeRange(1, 64)), {"n": 4, "k": 3}, ())
    assert found.explain({"n": 20, "k": 3})
    assert found.explain({"n": 4, "k": 9})
    assert (texts(found), [str(limit) for limit in found.limits_of_inputs]) == (["k <= 5"], ["n <= 10"])
    assert not found.holds({"n": 20, "k": 3})
    told = "make_inputs fails at n = 20: ValueError: small"
    assert found.notes == [f"{told}; PyTorch was asked, and the file run, only where `n <= 10` holds"]


def test_what_was_found_cannot_be_changed_from_outside():
    found = boundaries_of(Model("h % 8 == 0", h=16))
    assert isinstance(found.limits, tuple)
    with pytest.raises(AttributeError):
        found.limits = ()


# ---- ties that are proposed


@pytest.mark.parametrize(
    ("dim", "sizes", "expected"),
    [
        ("a", {"a": 4, "b": 4}, [("b == a",)]),
        ("b", {"a": 4, "b": 4}, [("b == a",)]),
        ("c", {"a": 4, "b": 4, "c": 4}, [("c == a",), ("c == b",), ("b == a", "c == a")]),
        ("a", {"a": 5, "b": 4}, [("a == b + 1",)]),
        ("b", {"a": 8, "b": 4}, [("a == 2 * b",), ("a == b + 4",)]),
        ("past", {"past": 3, "seq": 5, "total": 8},
         [("total == past + seq",), ("seq == past + 2",), ("total == past + 5",)]),
        ("p", {"h": 3, "w": 5, "p": 15},
         [("p == h * w",), ("p == h * w",), ("p == 5 * h",), ("p == h + 12",), ("p == 3 * w",), ("p == w + 10",)]),
        ("n", {"g": 4, "n": 16}, [("n == g * g",), ("n == 4 * g",), ("n == g + 12",)]),
        ("a", {"a": 4}, []),
    ],
)  # fmt: skip
def test_candidates_come_the_simplest_first(dim, sizes, expected):
    assert list(tie_candidates(dim, sizes))[: len(expected)] == expected


def test_parts_of_a_dim_come_last():
    found = list(tie_candidates("bins", {"bins": 7, "n": 12}))
    assert found == [("n == bins + 5",), ("bins == n // 2 + 1",)]
    assert ("out == (n - 1) // 2 + 1",) in list(tie_candidates("out", {"out": 7, "n": 13}))


def test_half_the_bins_and_one_are_a_tie():
    found = boundaries_of(Model("bins == n // 2 + 1", n=12, bins=7))
    assert [str(limit.condition) for limit in found.limits] == ["bins == n // 2 + 1"]


def test_every_candidate_holds_and_its_left_side_is_one_dim():
    sizes = {"a": 6, "b": 2, "c": 3, "d": 6, "e": 1, "f": 0, "g": 5}
    found = [parse_condition(text) for dim in sizes for ties in tie_candidates(dim, sizes) for text in ties]
    assert len(found) > 40
    assert all(tie.holds(sizes) and tie.left.is_name and tie.left.text not in tie.right.names for tie in found)
