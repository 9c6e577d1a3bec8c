from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyshape.diagnosis.size_names import agree
from anyshape.sizes.notation import parse_condition
from anyshape.sizes.torch_symbols import solved


@pytest.mark.parametrize(
    ("condition", "size", "number"),
    [
        ("8 * batch * seq == 24 * seq", "batch", 3),
        ("540 * batch == 2160", "batch", 4),
        ("8 * batch * seq == 168", "batch * seq", 21),
        ("past + seq == 8", "past + seq", 8),
        ("16 == (h - 1) // 2 + 1", "(h - 1) // 2 + 1", 16),
    ],
)
def test_a_condition_says_which_size_is_which_number(condition: str, size: str, number: int) -> None:
    found = solved(parse_condition(condition))
    assert found is not None
    assert agree(found[0], parse_condition(f"{size} == 1").left)
    assert found[1] == number


@pytest.mark.parametrize("condition", ["batch == seq", "batch > 2", "batch % 2 == 0", "2 * n == 3 * m"])
def test_what_leaves_several_sizes_has_no_number(condition: str) -> None:
    assert solved(parse_condition(condition)) is None


@given(st.integers(1, 50), st.integers(1, 50), st.integers(1, 50))
def test_common_factors_do_not_matter(factor: int, batch: int, other: int) -> None:
    found = solved(parse_condition(f"{factor * other} * n == {factor * other * batch}"))
    assert found is not None
    assert (found[0].text, found[1]) == ("n", batch)
