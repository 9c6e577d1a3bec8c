"""Runs in which every result moves by a rounding: values do, numbers that are exact do not."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from anyshape.torchkit.precision import run_jittered


def _padded_to_frames(x: Tensor) -> Tensor:
    """To whole frames of three, counted in tensors."""
    frames = torch.ceil(torch.tensor(x.shape[-1]) / 3)
    return F.pad(x, (0, int(frames * 3) - x.shape[-1])) / 7


def test_sizes_counted_in_tensors_do_not_move_but_values_do() -> None:
    x = torch.rand(2, 12) + 1
    plain = _padded_to_frames(x)
    runs = [run_jittered(lambda: _padded_to_frames(x), seed) for seed in range(6)]
    assert {run.shape for run in runs} == {plain.shape}
    assert all(bool((run != plain).any()) for run in runs)


def test_a_single_value_that_is_not_whole_moves() -> None:
    value = torch.tensor(0.3)
    assert len({float(run_jittered(lambda: value * 3, seed)) for seed in range(6)}) > 1
