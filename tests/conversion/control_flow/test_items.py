"""What a loop goes over where its length is symbolic, and Python's builtins about it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import SymInt, Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

from anyshape.conversion.control_flow.collected import LoopError
from anyshape.conversion.control_flow.items import STAND_INS, Counted, Items, Slices, Zipped, all_places, items_of


@pytest.fixture
def x() -> Iterator[Tensor]:
    """Six rows, as many as there may be."""
    varying = StatelessSymbolicContext([DimDynamic.DYNAMIC, DimDynamic.STATIC])
    plain = torch.randn(6, 2)
    with FakeTensorMode(shape_env=ShapeEnv()) as mode:
        yield mode.from_tensor(plain, symbolic_context=varying)


def test_only_what_has_a_symbolic_length_is_gone_over_by_items(x: Tensor) -> None:
    assert isinstance(items_of(x), Slices)
    assert items_of(torch.ones(3)) is None
    assert items_of([1, 2]) is None


@pytest.mark.parametrize("bounds", [(6,), (1, 6), (0, 6, 2), (5, -1, -1), (5, 0, -2), (7, 6)])
def test_a_range_has_the_numbers_of_pythons(bounds: tuple[int, ...], x: Tensor) -> None:
    symbolic = [x.shape[0] + bound - 6 if bound >= 5 else bound for bound in bounds]
    found = STAND_INS["range"](range, *symbolic)
    assert isinstance(found, Counted)
    assert [int(number) for number in found] == [*range(*bounds)]
    assert int(STAND_INS["len"](len, found)) == len(range(*bounds))


def test_what_goes_through_items_without_a_loop_is_told(x: Tensor) -> None:
    message = "^what a varying size counts is gone through by something else than a `for` loop or a list comprehension$"
    with pytest.raises(LoopError, match=message):
        dict(STAND_INS["enumerate"](enumerate, x))


def test_plain_ranges_stay_pythons() -> None:
    assert STAND_INS["range"](range, 1, 4) == range(1, 4)
    assert STAND_INS["zip"](zip, [1], [2]).__class__ is zip


def test_a_stride_that_is_a_size_has_a_plain_number_of_steps(x: Tensor) -> None:
    n = x.shape[0]
    assert [int(start) for start in STAND_INS["range"](range, 0, n, n)] == [0]


def test_several_at_once_end_with_the_shortest(x: Tensor) -> None:
    found: Items = STAND_INS["enumerate"](enumerate, STAND_INS["zip"](zip, x, x[1:]), 1)
    assert isinstance(found, Zipped)
    assert isinstance(found.count, SymInt)
    assert int(found.count) == 5
    assert found.first()[0] == 1
    assert int(found.part(1, found.count - 1).count) == 4


def test_a_sum_of_rows_is_a_sum_over_the_axis(x: Tensor) -> None:
    assert STAND_INS["sum"](sum, x).shape == (2,)


def test_places_are_known_only_of_what_was_asked_for_them(x: Tensor) -> None:
    assert all_places(Slices(x)) is None
