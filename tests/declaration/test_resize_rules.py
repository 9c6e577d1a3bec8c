from __future__ import annotations

import pytest
import torch

from anyshape.declaration.resize_rules import RULES, resized_tensor
from anyshape.declaration.resized_leaf import Example, LeafResizing, ValueRange
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
