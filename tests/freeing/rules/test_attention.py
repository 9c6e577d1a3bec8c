"""Attention as one operator: its mask follows the queries and the keys; norms keep their shape."""

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
