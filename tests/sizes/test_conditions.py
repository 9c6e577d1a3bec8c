"""Relations that the user declares: read, held against the ranges, and fitted by sizes near the example's."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyshape.errors import DeclarationError
from anyshape.sizes.conditions import fitting_sizes, narrowed_range, parse_where
from anyshape.sizes.notation import Condition, SizeRange, parse_condition, parse_sizes

_OPEN = {dim: SizeRange() for dim in ("a", "b", "c")}
_SIDES = ["a", "b", "c", "2*a", "a + b", "b*c", "a - 1", "c % 3", "4", "7", "12"]
_RELATIONS = st.builds(
    lambda left, relation, right: f"{left} {relation} {right}",
    st.sampled_from(_SIDES),
    st.sampled_from(["<=", ">=", "<", ">", "==", "!="]),
    st.sampled_from(_SIDES),
).filter(lambda text: any(dim in text for dim in "abc"))


def _where(*texts: str) -> tuple[Condition, ...]:
    return parse_where(texts, tuple("abc"))


@settings(max_examples=150, deadline=None)
@given(st.lists(_RELATIONS, min_size=1, max_size=3), st.tuples(*[st.integers(1, 9)] * 3))
def test_sizes_are_found_wherever_small_ones_exist(texts: list[str], start: tuple[int, int, int]) -> None:
    where = _where(*texts)
    small = (dict(zip("abc", row, strict=True)) for row in itertools.product(range(1, 9), repeat=3))
    exists = any(all(condition.holds(sizes) for condition in where) for sizes in small)
    try:
        found = fitting_sizes(dict(zip("abc", start, strict=True)), _OPEN, where)
    except DeclarationError:
        assert not exists
    else:
        assert all(condition.holds(found) for condition in where)
        assert all(size >= 1 for size in found.values())


def test_sizes_that_fit_stay_as_they_are() -> None:
    assert fitting_sizes({"a": 5, "b": 3, "c": 7}, _OPEN, _where("a >= b")) == {"a": 5, "b": 3, "c": 7}


def test_a_size_is_moved_no_further_than_the_relation_asks() -> None:
    assert fitting_sizes({"a": 5, "b": 9, "c": 7}, _OPEN, _where("a >= b")) == {"a": 5, "b": 5, "c": 7}
    assert fitting_sizes({"a": 32, "b": 32, "c": 1}, _OPEN, _where("a * b >= 1_000_000"))["b"] == 31250


def test_a_tie_moves_the_dim_that_follows() -> None:
    assert fitting_sizes({"a": 5, "b": 3, "c": 2}, _OPEN, _where("a + b == c"))["c"] == 8


def test_a_chain_is_several_relations() -> None:
    assert [str(one) for one in _where("4 <= a <= 2*b")] == ["a >= 4", "a <= 2 * b"]


def test_relations_of_one_dim_narrow_its_range() -> None:
    where = _where("a % 8 == 0", "a <= 100", "b > 3", "a >= b")
    assert str(narrowed_range(parse_sizes("1..", dim="a"), where, "a")) == "8..96 step 8"
    assert str(narrowed_range(parse_sizes("1..", dim="b"), where, "b")) == "4.."


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        ("a >= b", "where is 'a >= b': give a list of relations, such as [\"src >= tgt\"]"),
        ([3], 'where is [3]: give a list of relations, such as ["src >= tgt"]'),
        (["a"], "`a` is not a condition: write two sizes and one of ==, <=, >=, <, >, !="),
        (["a >= sqe"], "where has `a >= sqe`, but the shapes only name `a`, `seq`; did you mean `seq`?"),
        (["3 < 4"], "where has `3 < 4`, which names no dim"),
        (["a / 2 > 1"], "`a / 2` is not a size: use names, whole numbers, + - * // % and min(), max()"),
    ],
)
def test_what_is_no_relation_is_one_sentence(where: object, sentence: str) -> None:
    with pytest.raises(DeclarationError) as raised:
        parse_where(where, ("a", "seq"))
    assert str(raised.value) == sentence


def test_relations_that_exclude_each_other_are_named_with_the_smallest_sizes() -> None:
    with pytest.raises(DeclarationError) as raised:
        fitting_sizes({"a": 5, "b": 3, "c": 2}, _OPEN, _where("c >= 1", "a > b", "b >= a"))
    assert str(raised.value) == (
        "no sizes were found that fit `a > b` and `b >= a` with a 1.., b 1..: "
        "at the smallest, a = 1, b = 1, `a > b` does not hold"
    )


def test_a_relation_may_have_alternatives():
    (found,) = parse_where(["b == a or a == 1"], ["a", "b"])
    assert (str(found), found.names) == ("b == a or a == 1", ("b", "a"))
    ranges = {"a": SizeRange(1, 9), "b": SizeRange(4, 9)}
    assert fitting_sizes({"a": 3, "b": 5}, ranges, [found]) in ({"a": 3, "b": 3}, {"a": 5, "b": 5}, {"a": 4, "b": 4})
    assert fitting_sizes({"a": 1, "b": 5}, ranges, [found]) == {"a": 1, "b": 5}
    hole = parse_condition("a <= 3 or a >= 6")
    assert narrowed_range(SizeRange(1, 9), [hole], "a") == SizeRange(1, 9)
    assert str(narrowed_range(parse_sizes([2, 5, 7], dim="a"), [hole], "a")) == "{2, 7}"
