from __future__ import annotations

import pytest
import torch

from anyshape.declaration.resized_leaf import Example, LeafResizing, ValueRange
from anyshape.sizes.notation import Expression


@pytest.mark.parametrize(
    ("kind", "dims", "highest"),
    [
        ("index", ("a",), 4),
        ("length", ("a",), 5),
        ("index", ("a", "b"), 2),
        ("index", ("c",), 0),
        ("length", ("c",), 0),
    ],
)
def test_an_index_stays_below_its_dims_and_a_length_may_reach_them(kind, dims, highest):
    assert ValueRange(kind, dims).highest({"a": 5, "b": 3, "c": 0}) == highest


def resizing(tensor, axes, shape, *, is_second=False):
    row = tuple(None if axis == "_" else Expression(axis) for axis in axes.split())
    example = Example({"x": tensor}, {"x": row}, {}, {"a": 2, "b": 3})
    return LeafResizing(
        example, {"a": 4, "b": 3}, tensor, row, shape, None, is_second, 0, 1e-4, torch.Generator().manual_seed(0)
    )


def test_a_first_content_moves_the_axes_that_change_and_a_second_all_that_may():
    assert resizing(torch.ones(2, 3), "a b", (4, 3)).moving == [0]
    assert resizing(torch.ones(2, 3), "a b", (4, 3), is_second=True).moving == [0, 1]
    assert resizing(torch.ones(2, 3), "a _", (4, 3), is_second=True).dynamic == [0]


@pytest.mark.parametrize(
    ("tensor", "axes", "expected"),
    [
        (torch.ones(2, 2), "a a", True),
        (torch.ones(2, 3), "a a+1", True),
        (torch.ones(2, 3), "a b", False),
        (torch.ones(3, 3), "_ _", True),
        (torch.ones(2, 3), "_ b", False),
        (torch.ones(2), "a", False),
    ],
)
def test_a_matrix_is_square_where_its_axes_follow_one_dim(tensor, axes, expected):
    assert resizing(tensor, axes, tuple(tensor.shape)).is_square is expected


@pytest.mark.parametrize(
    ("dtype", "is_integer", "is_float"),
    [
        (torch.int64, True, False),
        (torch.bool, False, False),
        (torch.float64, False, True),
        (torch.complex128, False, True),
    ],
)
def test_the_wide_type_tells_integers_from_floats(dtype, is_integer, is_float):
    made = resizing(torch.ones(2, dtype=dtype), "a", (4,))
    assert (made.is_integer, made.is_float, made.is_same_shape) == (is_integer, is_float, False)
