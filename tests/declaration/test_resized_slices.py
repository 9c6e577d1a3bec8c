from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from anyshape.declaration.resized_slices import (
    bend,
    different_slices,
    draw_bend,
    is_symmetric,
    make_recipe,
    mix_symmetric,
    repeat_edge,
    restore_norm,
    restore_order,
    tile,
)

quick = settings(max_examples=30, deadline=None)


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
