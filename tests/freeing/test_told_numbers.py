"""What the user says about numbers of a file: found by name, held against the file, written into the graph."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from anyshape.errors import DeclarationError
from anyshape.freeing.observation import prepared
from anyshape.freeing.told_numbers import read_told, with_formulas

from .files import floats, freed, model, run

SHARE = "g (float[4, 6] x) => (y) { [share] a = Div(x, four) [more] y = Mul(a, four) }"
ADDED = "g (float[4, 6] x) => (y) { [place] y = Add(x, c) }"


def told(text, constants, x="batch 6", sizes=None, **arrays):
    base = prepared(model(text, **arrays))
    wanted = {"x": tuple(word if word.isidentifier() else None for word in x.split())}
    return with_formulas(base, read_told(base, constants, sizes or {"batch": 4, "seq": 6}), wanted)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("share", lambda x, n: x / n * 4),
        ("a", lambda x, n: x / n * 4),
        ("m*", lambda x, n: x / 4 * n),
        ("four", lambda x, n: x),
    ],
)
def test_a_name_is_of_a_node_a_result_or_a_constant(key, expected):
    dynamic = freed(told(SHARE, {key: "batch"}, four=np.float32(4)), x="batch _").model
    for n in (4, 3, 7):
        x = floats(n, 6)
        np.testing.assert_allclose(run(dynamic, x)[0], expected(x, n), rtol=1e-6)


@pytest.mark.parametrize(
    ("array", "formula", "expected"),
    [
        (np.full((4, 6), 0.25, np.float32), "1/batch", lambda b, _: np.full((b, 1), 1 / b)),
        (np.linspace(0, 1, 6, dtype=np.float32), "range(seq)/(seq - 1)", lambda _, s: np.linspace(0, 1, s)),
        (np.arange(6, 12, dtype=np.float32)[None], "seq + range(seq)", lambda _, s: np.arange(s, 2 * s)),
        (np.float32(2), "sqrt(batch) % 3", lambda b, _: np.sqrt(b) % 3),
        (np.float32(5), "min(batch, seq) + seq // 5", lambda b, s: min(b, s) + s // 5),
    ],
)
def test_every_shape_of_a_number_follows_the_sizes(array, formula, expected):
    dynamic = freed(told(ADDED, {"place": formula}, x="batch seq", c=array), x="batch seq").model
    for b, s in ((4, 6), (3, 6), (5, 11)):
        x = floats(b, s)
        np.testing.assert_allclose(run(dynamic, x)[0], x + expected(b, s), rtol=1e-5, atol=1e-6)


def test_several_numbers_are_told_together():
    text = "g (float[4, 6] x) => (y) { [pad] y = Pad(x, p) }"
    dynamic = freed(told(text, {"pad": "0, 0, 0, seq"}, x="batch seq", p=np.array([0, 0, 0, 6])), x="batch seq").model
    assert run(dynamic, floats(3, 5))[0].shape == (3, 10)


def test_what_is_fixed_is_kept_even_below_a_sum():
    text = "g (float[4, 6] x) => (y) { a = ReduceSum<keepdims = 0>(x, d) [mean] y = Div(a, c) }"
    arrays = {"d": np.array([1]), "c": np.float32(6)}
    x = floats(4, 9)
    for constants, divisor in (({}, 9), ({"mean": "fixed"}, 6)):
        dynamic = freed(told(text, constants, x="batch seq", **arrays), x="batch seq").model
        np.testing.assert_allclose(run(dynamic, x)[0], x.sum(1) / divisor, rtol=1e-5)


@pytest.mark.parametrize(
    ("constants", "said"),
    [
        ({"shaer": "batch"}, "`constants` names `shaer`, but the file has no such node; did you mean `share`?"),
        (
            {"share": "1/bacth"},
            "`constants` says that `share` is 1/bacth, but the dims that are freed are `batch`, `seq`;"
            " did you mean `batch`?",
        ),
        (
            {"share": "1/batch"},
            "`constants` says that `share` is 1/batch, which is 0.25 in the file, but it holds 4",
        ),
        (
            {"share": "range(batch)"},
            "`constants` says that `share` is range(batch), which is 0 to 3 in the file, but it holds 4",
        ),
    ],
)
def test_what_does_not_fit_is_one_sentence(constants, said):
    with pytest.raises(DeclarationError) as caught:
        told(SHARE, constants, four=np.float32(4))
    assert str(caught.value) == said


def test_the_static_file_takes_the_numbers_as_inputs():
    base = prepared(model(SHARE, four=np.float32(4)))
    numbers = read_told(base, {"share": "batch"}, {"batch": 4})
    twin = numbers.as_inputs(base)
    (given,) = numbers.at({"batch": 7}).values()
    assert given == np.float32(7)
    x = floats(4, 6)
    np.testing.assert_allclose(run(twin, x, given)[0], x / 7 * 4, rtol=1e-6)
    assert isinstance(twin, ir.Model)
