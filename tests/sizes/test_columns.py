"""Columns of sizes: ranges, grids, rows one after the other, and which rows tell the most."""

from __future__ import annotations

import numpy as np

from anyshape.sizes.columns import grid_of, joined_columns, smallest_of, telling_rows
from anyshape.sizes.notation import SizeRange


def test_the_smallest_sizes_of_a_range_keep_its_step_and_its_end() -> None:
    assert smallest_of(SizeRange(4, 20, 8), 9).tolist() == [4, 12, 20]
    assert smallest_of(SizeRange(1, None), 3).tolist() == [1, 2, 3]
    assert smallest_of(SizeRange(2, 9, values=(2, 5, 9)), 2).tolist() == [2, 5]


def test_a_grid_has_every_pair() -> None:
    grid = grid_of(["a", "b"], [[1, 2], [5, 6, 7]])
    pairs = [(int(a), int(b)) for a, b in zip(grid["a"], grid["b"], strict=True)]
    assert pairs == [(1, 5), (1, 6), (1, 7), (2, 5), (2, 6), (2, 7)]


def test_rows_are_joined_and_one_size_stands_for_all() -> None:
    joined = joined_columns([{"a": np.asarray([1, 2]), "b": 9}, {"a": 3, "b": np.asarray([4])}])
    assert {dim: column.tolist() for dim, column in joined.items()} == {"a": [1, 2, 3], "b": [9, 9, 4]}


def test_the_smallest_row_and_the_nearest_tell_and_ones_hide() -> None:
    columns = {"n": np.asarray([1, 3, 40, 50, 90])}
    kept = np.asarray([True, True, True, True, False])
    assert telling_rows(columns, kept, {"n": 48}) == [1, 3]
    assert telling_rows(columns, np.zeros(5, np.bool_), {"n": 48}) == []
