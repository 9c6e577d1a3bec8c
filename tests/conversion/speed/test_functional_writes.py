"""Who shares a tensor's memory sees what is written to it, at every size, and no program is taken apart for that."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import anyshape
from tests.conversion.functions import exported, wrong_sizes
from tests.conversion.speed.one_tensor import DIMS, SIZES, make
from tests.running import is_right


def _view_taken_before(x: Tensor) -> Tensor:
    y = x * 2
    row = y[:, 0]
    y += 1
    return row


def _same_tensor_by_another_name(x: Tensor) -> Tensor:
    y = x * 2
    z = F.dropout(y, 0.5, training=False)  # the very same tensor
    z += 1
    return y


def _written_through_a_view(x: Tensor) -> Tensor:
    y = x * 2
    y.transpose(1, 2).mul_(3)
    return y


def _read_before_and_after(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x * 2
    before = y.sum(dim=1)
    y += 1
    return before, y.sum(dim=1)


def _written_twice(x: Tensor) -> Tensor:
    y = x * 2
    y += 1
    y *= x
    return y.clamp_(min=0) + y


def _written_by_itself(x: Tensor) -> Tensor:
    y = x * 2
    y += y
    return y


def _whole_numbers(x: Tensor) -> Tensor:
    y = (x * 9).to(torch.int64)
    y *= 2
    return y


def _narrower_than_what_is_added(x: Tensor) -> Tensor:
    y = x * 2
    y += x.to(torch.float64)
    return y


def _given_back_with_its_view(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x * 2
    y.relu_()
    z = y.reshape(-1)
    y.neg_()
    return y, z


def _expanded_to_its_own_shape(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x * 2
    z = y.expand_as(x)
    z.exp_()
    return y, z


def _product_added_in_one_go(x: Tensor) -> Tensor:
    y = x * 2
    y.addcmul_(y, y)
    return y


WRITES: list[Callable[..., Any]] = [
    _expanded_to_its_own_shape, _product_added_in_one_go,
    _view_taken_before, _same_tensor_by_another_name, _written_through_a_view, _read_before_and_after, _written_twice,
    _written_by_itself, _whole_numbers, _narrower_than_what_is_added, _given_back_with_its_view,
]  # fmt: skip


@pytest.mark.parametrize("function", WRITES)
def test_a_write_is_seen_by_all_who_share_the_tensor(function: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    result = exported(function, make, DIMS, {"batch": 2, "length": 5}, path)
    assert result.attempts[-1].strategy == "torch.export"
    assert bool(result.attempts[-1].forced_by) == (function is _narrower_than_what_is_added)
    assert not wrong_sizes(function, make, SIZES, path)


def test_a_turned_tensor_may_be_filled(tmp_path: Path) -> None:
    """torch gives the result the strides that it had, which are no matter of a file's."""

    def filled(x: Tensor) -> Tensor:
        y = (x * 2).transpose(1, 2)
        return y.index_fill_(1, torch.tensor([0]), 3.0)

    path = tmp_path / "model.onnx"
    result = exported(filled, make, DIMS, {"batch": 2, "length": 5}, path)
    assert result.attempts[-1].strategy == "torch.export"
    assert not wrong_sizes(filled, make, SIZES, path)


# ---- writes to a part of a tensor


def _column(x: Tensor) -> Tensor:
    y = x * 2
    y[:, 0] = 7.0
    return y + x


def _shifted(x: Tensor) -> Tensor:
    """As labels are shifted to the right."""
    y = torch.zeros_like(x)
    y[:, :, 1:] = x[:, :, :-1].clone()
    y[:, :, 0] = -1.0
    return y.masked_fill_(y > 0.5, 9.0)


def _corner_through_a_transpose(x: Tensor) -> Tensor:
    y = x * 2
    y.transpose(1, 2)[:, -1, ::2].mul_(3)
    return y


def _last_by_a_negative_axis(x: Tensor) -> Tensor:
    y = x.cumsum(-1)
    y.select(-1, -1).zero_()
    return y


