from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from anyshape.declaration.resized_integers import (
    continue_steps,
    draw_integers,
    draw_offsets,
    even_step,
    grow_integers,
    keep_highest,
    redraw_integers,
    rises_strictly,
)

quick = settings(max_examples=40, deadline=None)


def by_lot(seed=0):
    return torch.Generator().manual_seed(seed)


@quick
@given(st.integers(-3, 3), st.integers(0, 9), st.integers(1, 14), st.integers(0, 99))
def test_spread_integers_come_once_before_any_comes_twice(lowest, more, size, seed):
    drawn = draw_integers((2, size), lowest, lowest + more, generator=by_lot(seed), spread=True)
    assert int(drawn.min()) >= lowest
    assert int(drawn.max()) <= lowest + more
    assert all(len(row.unique()) == min(size, more + 1) for row in drawn)


@quick
@given(st.integers(1, 8), st.integers(0, 12), st.booleans(), st.integers(0, 99))
def test_offsets_rise_from_zero_to_the_total(count, total, closed, seed):
    offsets = draw_offsets(count, total, closed=closed, generator=by_lot(seed))
    assert len(offsets) == count
    assert offsets[0] == 0
    assert bool((offsets.diff() >= 0).all())
    assert int(offsets.max()) <= total
    if closed and count > 1:
        assert offsets[-1] == total
    if closed and 1 < count <= total:
        assert bool((offsets.diff() > 0).all())


def test_new_slices_stay_between_the_lowest_and_the_highest_of_their_line():
    tensor = torch.tensor([[1, 10], [4, 20], [2, 15]])
    grown = grow_integers(tensor, 0, 9, generator=by_lot())
    assert torch.equal(grown[:3], tensor)
    assert bool((grown >= torch.tensor([1, 10])).all())
    assert bool((grown <= torch.tensor([4, 20])).all())
    assert torch.equal(grow_integers(tensor, 0, 2, generator=by_lot()), tensor[:2])


def test_markers_below_zero_are_drawn_from_what_is_there():
    labels = torch.tensor([[-100, 3, 7], [-100, 3, 9]])
    assert set(redraw_integers(labels, (6, 6), generator=by_lot()).flatten().tolist()) <= {-100, 3, 7, 9}
    assert set(grow_integers(labels, 1, 20, generator=by_lot()).flatten().tolist()) <= {-100, 3, 7, 9}


def test_a_last_token_that_every_row_has_is_kept():
    example = torch.tensor([[1, 2, 9], [9, 3, 4]])
    kept = keep_highest(torch.tensor([[1, 2, 3, 4], [9, 2, 3, 4]]), example)
    assert kept.tolist() == [[1, 2, 3, 9], [9, 2, 3, 4]]
    other = torch.tensor([[1, 2]])
    assert keep_highest(other, torch.tensor([[1, 9], [2, 3]])) is other


@pytest.mark.parametrize(
    ("values", "step"),
    [([0, 2, 4], 2), ([5, 6, 7], 1), ([4], 1), ([0, 1, 3], None), ([3, 2, 1], None), ([0.0, 0.5, 1.0], 0.5)],
)
def test_the_step_of_positions_is_read(values, step):
    assert even_step(torch.tensor(values), 0) == step


def test_lines_that_rise_go_on_rising_by_steps_that_they_made():
    stamps = torch.tensor([[3, 5, 9], [0, 4, 6]])
    assert rises_strictly(stamps, 1)
    made = continue_steps(stamps, 1, 8, generator=by_lot(), keep=True)
    assert torch.equal(made[:, :3], stamps)
    assert set(made.diff(dim=1).flatten().tolist()) <= {2, 4}
    anew = continue_steps(stamps, 1, 8, generator=by_lot(), keep=False)
    assert torch.equal(anew[:, 0], stamps[:, 0])
    assert rises_strictly(anew, 1)
    assert not rises_strictly(torch.tensor([1, 2]), 0)
