from __future__ import annotations

import pytest

from anyshape.model.limit_causes import tie_candidates
from anyshape.sizes.notation import parse_condition


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
    assert list(tie_candidates(dim, sizes)) == expected


def test_every_candidate_holds_and_its_left_side_is_one_dim():
    sizes = {"a": 6, "b": 2, "c": 3, "d": 6, "e": 1, "f": 0, "g": 5}
    found = [parse_condition(text) for dim in sizes for ties in tie_candidates(dim, sizes) for text in ties]
    assert len(found) > 40
    assert all(tie.holds(sizes) and tie.left.is_name and tie.left.text not in tie.right.names for tie in found)