def _read_before(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x * 2
    before = y.sum(dim=1)
    y[:, 1] += 1
    return before, y


def _of_a_reshaped_tensor(x: Tensor) -> Tensor:
    """As tables of positions are made."""
    y = torch.cat([x.sin(), x.cos()], dim=1).view(x.shape[0], -1)
    y[:, 3] = 0
    return y * 2


PARTS: list[Callable[..., Any]] = [
    _of_a_reshaped_tensor, _column, _shifted, _last_by_a_negative_axis, _read_before, _corner_through_a_transpose,
]  # fmt: skip


@pytest.mark.parametrize("function", PARTS)
def test_a_write_to_a_part_takes_no_program_apart(
    function: Callable[..., Any], taken_apart: list[int], tmp_path: Path
) -> None:
    path = tmp_path / "model.onnx"
    result = exported(function, make, DIMS, {"batch": 2, "length": 5}, path)
    assert not taken_apart
    assert result.attempts[-1].inlined
    assert result.attempts[-1].forced_by == ()
    assert not wrong_sizes(function, make, SIZES, path)


def _part_taken_before(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x * 2
    part = y[:, 0]
    y[:, 0] = 7.0
    return part, y


def _part_given_back(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x * 2
    part = y[:, 0].mul_(3)
    y += 1
    return part, y


def _from_itself(x: Tensor) -> Tensor:
    y = x * 2
    y[:, 1:] = y[:, :-1].clone() + y[:, 1:]
    y[:, 0] += y[:, 1]
    return y


def _at_places(x: Tensor) -> Tensor:
    y = torch.zeros_like(x)
    y[:, torch.tensor([2, 0])] = x[:, :2]
    return y


def _where_a_mask_says(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x * 2
    view = y.transpose(1, 2)
    y[y > 0.5] = 0.25
    return view, y


def _through_other_shapes(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x * 2
    y.unsqueeze(1).flatten(2).view(x.shape[0], 1, 4, -1)[:, 0, 1:].permute(2, 0, 1)[..., 0] += 5.0
    return y, y.sum(1)


def _read_through_views_taken_before(x: Tensor) -> tuple[Tensor, ...]:
    y = x * 2
    turned, wide, apart, first = y.permute(2, 0, 1), y[:, :1].expand(-1, 3, -1), y.chunk(2, 1), y.diagonal(0, 1, 2)
    y[:, 0] = x[:, 1]
    y.mul_(3)
    return turned, wide, *apart, first


def _diagonal(x: Tensor) -> Tensor:
    y = x * 2
    y.diagonal(0, 1, 2).fill_(1.0)
    return y


def _written_over(x: Tensor) -> tuple[Tensor, Tensor]:
    y, z = x * 2, x * 3
    y.copy_(z)
    z += 1
    y[:, 1] -= 1
    return y, z


def _turned_in_place(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x * 2
    row = y[:, 1]
    y.transpose_(1, 2).unsqueeze_(0)
    y[0, :, 0] += 1
    return y, row


def _kept_by_the_input(x: Tensor) -> tuple[Tensor, Tensor]:
    part = x[:, 2]
    x.mul_(2)
    return part, x


def _given_the_type_of_the_part(x: Tensor) -> Tensor:
    y = x * 2
    y[:, 1:3].copy_((x[:, :1] * 9).to(torch.int32))
    return y


def _overlapping(x: Tensor) -> Tensor:
    y = x * 2
    y[:, 2:] += y[:, :2]
    return y


def _spread(x: Tensor) -> Tensor:
    y = x * 2
    y[:, 1:3] = x[:, :1]
    return y


def _narrowed(x: Tensor) -> Tensor:
    y = x * 2
    y[:, 1] = x[:, 0].double() / 3
    return y


def _of_the_input(x: Tensor) -> Tensor:
    x = x.reshape(x.shape)
    x[:, 0] = 3.0
    return x


def _of_a_reshaped_tensor_that_is_used(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x.sin()
    z = y.view(x.shape[0], -1)
    z[:, 3] = 0
    z += 1
    return y, z


SHARED: list[Callable[..., Any]] = [
    _part_taken_before, _part_given_back, _from_itself, _overlapping, _spread, _narrowed, _of_the_input,
    _of_a_reshaped_tensor_that_is_used, _at_places, _where_a_mask_says, _through_other_shapes,
    _read_through_views_taken_before, _diagonal, _written_over, _turned_in_place,
    _kept_by_the_input, _given_the_type_of_the_part,
]  # fmt: skip


@pytest.mark.parametrize("function", SHARED)
def test_a_write_to_a_part_is_seen_by_all_who_share_it(
    function: Callable[..., Any], taken_apart: list[int], tmp_path: Path
) -> None:
    path = tmp_path / "model.onnx"
    exported(function, make, DIMS, {"batch": 2, "length": 5}, path)
    assert not taken_apart
    assert not wrong_sizes(function, make, SIZES, path)


# ---- writes in parts of a model that are alike: their tensors share memory as those of the first part do


class Alike(nn.Module):
    """What it is given is seen by the write, and so is what it gives."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = self.layer(x)
        flat = y.reshape(-1, 4)
        before = torch.relu(flat) * 2 + torch.tanh(flat) - torch.sigmoid(flat)
        flat[:, 1:] *= 3
        return y, before


class Row(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList(Alike() for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x, before = part(x)
            x[:, 0] += before.sum(0)
        return x


def test_writes_in_parts_that_are_alike(taken_apart: list[int], tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, path = Row().eval(), tmp_path / "m.onnx"
    result = anyshape.export(model, (torch.randn(3, 5, 4),), path, dims={"x": "batch seq 4"}, quick=True)
    assert result.attempts[-1].copied
    assert not taken_apart
    assert all(is_right(path, model, (torch.randn(*sizes, 4),)) for sizes in ((2, 2), (7, 3), (4, 11)))


# ---- what is left to torch


def _by_strides(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x * 2
    row = y.as_strided((2, 2), (1, 1))
    y += 1
    return row, y


def _given_another_memory(x: Tensor) -> tuple[Tensor, Tensor]:
    y, z = x * 2, x * 3
    y.set_(z)
    z += 1
    return y, z


@pytest.mark.parametrize("function", [_by_strides, _given_another_memory])
def test_a_write_that_cannot_be_followed_is_left_to_torch(
    function: Callable[..., Any], taken_apart: list[int], tmp_path: Path
) -> None:
    path = tmp_path / "model.onnx"
    exported(function, make, DIMS, {"batch": 2, "length": 5}, path)
    assert taken_apart
    assert not wrong_sizes(function, make, SIZES, path)
