"""Constants that are a formula."""

import numpy as np

from anyshape.freeing.constant_patterns import Piece, diagonal_pieces, is_uniform, ramp_step


def test_nan_is_the_same_as_nan():
    assert is_uniform(np.array([[np.nan, 1.0]] * 3), 0)
    assert not is_uniform(np.array([[np.nan, 1.0]] * 3), 1)


def test_a_ramp_has_one_step():
    assert ramp_step(np.arange(5) * 3 + 7, 0) == [3]
    assert ramp_step(np.array([0, 1, 2, 4]), 0) is None


def test_a_line_of_fractions_is_a_table():
    assert ramp_step(np.linspace(0, 1, 5), 0) is None
    assert ramp_step(np.arange(4.0), 0) == [1]


def test_one_entry_is_no_ramp():
    assert ramp_step(np.array([3]), 0) is None


def test_a_causal_mask_steps_at_the_diagonal():
    mask = np.tril(np.ones((5, 5), bool))
    assert diagonal_pieces(mask, 0, 1) == (Piece(-4, False, 0), Piece(0, True, 0))


def test_a_window_has_three_pieces():
    i, j = np.indices((8, 8))
    mask = np.where(abs(i - j) <= 2, 0.0, -np.inf)
    assert diagonal_pieces(mask, 0, 1) == (Piece(-7, -np.inf, 0), Piece(-2, 0.0, 0), Piece(3, -np.inf, 0))


def test_a_clipped_distance_has_a_slope_between():
    i, j = np.indices((9, 9))
    pieces = diagonal_pieces(np.clip(i - j, -3, 3) + 3, 0, 1)
    assert pieces == (Piece(-8, 0, 0), Piece(-2, 3, 1), Piece(4, 6, 0))


def test_a_matrix_of_weights_has_no_pieces():
    assert diagonal_pieces(np.random.default_rng(0).standard_normal((4, 4)), 0, 1) is None
    assert diagonal_pieces(np.eye(5) + np.fliplr(np.eye(5)), 0, 1) is None
