"""Programs inside of a program are put in where they compute outside as they do inside, and taken apart elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import Tensor

import anyshape
from tests.conversion.functions import Of
from tests.conversion.speed.one_tensor import DIMS, SIZES, make
from tests.running import is_right


def without_gradients(x: Tensor) -> Tensor:
    with torch.enable_grad():
        y = x.sin()
    return y + x


def with_its_precision_kept(x: Tensor) -> Tensor:
    y = x * 2
    with torch.autocast("cpu", enabled=False):
        first, second = y.chunk(2, dim=1)
        largest = first.amax()
    return first * largest - second


def written_inside(x: Tensor) -> Tensor:
    y = x.clone()
    seen = y[:, 1:]
    with torch.autocast("cpu", enabled=False):
        y += 1
        z = seen * 3
    seen.mul_(2)
    return y[:, 1:] + z


def returned_at_once(x: Tensor) -> tuple[Tensor, Tensor]:
    with torch.autocast("cpu", enabled=False):
        y, z = x.cos(), x.sin()
    return y, z


def one_in_the_other(x: Tensor) -> Tensor:
    with torch.autocast("cpu", enabled=False):
        with torch.enable_grad():
            y = x.cos()
        return y * x


PUT_IN: tuple[Callable[..., object], ...] = (
    without_gradients,
    with_its_precision_kept,
    written_inside,
    returned_at_once,
    one_in_the_other,
)


@pytest.mark.parametrize("function", PUT_IN)
def test_a_program_that_computes_as_outside_is_put_in(
    function: Callable[..., Tensor], taken_apart: list[int], tmp_path: Path
) -> None:
    model, path = Of(function), tmp_path / "model.onnx"
    anyshape.export(model, make(2, 4), path, dims={"tensors.0": DIMS[0]}, quick=True)
    assert not taken_apart
    assert all(is_right(path, model, make(**sizes)) for sizes in SIZES)


def in_bfloat16(x: Tensor) -> Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x.transpose(1, 2)
    return y.float() + 1


def test_autocast_that_is_on_is_left_to_torch(taken_apart: list[int], tmp_path: Path) -> None:
    anyshape.export(Of(in_bfloat16), make(2, 4), tmp_path / "model.onnx", dims={"tensors.0": DIMS[0]}, quick=True)
    assert taken_apart
