"""The whole numbers of a file, read off its constants and tables; weights count channels and tell no size."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import onnx_ir as ir

from anyshape.onnxfile.integers import integer_constants, integers_of, sizes_written

TEXT = """<ir_version: 10, opset_import: ["": 18]>
main (float[n, 6] x, bool c) => (float[a, b] y, float[d] z)
<int64[2] shape = {-1, 12}> {
    m = MatMul(x, weight)  k = Constant<value_ints = [7, 9223372036854775807]>()
    r = Reshape(m, shape)  y = Slice(r, one, k)
    z = If (c) <then_branch = t () => (float[u] p) { s = Constant<value_int = 21>() p = Expand(v, s) },
                else_branch = e () => (float[w] q) { q = Identity(v) }>
}"""


def model() -> onnx.ModelProto:
    made = onnx.parser.parse_model(TEXT)
    arrays = {
        "one": np.array([3, 4], np.int32),
        "v": np.zeros(30, np.float32),
        "weight": np.ones((6, 5), np.float32),
        "long": np.arange(17),
    }
    made.graph.initializer.extend(onnx.numpy_helper.from_array(array, name) for name, array in arrays.items())
    return made


def test_short_constants_have_numbers_wherever_they_stand() -> None:
    assert integer_constants(model()) == {"shape": (-1, 12), "k": (7, 2**63 - 1), "one": (3, 4), "s": (21,)}


def test_sizes_are_told_before_lengths_of_tables() -> None:
    assert sizes_written(model()) == (3, 4, 7, 12, 21, 2, 5, 6, 17, 30)


def test_lengths_of_weights_are_no_sizes() -> None:
    assert integers_of(ir.from_proto(model())) == (3, 4, 7, 12, 21, 2, 17, 30)


def test_data_beside_the_file_is_not_read() -> None:
    made = model()
    made.graph.initializer[0].external_data.add(key="location", value="nowhere")
    made.graph.initializer[0].data_location = onnx.TensorProto.EXTERNAL
    assert "shape" not in integer_constants(made)
