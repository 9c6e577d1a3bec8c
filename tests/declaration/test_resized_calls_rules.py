"""Which rule resizes a tensor, and what a rule is told about it."""

from __future__ import annotations

import pytest
import torch

from anyshape.declaration.resized_calls import RULES, Example, LeafResizing, ValueRange, resized_tensor
from anyshape.sizes.notation import Expression

SIZES, LARGER = {"n": 4, "m": 6}, {"n": 9, "m": 7}


def resizing(tensor, axes, *, level=0, is_second=False, value_range=None):
    row = tuple(None if axis == "_" else Expression(axis) for axis in axes.split())
    shape = tuple(size if axis is None else axis.value(LARGER) for size, axis in zip(tensor.shape, row, strict=True))
    example = Example({"x": tensor}, {"x": row}, {}, SIZES)
    lot = torch.Generator().manual_seed(3)
    return LeafResizing(example, LARGER, tensor, row, shape, value_range, is_second, level, 1e-4, lot)


def floats(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


SYMMETRIC = floats(4, 4) + floats(4, 4).mT
CASES = [
    (resizing(floats(0, 4), "_ n"), "_without_elements"),
    (resizing(torch.tensor([4, 6]), "_"), "sizes_of_dims"),
    (resizing(torch.tensor([0, 2, 5, 6]), "n"), "offsets_of_parts"),
    (resizing(torch.arange(4), "n"), "positions"),
    (resizing(torch.tensor([3, 0, 3, 1]), "n", value_range=ValueRange("index", ("n",))), "_bounded_integers"),
    (resizing(torch.tensor([8, 3, 5, 1]), "n", level=2), "_repeated_edge"),
    (resizing(floats(3), "_"), "_same_tensor"),
    (resizing(torch.tensor([True, True, False, False]), "n"), "_same_pattern"),
    (resizing(torch.full((4,), 2.5, dtype=torch.float64), "n"), "_one_value"),
    (resizing(floats(4), "n", level=1), "_tiled_slices"),
    (resizing(torch.tensor(True), "", is_second=True), "_lone_flag"),
    (resizing(torch.tensor([3, 9, 11, 30]), "n"), "_rising_integers"),
    (resizing(torch.tensor([8, 3, 5, 1]), "n"), "_other_integers"),
    (resizing(SYMMETRIC, "n n"), "_symmetric_matrix"),
    (resizing(floats(4, 3), "n _"), "_mixed_floats"),
]


@pytest.mark.parametrize(("one", "name"), CASES, ids=[name for _, name in CASES])
def test_the_first_rule_that_fits_makes_the_tensor(one, name):
    fitting = next(rule for rule in RULES if rule(one) is not None)
    assert fitting.__name__ == name
    assert resized_tensor(one).shape == one.shape


def test_every_rule_has_a_tensor_that_it_is_the_first_to_fit():
    assert [name for _, name in CASES] == [rule.__name__ for rule in RULES]


# ---- the leaf that is to be resized


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


def leaf_of(tensor, axes, shape, *, is_second=False):
    row = tuple(None if axis == "_" else Expression(axis) for axis in axes.split())
    example = Example({"x": tensor}, {"x": row}, {}, {"a": 2, "b": 3})
    return LeafResizing(
        example, {"a": 4, "b": 3}, tensor, row, shape, None, is_second, 0, 1e-4, torch.Generator().manual_seed(0)
    )


def test_a_first_content_moves_the_axes_that_change_and_a_second_all_that_may():
    assert leaf_of(torch.ones(2, 3), "a b", (4, 3)).moving == [0]
    assert leaf_of(torch.ones(2, 3), "a b", (4, 3), is_second=True).moving == [0, 1]
    assert leaf_of(torch.ones(2, 3), "a _", (4, 3), is_second=True).dynamic == [0]


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
    assert leaf_of(tensor, axes, tuple(tensor.shape)).is_square is expected


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
    made = leaf_of(torch.ones(2, dtype=dtype), "a", (4,))
    assert (made.is_integer, made.is_float, made.is_same_shape) == (is_integer, is_float, False)
