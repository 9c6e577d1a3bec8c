"""Values of a resized tensor: what they keep of the example."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from anyshape.declaration.resized_values import (
    are_all_different,
    bend,
    continue_steps,
    different_slices,
    draw_bend,
    draw_integers,
    draw_offsets,
    even_step,
    grow_integers,
    is_symmetric,
    keep_highest,
    make_recipe,
    mix_symmetric,
    redraw_integers,
    repeat_edge,
    restore_norm,
    restore_order,
    rises_strictly,
    tile,
)

quick = settings(max_examples=40, deadline=None)


def by_lot(seed=0):
    return torch.Generator().manual_seed(seed)


def normal(*shape, seed=0):
    return torch.randn(shape, generator=by_lot(seed), dtype=torch.float64)


def test_slices_are_copied_in_turn_or_the_last_one_again():
    tensor = torch.arange(3)
    assert tile(tensor, [5]).tolist() == [0, 1, 2, 0, 1]
    assert repeat_edge(tensor, [5]).tolist() == [0, 1, 2, 2, 2]
    assert tile(tensor, [2]).tolist() == repeat_edge(tensor, [2]).tolist() == [0, 1]


@quick
@given(st.integers(2, 5), st.integers(1, 12), st.booleans(), st.integers(0, 99))
def test_mixed_slices_lie_within_the_example_s_and_no_two_are_equal(rows, size, keep, seed):
    tensor = normal(rows, 4, seed=seed)
    made = make_recipe(tensor, 0, size, generator=by_lot(seed), keep=keep).apply(tensor, 0)
    assert made.shape == (size, 4)
    assert bool((made <= tensor.amax(0) + 1e-12).all())
    assert bool((made >= tensor.amin(0) - 1e-12).all())
    assert len(different_slices(made, 0)) == size
    if keep:
        assert torch.equal(made[:rows], tensor[:size])


def test_equal_slices_have_nothing_to_mix_and_are_bent():
    tensor = normal(1, 4).expand(3, 4)
    made = make_recipe(tensor, 0, 6, generator=by_lot(), keep=False).apply(tensor, 0)
    assert len(different_slices(made, 0)) == 6
    assert torch.equal(made.sign(), tensor[:1].sign().expand(6, 4))


def test_the_first_of_each_kind_of_slice_is_named():
    assert different_slices(torch.tensor([[1.0, 2], [1, 2], [3, 4], [1, 2], [3, 5]]), 0).tolist() == [0, 2, 4]


@quick
@given(st.integers(0, 99), st.floats(0.5, 2), st.floats(0.2, 1))
def test_a_curve_keeps_order_signs_zeros_and_the_bound(seed, power, scale):
    tensor = torch.cat([normal(6, seed=seed), torch.zeros(1, dtype=torch.float64), torch.tensor([torch.inf])])
    bent = bend(tensor, power, scale)
    assert torch.equal(bent.sgn(), tensor.sgn())
    assert torch.equal(bent.argsort(), tensor.argsort())
    assert bent[:-1].abs().max() <= tensor[:-1].abs().max() + 1e-12
    assert bent[-1] == torch.inf


def test_a_whole_tensor_is_bent_by_one_curve():
    tensor = normal(3, 4)
    bent = draw_bend(tensor, generator=by_lot())
    assert not torch.equal(bent, tensor)
    assert torch.equal(bent.flatten().argsort(), tensor.flatten().argsort())


@pytest.mark.parametrize("size", [2, 7])
def test_a_symmetric_matrix_stays_one_with_its_diagonal(size):
    tensor = normal(4, 4)
    tensor = tensor + tensor.mT
    tensor.diagonal().fill_(1)
    made = mix_symmetric(tensor, size, generator=by_lot(), keep=True)
    assert is_symmetric(tensor)
    assert is_symmetric(made)
    assert made.shape == (size, size)
    assert made.diagonal().tolist() == [1] * size
    assert not is_symmetric(normal(3, 3))


def test_lines_that_sum_to_one_or_have_length_one_do_so_again():
    shares = normal(3, 4).softmax(-1)
    assert torch.allclose(restore_norm(normal(5, 4).abs(), shares, tolerance=1e-6).sum(-1), torch.ones(5).double())
    unit = torch.nn.functional.normalize(normal(3, 4), dim=-1)
    assert torch.allclose(restore_norm(normal(5, 4), unit, tolerance=1e-6).norm(dim=-1), torch.ones(5).double())
    other = normal(5, 4)
    assert restore_norm(other, normal(3, 4), tolerance=1e-6) is other


def test_what_was_sorted_is_sorted_again_up_or_down():
    assert restore_order(torch.tensor([3, 1, 2]), torch.tensor([1, 5, 9]), [0]).tolist() == [1, 2, 3]
    assert restore_order(torch.tensor([3, 1, 2]), torch.tensor([9, 5, 5]), [0]).tolist() == [3, 2, 1]
    assert restore_order(torch.tensor([3, 1, 2]), torch.tensor([9, 1, 5]), [0]).tolist() == [3, 1, 2]
    assert restore_order(torch.tensor([3, 1, 2]), torch.tensor([4, 4, 4]), [0]).tolist() == [3, 1, 2]


# ---- integers


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


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([[1, 2], [2, 1], [1, 1]], True),
        ([[1, 2], [2, 1], [1, 2]], False),
        ([[7], [7]], False),
        ([[0, 1], [2**40, 0], [0, 1]], False),
        ([[-(2**40), 1], [2**40, 0], [0, 1]], True),
    ],
)
def test_rows_that_are_there_twice_are_seen(rows, expected):
    tensor = torch.tensor(rows)
    assert are_all_different(tensor, 0) is expected
    assert are_all_different(tensor.t(), 1) is expected
    assert (len(different_slices(tensor, 0)) == len(rows)) is expected


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
