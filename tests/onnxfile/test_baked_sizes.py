"""What `inspect` finds baked into a file: every constant that pins a size, and none that does not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import onnx_ir as ir
import pytest

import anyshape
from anyshape.onnxfile.baked_sizes import Baked, integer_constants, integers_of, size_literals, sizes_written
from tests.onnxfile import drawing


def baked(tmp_path: Path, text: str) -> list[str]:
    return [str(one) for one in anyshape.inspect(drawing.write(tmp_path / "m.onnx", text)).baked]


def test_an_input_whose_first_axis_is_one_looks_like_a_batch(tmp_path):
    text = "main (float[1, seq] x, float[1] scale) => (float[1, seq] y) { y = Mul(x, scale) }"
    assert baked(tmp_path, text) == ["input `x` has 1 on axis 0, which looks like a batch"]


TABLE = "float[1, 4] w = {1, 2, 3, 4}"
PINS = {
    "a shape in numbers": (
        "y = Reshape(x, c)",
        "int64[2] c = {6, 4}",
        "Reshape node `y` has the constant shape [6, 4]",
    ),
    "a batch in front": (
        "y = Reshape(x, c)",
        "int64[2] c = {3, -1}",
        "Reshape node `y` has the constant shape [3, -1]",
    ),
    "rows of the input": ("y = Expand(x, c)", "int64[2] c = {3, 1}", "Expand node `y` has the constant shape [3, 1]"),
    "rows of a table": (
        "y = Expand(w, c)",
        f"int64[2] c = {{3, 4}}, {TABLE}",
        "Expand node `y` has the constant shape [3, 4]",
    ),
    "zeros": (
        "y = ConstantOfShape(c)",
        "int64[2] c = {3, 4}",
        "ConstantOfShape node `y` has the constant shape [3, 4]",
    ),
    "copies": (
        "y = Tile(w, c)",
        f"int64[2] c = {{3, 1}}, {TABLE}",
        "Tile node `y` has the constant repeats [3, 1]",
    ),
    "first rows": (
        "y = Slice(x, s, c, a)",
        "int64[1] s = {0}, int64[1] c = {3}, int64[1] a = {0}",
        "Slice node `y` has the constant end [3]",
    ),
    "a constant node": (
        "c = Constant<value_ints = [6, 4]>() y = Reshape(x, c)",
        "",
        "Reshape node `y` has the constant shape [6, 4]",
    ),
}


@pytest.mark.parametrize("what", PINS)
def test_a_constant_that_pins_is_named_with_its_node(tmp_path, what):
    nodes, constants, sentence = PINS[what]
    text = f"main (float[batch, 4] x) => (float[a, b] y) <{constants}> {{ {nodes} }}"
    assert baked(tmp_path, text) == [sentence]


FREE = {
    "an axis to infer": ("y = Reshape(x, c)", "int64[2] c = {-1, 2}"),
    "an axis to keep": ("y = Reshape(x, c)", "int64[3] c = {0, 2, 2}"),
    "one row of all": ("y = Reshape(x, c)", "int64[2] c = {1, -1}"),
    "a table": ("y = Reshape(w, c)", "int64[2] c = {2, 2}, float[4] w = {1, 2, 3, 4}"),
    "a sum over all": ("s = ReduceSum<keepdims = 0>(x) y = Reshape(s, c)", "int64[2] c = {1, 1}"),
    "columns": ("y = Expand(x, c)", "int64[2] c = {1, 4}"),
    "heads of a size that is not known": (
        "s = Shape(x) z = Reshape(x, s) y = Expand(z, c)",
        "int64[2] c = {2, 1}",
    ),
    "copies of the input": ("y = Tile(x, c)", "int64[2] c = {3, 1}"),
    "one row": ("y = Slice(x, s, c, a)", "int64[1] s = {0}, int64[1] c = {1}, int64[1] a = {0}"),
    "other columns": ("y = Slice(x, s, c, a)", "int64[1] s = {0}, int64[1] c = {3}, int64[1] a = {1}"),
}


@pytest.mark.parametrize("what", FREE)
def test_a_constant_that_pins_nothing_is_not_named(tmp_path, what):
    nodes, constants = FREE[what]
    text = f"main (float[batch, 4] x) => (float[a, b] y) <{constants}> {{ {nodes} }}"
    assert baked(tmp_path, text) == []


def test_a_static_file_has_nothing_that_pins(tmp_path):
    text = "main (float[6, 4] x) => (float[a, b] y) <int64[2] c = {3, 8}> { y = Reshape(x, c) }"
    assert baked(tmp_path, text) == []


def test_the_line_of_a_node_is_shown_without_the_machine_it_was_made_on(tmp_path):
    path = drawing.write(tmp_path / "m.onnx", drawing.PINNED)
    model = onnx.load(path)
    stack = (
        '  File "/home/somebody/project/model.py", line 17, in forward\n    return x.view(2, 8, 4)\n'
        '  File "/usr/lib/python3/dist-packages/torch/nn/modules/module.py", line 9, in _call_impl'
    )
    model.graph.node[0].metadata_props.add(key="pkg.torch.onnx.stack_trace", value=stack)
    onnx.save(model, path)
    (one,) = anyshape.inspect(path).baked
    assert one == Baked(
        "Reshape node `node_view` has the constant shape [2, 8, 4]",
        "node_view",
        "Reshape",
        (2, 8, 4),
        "model.py:17 in forward",
    )
    model.graph.node[0].metadata_props.add(key="anyshape.source", value="net.py:3 in Net.forward")
    onnx.save(model, path)
    assert str(anyshape.inspect(path).baked[0]).endswith("[2, 8, 4], from net.py:3 in Net.forward")


def test_a_tensor_that_contradicts_itself_has_no_numbers(tmp_path):
    path = drawing.write(tmp_path / "m.onnx", drawing.PINNED)
    model = onnx.load(path)
    model.graph.initializer[0].ClearField("int64_data")
    model.graph.initializer[0].raw_data = b"123"
    onnx.save(model, path)
    assert anyshape.inspect(path).baked == ()


@pytest.mark.parametrize("field", ["raw_data", "int64_data", "data_type"])
def test_onnx_infers_nothing_from_a_tensor_that_contradicts_itself(tmp_path, monkeypatch, field):
    path = drawing.write(tmp_path / "m.onnx", drawing.PINNED)
    model = onnx.load(path)
    tensor = model.graph.initializer[0]
    tensor.ClearField("int64_data")
    match field:
        case "raw_data":
            tensor.raw_data = b"123"
        case "int64_data":
            tensor.int64_data.append(2)
        case "data_type":
            tensor.data_type, tensor.raw_data = 99, b"12345678"
    onnx.save(model, path)
    monkeypatch.setattr(onnx.shape_inference, "infer_shapes", lambda _: pytest.fail("onnx 1.18 ends here"))
    assert anyshape.inspect(path).baked == ()


# ---- The whole numbers of a file, read off its constants and tables; weights count channels and tell no s


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


SIZED = """
<ir_version: 9, opset_import: ["" : 20]>
g (float[n, 3] x) => (float[n, 3] y, float[m, 3] z, float[n, 3] w)
<int64 zero = {0}, int64 far = {64}, float near = {91.0}, int64[1] first = {0}, int64[1] end = {77},
 int64[1] back = {-55}, int64[1] last = {9223372036854775807}, float weight = {1000.0}, int64 one = {1}>
{
    shape = Shape(x)
    n = Gather(shape, zero)
    long = Greater(n, far)
    c = Cast<to = 1>(n)
    near_end = Less(c, near)
    both = And(long, near_end)
    scaled = Mul(x, weight)
    y = Where(both, scaled, x)
    head = Slice(x, first, end, first)
    z = Slice(head, back, last, first)
    places = Range(zero, n, one)
    w = Identity(x)
}
"""


def test_numbers_that_have_to_do_with_sizes_are_told_from_others() -> None:
    graph = ir.from_proto(onnx.parser.parse_model(SIZED))
    assert {n for n in size_literals(graph) if n > 9} == {64, 91, 77, 55}
