"""Nodes and constants of our own: each constant once, names that nobody has, sizes read off the inputs."""

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest
import sympy

from anyshape.freeing.builder import Builder
from anyshape.freeing.records import PinnedError
from anyshape.sizes.expressions import dim_symbol

N, M = dim_symbol("n"), dim_symbol("m")


def started():
    entry = ir.Value(name="x", shape=ir.Shape(["n", "m"]), type=ir.TensorType(ir.DataType.FLOAT))
    end = ir.node("Identity", [entry], outputs=[ir.Value(name="freed_constant_1")])
    model = ir.Model(ir.Graph([entry], [], nodes=[end], opset_imports={"": 18}, name="main"), ir_version=9)
    build = Builder(model, {N: (entry, 0), M: (entry, 1)})
    build.enter(end)
    return model, build


def result(model, value, n, m):
    model.graph.outputs.append(value)
    session = onnxruntime.InferenceSession(ir.to_proto(model).SerializeToString())
    return session.run([value.name], {"x": np.zeros((n, m), np.float32)})[0]


def test_one_constant_for_the_same_numbers_and_a_name_that_is_free():
    _, build = started()
    first, second = build.constant(np.array([1, 2])), build.constant(np.array([1, 2]))
    assert first is second
    assert first.name == "freed_constant_2"
    assert build.constant(np.array([1, 2], np.int32)) is not first


@pytest.mark.parametrize(
    "size",
    [2 * N + 1, N * M, sympy.floor(N / 2), N**3, sympy.Max(N, M), sympy.Min(N, 4), N * M / 2],
    ids=str,
)
def test_a_size_is_computed_in_the_file(size):
    model, build = started()
    wanted = int(size.subs({N: 5, M: 6}))
    assert result(model, build.size(size), 5, 6).tolist() == [wanted]


def test_a_size_that_the_file_cannot_compute_is_refused():
    _, build = started()
    with pytest.raises(PinnedError, match="cannot be computed in the file"):
        build.size(N**9)
    with pytest.raises(PinnedError, match="depends on the data"):
        build.size(dim_symbol("unknown"))


def test_a_part_is_cut_between_sizes():
    model, build = started()
    ramp = build.ramp(N, 0, 1)
    part = build.sliced(ramp, {0: (sympy.Integer(1), N - 1)}, (N - 2,))
    assert result(model, part, 6, 1).tolist() == [1, 2, 3, 4]
