from __future__ import annotations

from types import SimpleNamespace

import torch

from anyshape.checkpoints import parts


def test_masks_are_ragged_and_their_first_row_is_full() -> None:
    torch.manual_seed(0)
    mask = parts.mask_padded_right(200, 9)
    assert mask[0].tolist() == [1] * 9
    assert set(mask.sum(1).tolist()) == set(range(1, 10))
    assert (mask.diff(dim=1) <= 0).all()
    assert (parts.mask_padded_left(200, 9).diff(dim=1) >= 0).all()
    assert parts.mask_padded_right(3, 0).shape == (3, 0)


def test_places_are_counted_without_padding() -> None:
    mask = torch.tensor([[1, 1, 1, 1, 1], [0, 0, 1, 1, 1]])
    assert parts.positions_of(mask, 3).tolist() == [[2, 3, 4], [0, 1, 2]]
    assert parts.positions_of(mask, 5).tolist() == [[0, 1, 2, 3, 4], [0, 0, 0, 1, 2]]


def test_texts_end_and_hold_no_padding() -> None:
    torch.manual_seed(0)
    ids = parts.text_ids(50, 20, SimpleNamespace(vocab_size=5, pad_token_id=4, eos_token_id=[2, 3]))
    assert ids[:, -1].unique().tolist() == [2]
    assert ids.unique().tolist() == [0, 1, 2, 3]


def test_an_end_that_is_no_word_is_left_out() -> None:
    ids = parts.text_ids(5, 6, SimpleNamespace(vocab_size=5, pad_token_id=None, eos_token_id=49407))
    assert int(ids.max()) < 5
