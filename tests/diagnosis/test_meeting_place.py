"""Where samples meet: the first call whose result is not put together from those of its parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from anyshape.diagnosis.meeting_place import Split, close, distance, fits_parts, moving_axes, places, scale
from anyshape.torchkit.recorder import followed

SPLIT = Split(2, 1, 1e-5)
X = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))


def _met(run: Callable[[Tensor], Tensor]) -> list[str]:
    output, whole = followed(lambda: run(X))
    parts = [followed(lambda part=part: run(part))[1] for part in (X[:2], X[2:])]
    met = places(whole, (parts[0], parts[1]), SPLIT)
    return [met[id(output)].name] if id(output) in met else []


def _cumulative(x: Tensor) -> Tensor:
    y = x * 2
    return y.cumsum(0).exp() + 1


def _row_by_row(x: Tensor) -> Tensor:
    return torch.stack([row.softmax(0) for row in x])


def _mended(x: Tensor) -> Tensor:
    mixed = x - x.mean(0)
    return x + 0 * mixed


@pytest.mark.parametrize(
    ("run", "met"),
    [
        (_cumulative, ["cumsum"]),
        (lambda x: x.view(2, -1) if x.numel() % 2 == 0 else x, ["view"]),
        (lambda x: x.softmax(0), ["softmax"]),
        (lambda x: x.softmax(1), []),
        (lambda x: x.reshape(-1).relu(), []),
        (_row_by_row, []),
        (_mended, []),
    ],
)
def test_the_first_call_that_mixes_is_named(run: Callable[[Tensor], Tensor], met: list[str]) -> None:
    assert _met(run) == met


def _parts(make: Callable[[Tensor], Tensor]) -> Any:
    return make(X), make(X[:2]), make(X[2:]), SPLIT


def test_a_healthy_result_is_the_parts_side_by_side_or_the_same_in_all() -> None:
    assert fits_parts(*_parts(lambda x: x)) is True
    assert fits_parts(*_parts(lambda x: x.t())) is True
    assert fits_parts(*_parts(lambda x: x.flatten())) is True
    assert fits_parts(*_parts(lambda x: torch.ones(7))) is True
    assert fits_parts(*_parts(lambda x: x - x.mean())) is False
    assert fits_parts(*_parts(lambda x: x @ x.t())) is True


def test_shapes_that_depend_on_more_than_the_batch_tell_nothing() -> None:
    assert fits_parts(torch.ones(5), torch.ones(1), torch.ones(1), SPLIT) is None
    assert fits_parts(torch.ones(3), torch.ones(2, 1), torch.ones(1), SPLIT) is None


def test_axes_that_move() -> None:
    assert moving_axes(torch.ones(3, 4), torch.ones(2, 4), torch.ones(1, 4)) == [0]
    assert moving_axes(torch.ones(4), torch.ones(4), torch.ones(4)) == []


def test_nan_is_no_distance_and_infinities_are_equal_or_infinitely_far() -> None:
    inf, nan = float("inf"), float("nan")
    value, other = torch.tensor([nan, inf, inf, 1.0]), torch.tensor([1.0, inf, 0.0, 3.0])
    assert distance(value, other).tolist() == [0.0, 0.0, inf, 2.0]
    assert scale(torch.tensor([nan, -inf, -5.0, 3.0])) == 5.0
    assert scale(torch.ones(0)) == 0.0


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.int64, torch.bool, torch.complex64])
def test_what_is_measured_stays_as_it_was(dtype: torch.dtype) -> None:
    value, other = torch.tensor([3, 0, 1]).to(dtype), torch.tensor([1, 0, 0]).to(dtype)
    before = value.clone(), other.clone()
    assert distance(value, other).tolist() == ([0.0, 0.0, 1.0] if dtype == torch.bool else [2.0, 0.0, 1.0])
    assert scale(value) == (1.0 if dtype == torch.bool else 3.0)
    assert torch.equal(value, before[0])
    assert torch.equal(other, before[1])
    assert close(torch.ones(2), torch.ones(2) + 1e-7, 1e-5)
    assert not close(torch.ones(2), torch.ones(3), 1e-5)
