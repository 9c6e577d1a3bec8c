"""Constants seen at several sizes are computed for every other: run in ONNX Runtime at sizes that were not seen."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest

from anyshape.conversion.lifting.constants import (
    FUNCTIONS,
    Maker,
    ShortTableError,
    UnexplainedError,
    constant,
    real_number,
)
from anyshape.freeing.builder import Builder
from anyshape.sizes.expressions import dim_symbol, evaluated
from anyshape.sizes.fit import Points

N, M = dim_symbol("n"), dim_symbol("m")
SIZES = ((3, 11), (4, 10), (7, 17), (8, 5), (13, 6))
UNSEEN = ((1, 1), (2, 9), (5, 2), (12, 21))


def lifted(law, tops=None):
    """A function from sizes to the constant, as ONNX Runtime computes what was found."""
    entry = ir.Value(name="x", shape=ir.Shape(["n", "m"]), type=ir.TensorType(ir.DataType.FLOAT))
    end = ir.node("Identity", [entry])
    model = ir.Model(ir.Graph([entry], [], nodes=[end], opset_imports={"": 18}, name="main"), ir_version=9)
    build = Builder(model, {N: (entry, 0), M: (entry, 1)})
    build.enter(end)
    points = Points(tuple({N: n, M: m} for n, m in SIZES), {})
    value = constant(Maker(build, points, tops or {}), [np.asarray(law(*sizes)) for sizes in SIZES])
    value.name = "found"
    model.graph.outputs.append(value)
    session = onnxruntime.InferenceSession(ir.to_proto(model).SerializeToString())
    return lambda n, m: session.run(["found"], {"x": np.zeros((n, m), np.float32)})[0]


def triangle(n, _m):
    return np.triu(np.full((n, n), -np.inf, np.float32), k=1)


def centres(n, m):
    down, along = np.mgrid[0:n, 0:m]
    return np.stack([(along.ravel() + 0.5) / m, (down.ravel() + 0.5) / n], -1).astype(np.float32)


@pytest.mark.parametrize(
    "law",
    [
        lambda n, m: np.array([n, 8, m * 4]),
        lambda n, _m: np.array(n - 1),
        lambda n, _m: np.array([1 / n, 0.5], np.float32),
        lambda n, m: np.zeros((n, m, 4), np.float32),
        lambda n, m: np.full((n, 2), m, np.int64),
        lambda n, _m: np.arange(n),
        lambda n, _m: np.arange(n)[::-1].astype(np.int32),
        lambda n, _m: np.linspace(-1, 1, n, dtype=np.float32),
        lambda n, _m: np.arange(n)[:, None] - np.arange(n)[None],
        lambda n, m: np.arange(n * m).reshape(n, m).T.ravel(),
        lambda n, m: np.repeat(np.arange(n), m),
        lambda n, m: np.tile(np.arange(m), n),
        triangle,
        lambda n, _m: np.tri(n, dtype=bool),
        lambda n, m: np.tri(n, m, dtype=np.float32),
        lambda n, m: np.tri(n, m, m - n, dtype=bool),
        lambda n, _m: np.abs(np.arange(n)[:, None] - np.arange(n)) <= 2,
        centres,
    ],
)
def test_a_pattern_holds_at_sizes_that_were_not_seen(law):
    found = lifted(law)
    for sizes in UNSEEN:
        want = np.asarray(law(*sizes))
        got = found(*sizes)
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        assert np.allclose(got, want, rtol=1e-6, atol=1e-7)


def table(n, _m):
    return np.sin(np.arange(n) ** 2.0).astype(np.float32)


def test_a_table_serves_the_sizes_that_it_was_seen_for():
    found = lifted(table, {N: 13})
    assert np.array_equal(found(6, 2), table(6, 2))


@pytest.mark.parametrize("tops", [{}, {N: 14}])
def test_a_table_that_ends_too_early_is_refused(tops):
    with pytest.raises(ShortTableError, match="nothing tells its entries"):
        lifted(table, tops)


@pytest.mark.parametrize(
    "law",
    [
        lambda n, _m: np.hanning(n),
        lambda n, m: np.random.default_rng(n).standard_normal(4),
        lambda n, _m: np.zeros(n**2 % 7 + 1),
        lambda n, _m: np.zeros((1,) * (n % 2 + 1)),
    ],
)
def test_what_follows_no_pattern_is_refused(law):
    with pytest.raises(UnexplainedError):
        lifted(law)


# ---- real numbers

BATCH, SEQ = dim_symbol("batch"), dim_symbol("seq")
POINTS = Points(tuple({BATCH: batch, SEQ: seq} for batch, seq in SIZES), {})
PRECISION = 8 * float(np.finfo(np.float32).eps)


@pytest.mark.parametrize(
    "law",
    [
        lambda _b, _s: 0.25,
        lambda _b, s: float(s),
        lambda _b, s: 1 / s,
        lambda _b, s: 2 / (s - 1),
        lambda _b, s: math.sqrt(s),
        lambda _b, s: 3.7 / math.sqrt(s),
        lambda _b, s: math.log(s),
        lambda _b, s: math.log2(s) / 8,
        lambda b, s: 1 / (b * s),
        lambda b, _s: 1 - 1 / b,
        lambda _b, s: 0.5 / s - 1,
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_law_is_found_and_holds_elsewhere(law, dtype):
    found = real_number([float(dtype(law(*sizes))) for sizes in SIZES], POINTS, PRECISION)
    assert found is not None
    for b, s in ((2, 3), (5, 40), (30, 100)):
        size = evaluated(found.size, {BATCH: b, SEQ: s})
        value = found.factor * FUNCTIONS[found.function][1](size) + found.start if size else found.start
        assert value == pytest.approx(law(b, s), rel=2e-6)


@pytest.mark.parametrize("law", [lambda _b, s: math.sin(s), lambda b, s: b**s % 7 + 0.5, lambda b, s: s / (b + 0.3)])
def test_what_follows_nothing_has_no_law(law):
    assert real_number([law(*sizes) for sizes in SIZES], POINTS, PRECISION) is None


def test_infinity_is_a_constant_or_nothing():
    assert real_number([-math.inf] * 5, POINTS, PRECISION).start == -math.inf
    assert real_number([math.inf, 1.0, 2.0, 3.0, 4.0], POINTS, PRECISION) is None
