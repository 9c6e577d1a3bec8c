"""Tensors of a size that is written down, at sizes that the file was not made for."""

from tests.freeing.files import assert_right_sample_by_sample, floats, freed, ints, model, run


def test_an_expand_of_data_keeps_its_size():
    static = model("g (float[2, 1, 4] x) => (float[2, 3, 4] y) { y = Expand(x, s) }", s=ints(2, 3, 4))
    assert_right_sample_by_sample(static, freed(static, x="batch _ _").model)


def test_a_class_token_follows_the_batch():
    text = "g (float[2, 3, 4] x) => (float[2, 4, 4] y) { t = Expand(c, s) y = Concat<axis = 1>(t, x) }"
    static = model(text, c=floats(1, 1, 4), s=ints(2, 1, 4))
    result = freed(static, x="batch seq _")
    assert result.outputs == (("batch", "seq + 1", "4"),)
    assert_right_sample_by_sample(static, result.model)
    assert run(result.model, floats(3, 9, 4))[0].shape == (3, 10, 4)
