from __future__ import annotations

import pytest
import torch

from anyshape.declaration.resized_masks import read_mask, resize_mask


def resized(mask, shape, *, square=True, anew=False, seed=0):
    return resize_mask(mask.bool(), shape, square=square, anew=anew, generator=torch.Generator().manual_seed(seed))


def causal(queries, keys, *, shift=0):
    return torch.ones(queries, keys).tril(keys - queries + shift).bool()


@pytest.mark.parametrize(
    ("values", "is_mask"),
    [
        ([True, True], True),
        ([0, 1, 1], True),
        ([0, 0], True),
        ([0.0, 1.0], True),
        ([0.0, -torch.inf], True),
        ([0.0, torch.finfo(torch.float32).min], True),
        ([0, 2], False),
        ([0, 1, 2], False),
        ([0.0, -1.0], False),
        ([0.0, -5000.0, -1.0], False),
        ([], False),
        (1, False),
    ],
)
def test_a_mask_holds_two_values_that_mean_yes_and_no(values, is_mask):
    assert (read_mask(torch.tensor(values)) is not None) is is_mask


@pytest.mark.parametrize("values", [[True, False], [0, 1], [-torch.inf, 0.0], [0.0, 1.0]])
def test_a_mask_gets_its_own_values_back(values):
    tensor = torch.tensor(values)
    mask = read_mask(tensor)
    assert mask is not None
    assert torch.equal(mask.with_values(mask.holds, tensor.dtype), tensor)


@pytest.mark.parametrize("size", [1, 2, 9])
@pytest.mark.parametrize("shift", [0, -1])
@pytest.mark.parametrize("hides", [True, False])
def test_a_causal_mask_stays_causal(size, shift, hides):
    made = resized(causal(5, 5, shift=shift) ^ hides, (size, size))
    assert torch.equal(made, causal(size, size, shift=shift) ^ hides)


def test_a_causal_mask_over_a_cache_moves_with_the_cache():
    assert torch.equal(resized(causal(3, 7), (5, 6)), causal(5, 6))
    assert torch.equal(resized(causal(3, 7).expand(2, 1, 3, 7), (4, 1, 1, 9)), causal(1, 9).expand(4, 1, 1, 9))


def test_a_band_keeps_its_width_and_an_identity_stays_one():
    band = causal(6, 6) & ~causal(6, 6, shift=-3)
    assert torch.equal(resized(band, (11, 11)), causal(11, 11) & ~causal(11, 11, shift=-3))
    assert torch.equal(resized(torch.eye(4), (7, 7)), torch.eye(7).bool())


@pytest.mark.parametrize("hides", [True, False])
@pytest.mark.parametrize("left", [True, False])
def test_a_causal_mask_with_padding_keeps_both(hides, left):
    columns = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]).bool()
    columns = columns.flip(1) if left else columns
    made = resized((causal(5, 5) & columns[:, None, None]) ^ hides, (3, 1, 8, 8)) ^ hides
    kept = made[:, 0, -1]
    assert torch.equal(made, causal(8, 8) & kept[:, None, None])
    assert kept[0].all()
    assert ((kept.flip(1) if left else kept).int().diff(dim=1) <= 0).all()


def test_rows_and_columns_of_different_dims_are_no_diagonals():
    made = resized(causal(3, 3), (3, 9), square=False)
    assert (made.int().diff(dim=1) <= 0).all()
    assert not torch.equal(made, causal(3, 9))


def test_a_causal_mask_drawn_anew_hides_keys_but_lets_each_position_see_itself():
    made = resized(causal(5, 5), (6, 6), anew=True)
    assert not torch.equal(made, causal(6, 6))
    assert (made <= causal(6, 6)).all()
    assert made.diagonal().all()


def test_padding_that_every_query_shares_stays_shared():
    mask = torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1]])[:, None, None].expand(2, 1, 3, 4)
    made = resized(mask, (4, 1, 5, 9), square=False)
    assert (made == made[:, :, :1]).all()
    assert len(made.unique(dim=0)) == 4


def test_padding_is_found_on_an_axis_before_the_last():
    mask = torch.tensor([[1, 1, 1], [1, 1, 1], [1, 0, 1], [1, 0, 0]]).unsqueeze(-1)
    made = resized(mask, (7, 4, 1), square=False)
    assert (made.int().diff(dim=0) <= 0).all()
    assert made.any(0).all()


def test_lines_of_padding_differ_wherever_there_is_room():
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    assert len(resized(mask, (6, 8), square=False).unique(dim=0)) == 6


def test_symmetric_links_stay_symmetric_and_no_node_links_to_itself():
    links = torch.tensor([[0, 1, 0, 1], [1, 0, 0, 0], [0, 0, 0, 1], [1, 0, 1, 0]])
    made = resized(links, (9, 9))
    assert torch.equal(made, made.T)
    assert not made.diagonal().any()
    assert made.any()


def test_scattered_lines_hold_some_of_both_where_the_example_s_lines_do():
    mask = torch.tensor([[0, 1, 0, 1, 0], [1, 0, 0, 0, 1], [0, 0, 1, 0, 1]])
    for seed in range(20):
        made = resized(mask, (8, 3), square=False, seed=seed)
        assert made.any(1).all()
        assert (~made).any(1).all()


@pytest.mark.parametrize("length", [1, 5])
def test_a_ragged_mask_of_length_one_leaves_no_row_empty(length):
    padding = torch.zeros(3, length, dtype=torch.bool)
    made = resize_mask(padding, (4, 1), square=False, anew=True, generator=torch.Generator().manual_seed(0))
    assert not made.any()
