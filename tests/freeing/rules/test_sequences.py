"""Attention as one operator: its mask follows the queries and the keys; norms keep their shape."""

from __future__ import annotations

import numpy as np
import pytest

from tests.freeing.files import floats, freed, model, run


def test_a_causal_mask_follows_queries_and_keys():
    text = "g (float[1, 2, 4, 3] x) => (float[1, 2, 4, 3] y) { y = Attention(x, x, x, mask) }"
    static = model(text, 23, mask=np.tril(np.ones((4, 4), bool)))
    result = freed(static, x="batch _ seq _")
    assert (result.outputs, result.bounds) == ((("batch", "2", "seq", "3"),), ())
    x = floats(1, 2, 6, 3)
    np.testing.assert_allclose(run(result.model, x)[0][:, :, :4], run(static, x[:, :, :4])[0], atol=1e-5)


@pytest.mark.parametrize("operator", ["Swish", "RMSNormalization"])
def test_norms_and_activations_keep_the_shape(operator):
    scale = ", w" if operator == "RMSNormalization" else ""
    opset = 24 if operator == "Swish" else 23
    text = f"g (float[2, 4] x) => (float[2, 4] y) {{ z = Identity(w) y = {operator}(x{scale}) }}"
    static = model(text, opset, w=np.ones(4, np.float32))
    assert freed(static, x="batch _").outputs == (("batch", "4"),)


# ---- Recurrent operators: states and lengths follow


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
