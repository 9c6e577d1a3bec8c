"""Numbers that may follow from a freed size: which are found, and which something else explains."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from anyshape.freeing.suspects import Readings, chosen_by_size, with_steps_of

from .files import floats, freed, model


def suspects(text, *, opset=18, x="batch _", **constants):
    found = freed(model(text, opset, **constants), x=x).suspects
    return [(one.operator, one.text, *(formula.text for formula in one.readings)) for one in found]


def scaled(number, operator="Mul"):
    return suspects(f"g (float[4, 6] x) => (y) {{ y = {operator}(x, c) }}", c=np.float32(number))


@pytest.mark.parametrize(
    ("number", "reading"),
    [
        (4, "batch"), (0.25, "1/batch"), (2, "sqrt(batch)"), (3, "batch - 1"), (1 / 3, "1/(batch - 1)"),
        (5, "batch + 1"), (16, "batch**2"), (np.log(4), "log(batch)"), (-4, "-(batch)"),
        (4 / 3, "batch/(batch - 1)"), (64, "batch**3"), (1 / 64, "1/batch**3"), (8, "batch**1.5"),
        (4 ** (-1 / 3), "1/batch**(1/3)"),
    ],
)  # fmt: skip
def test_a_number_that_is_a_formula_of_the_batch_is_suspect(number, reading):
    ((operator, text, first, *_),) = scaled(number)
    assert (operator, text, first) == ("Mul", f"{np.float32(number):g}", reading)


@pytest.mark.parametrize("number", [0, 1, -1, 0.1, 7, 1e-5, np.inf])
def test_other_numbers_are_not(number):
    assert scaled(number) == []


@pytest.mark.parametrize("kind", [np.float16, np.float64])
def test_in_every_type_of_floats(kind):
    name = {np.float16: "float16", np.float64: "double"}[kind]
    text = f"g ({name}[3, 6] x) => (y) {{ y = Mul(x, c) }}"
    assert [one[2] for one in suspects(text, c=kind(1 / 3))] == ["1/batch"]


def test_two_dims_make_products_and_quotients():
    readings = Readings({"h": 8, "w": 12})
    for number, reading in ((96, "h*w"), (1 / 96, "1/(h*w)"), (8 / 12, "h/w"), (20, "h + w")):
        assert reading in [formula.text for formula in readings.of(number, 4)]


def test_three_dims_make_products_and_two_has_no_cube():
    assert "b*h*w" in [formula.text for formula in Readings({"b": 2, "h": 8, "w": 12}).of(192, 4)]
    assert [formula.text for formula in Readings({"batch": 2}).of(8.0, 4)] == []


def test_the_exponent_of_a_power_of_numbers_is_suspect():
    text = "g (float[4, 6] x) => (y) { p = Pow(b, c) y = Mul(x, p) }"
    found = suspects(text, b=np.float32(0.9), c=np.float32(4))
    assert [(operator, number, reading) for operator, number, reading, *_ in found] == [("Pow", "4", "batch")]


@pytest.mark.parametrize(
    ("table", "readings"),
    [
        (np.linspace(0, 1, 5)[:, None] + np.arange(6) * 0.37, ["range(seq)/max(seq - 1, 1)"]),
        (np.linspace(0, 1, 5)[:, None] * np.arange(1, 7), ["6*range(seq)/max(seq - 1, 1)"]),
        (np.arange(5)[:, None] / 5 + np.arange(6) ** 2 * 0.1, ["range(seq)/seq"]),
        (np.arange(5)[:, None] / 100 + np.arange(6) * 0.37, []),
        (np.arange(5)[:, None] + np.arange(6) * 0.37, []),
        (np.random.default_rng(0).standard_normal((5, 6)), []),
        (np.linspace(0, 1, 5)[:, None] ** 2 + np.arange(6) * 0.37, []),
    ],
)
def test_a_table_that_is_straight_along_a_dim_is_suspect(table, readings):
    found = Readings({"batch": 3, "seq": 5}).along_tables(table.astype(np.float32))
    assert [formula.text for _, formulas in found for formula in formulas] == readings


def test_a_straight_table_at_another_size_keeps_its_first_line():
    table = np.linspace(0, 1, 5)[:, None] * np.array([1, 2]) + np.array([7, 9])
    other = with_steps_of(table, 0, 2 * np.linspace(0, 1, 3))
    np.testing.assert_allclose(other, np.linspace(0, 1, 3)[:, None] * np.array([1, 2]) + np.array([7, 9]))


def test_a_size_of_one_leaves_no_trace_and_one_less_than_two_neither():
    assert list(Readings({"batch": 1}).of(2.0, 4)) == []
    assert [formula.text for formula in Readings({"batch": 2}).of(2.0, 4)] == ["batch"]


@pytest.mark.parametrize(
    ("line", "reading"),
    [
        (np.linspace(0, 1, 16), "range(seq)/max(seq - 1, 1)"),
        (np.linspace(-1, 1, 16), "-1 + 2*range(seq)/max(seq - 1, 1)"),
        (np.arange(16) / 16, "range(seq)/seq"),
        ((np.arange(16) + 0.5) / 16, "(range(seq) + 0.5)/seq"),
        (np.arange(1, 17) / 16, "(range(seq) + 1)/seq"),
        (1 - np.arange(16) / 16, "1 - range(seq)/seq"),
        (np.linspace(0, 1, 17), "range(seq + 1)/seq"),
        (2 * np.pi * np.arange(16) / 16, "pi*(2*range(seq)/seq)"),
        ((np.arange(16) / 16) ** 2, "(range(seq)/seq)**2"),
        (np.exp(-np.arange(16) / 16), "exp(-range(seq)/seq)"),
        (np.sin(np.pi * np.arange(16) / 16), "sin(pi*(range(seq)/seq))"),
        (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(16) / 16), "(1 - cos(pi*(2*range(seq)/seq)))/2"),
        (0.1 * np.arange(15, -1, -1), "-0.1*(range(seq) - seq + 1)"),
        (np.arange(-15, 1), "range(seq) - seq + 1"),
        (np.arange(-16, 1), "range(seq + 1) - seq"),
        (np.arange(16) - 7.5, "range(seq) - (seq - 1)/2"),
        (0.3 * (np.arange(16) - 7.5), "0.3*(range(seq) - (seq - 1)/2)"),
    ],
)
def test_a_ramp_with_as_many_steps_is_suspect(line, reading):
    array = line.astype(np.float32).reshape(1, -1, 1)
    assert reading in [formula.text for formula in Readings({"batch": 2, "seq": 16}).of_array(array)]


@pytest.mark.parametrize(
    "line", [0.1 * np.arange(16), np.exp(-0.1 * np.arange(16)), np.sin(np.arange(16.0)), np.ones(16) * 7]
)
def test_a_ramp_of_another_step_is_not(line):
    assert Readings({"batch": 2, "seq": 16}).of_array(line.astype(np.float32)) == ()


# ---- what explains a number

HEADS = """g (float[2, 16, 64] x) => (y) <int64[4] s = {2, 16, 4, 16}> {
  h = Reshape(x, s)
  q = Transpose<perm = [0, 2, 1, 3]>(h)
  k = Transpose<perm = [0, 2, 3, 1]>(h)
  %s
}"""


@pytest.mark.parametrize(
    "scores",
    ["a = MatMul(q, k) b = Mul(a, c) y = Softmax(b)", "b = Mul(q, c) a = MatMul(b, k) y = Softmax(a)"],
)
def test_the_scale_of_an_attention_follows_from_what_is_fixed(scores):
    """1/4 is the inverse root of 16 features, and of 16 steps."""
    assert suspects(HEADS % scores, x="batch seq _", c=np.float32(0.25)) == []


def test_the_same_scale_beside_other_features_is_suspect():
    text = HEADS.replace("64]", "36]").replace("4, 16}", "4, 9}") % "a = MatMul(q, k) b = Mul(a, c) y = Softmax(b)"
    assert [one[2] for one in suspects(text, x="batch seq _", c=np.float32(0.25))] == ["1/sqrt(seq)"]


GELU = "g (float[2, 6] x) => (y) { a = Div(x, r) b = Erf(a) d = Add(b, o) e = Mul(x, d) y = Mul(e, h) }"


def test_numbers_of_gelu_are_its_own():
    assert suspects(GELU, r=np.float32(np.sqrt(2)), o=np.float32(1), h=np.float32(0.5)) == []


def test_half_of_a_tanh_is_not_gelu():
    text = "g (float[2, 6] x) => (y) { a = Tanh(x) y = Mul(a, h) }"
    assert [one[2] for one in suspects(text, h=np.float32(0.5))] == ["1/batch"]


def test_squares_are_no_sizes():
    assert suspects("g (float[2, 6] x) => (y) { y = Pow(x, c) }", c=np.float32(2)) == []


def test_the_number_of_terms_of_a_fixed_sum_is_no_size():
    text = "g (float[6, 6] x) => (y) { a = ReduceSum<keepdims = 0>(x, d) y = Div(a, c) }"
    assert suspects(text, d=np.array([1]), c=np.float32(6)) == []


def test_weights_that_are_alike_are_no_numbers():
    text = "g (float[4, 6, 3] x) => (y) { y = PRelu(x, c) }"
    assert suspects(text, x="batch _ _", c=np.full((6, 1), 0.25, np.float32)) == []


def test_roots_of_features_explain_nothing_where_none_are_scaled():
    """4 is the root of 16 features, and the batch."""
    text = "g (float[4, 16] x) => (y) { a = MatMul(x, w) y = Div(a, c) }"
    assert [one[2] for one in suspects(text, c=np.float32(4), w=floats(16, 16))] == ["batch"]


def test_the_scale_of_an_embedding_is_explained():
    text = "g (int64[4, 4] x) => (y) { a = Gather(w, x) y = Mul(a, c) }"
    assert suspects(text, x="batch seq", c=np.float32(4), w=floats(9, 16)) == []


# ---- whole numbers


def test_counts_are_suspect_and_axes_are_not():
    text = "g (float[2, 6] x) => (y, i) { a = ReduceMax<keepdims = 1>(x, d) b = Sub(x, a) y, i = TopK(b, k) }"
    found = suspects(text, x="batch seq", d=np.array([1]), k=np.array([3]))
    assert found == [("TopK", "3", "batch + 1", "seq//2")]


def test_a_pad_follows_its_own_axis_alone():
    text = "g (float[4, 6] x) => (y) { y = Pad(x, p) }"
    found = suspects(text, x="batch seq", p=np.array([0, 4, 0, 6]))
    assert found == [("Pad", "[0, 4, 0, 6]", "0, 4, 0, seq")]


def test_a_ramp_that_begins_at_the_size_is_suspect():
    text = "g (float[2, 6] x) => (y) { y = Add(x, c) }"
    found = freed(model(text, c=np.arange(6, 12).astype(np.float32)), x="batch seq").suspects
    assert [(one.text, one.readings[0].text, one.whole) for one in found] == [("6", "seq", "{} + range(seq)")]


def test_a_number_in_a_chain_of_constants_is_met_where_it_is_used():
    text = "g (float[4, 6] x) => (y) { a = Reciprocal(c) y = Mul(x, a) }"
    assert suspects(text, c=np.float32(4)) == [("Mul", "0.25", "1/batch")]


def test_attributes_are_numbers_too():
    assert suspects("g (float[4, 6] x) => (y) { y = LeakyRelu<alpha = 0.25>(x) }") == [("LeakyRelu", "0.25", "1/batch")]


def test_numbers_inside_of_a_branch_are_seen():
    text = """g (float[4, 6] x, bool p) => (y) {
      y = If (p) <
        then_branch = t () => (float[n, 6] a) { a = Div(x, c) },
        else_branch = e () => (float[n, 6] b) { b = Neg(x) }
      >
    }"""
    assert suspects(text, c=np.float32(4)) == [("Div", "4", "batch")]


# ---- operators that a size may have chosen


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "pool = AveragePool<kernel_shape=[4], strides=[4]>(x)",
            ["AveragePool `pool` makes 3 of `seq` = 12, as an adaptive one would"],
        ),
        ("pool = AveragePool<kernel_shape=[2], strides=[2]>(x)", []),
        ("pool = MaxPool<kernel_shape=[4], strides=[2]>(x)", []),
        (
            "p = Constant<value_ints=[0,0,0,0,0,4]>() pool = Pad(x, p)",
            ["Pad `pool` fills `seq` = 12 up to 16, perhaps to a multiple"],
        ),
        ("p = Constant<value_ints=[0,0,2,0,0,2]>() pool = Pad(x, p)", []),
        ("p = Constant<value_ints=[0,0,0,0,0,1]>() pool = Pad(x, p)", []),
    ],
)
def test_what_another_operator_would_do_at_this_size_is_told(text, told):
    graph = model(f"g (float[2, 3, 12] x) => (float[2, 3, n] pool) {{ {text} }}", 18)
    found = list(chosen_by_size(ir.to_proto(graph), {"seq": 12}, "Pad", "AveragePool", "MaxPool"))
    assert found == [("seq", one) for one in told]
