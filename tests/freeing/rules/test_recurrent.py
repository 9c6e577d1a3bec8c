"""Recurrent operators: states and lengths follow."""

import numpy as np

from tests.freeing.files import floats, freed, model, run


def test_states_and_lengths_of_an_lstm_follow():
    text = """g (float[6, 2, 3] x) => (float[6, 1, 2, 4] y) {
        y, h, c = LSTM<hidden_size = 4>(x, w, r, b, l, z, z) }"""
    weights = {"w": floats(1, 16, 3), "r": floats(1, 16, 4), "b": floats(1, 32), "z": np.zeros((1, 2, 4), np.float32)}
    static = model(text, l=np.array([6, 6], np.int32), **weights)
    result = freed(static, x="seq batch _")
    assert result.outputs == (("seq", "1", "batch", "4"),)
    x = floats(6, 10, 3)
    parts = [run(static, part)[0] for part in np.split(x, 5, 1)]
    np.testing.assert_allclose(run(result.model, x)[0], np.concatenate(parts, 2), atol=1e-5)
    np.testing.assert_allclose(run(result.model, x[:4])[0], run(result.model, x)[0][:4], atol=1e-5)
