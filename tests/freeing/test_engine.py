"""free() as a whole: what it promises, and what it says about files that are not sound."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper
import onnx.parser
import onnx_ir as ir
import pytest

import anyshape
from anyshape.errors import AnyshapeError, DeclarationError
from anyshape.freeing.engine import free, named, with_outputs
from anyshape.freeing.records import PinnedError

from .files import assert_right_sample_by_sample, floats, freed, model, run

VIEW = "g (float[2, 3, 4] x) => (float[2, 12] y) { y = Reshape(x, s) }"


def view(**options):
    return model(VIEW, s=np.array([2, 12]), **options)


def test_the_file_itself_is_not_touched():
    static = view()
    before = ir.to_proto(static).SerializeToString()
    freed(static, x="batch _ _")
    assert ir.to_proto(static).SerializeToString() == before


def test_inputs_and_outputs_carry_the_dims():
    result = freed(view(), x="batch _ _")
    graph = ir.to_proto(result.model).graph
    onnx.checker.check_model(ir.to_proto(result.model), full_check=True)
    assert graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert graph.output[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert result.sizes == {"batch": 2}


def test_nothing_wanted_is_nothing_changed():
    result = freed(view(), x="_ _ _")
    assert (result.rewrites, result.outputs) == ((), (("2", "12"),))


def test_dims_that_share_a_name_share_a_size():
    text = "g (float[2, 3] x, float[2, 4] z) => (float[2, 7] y) { y = Concat<axis = 1>(x, z) }"
    assert freed(model(text), x="batch n", z="batch m").outputs == (("batch", "m + n"),)
    with pytest.raises(DeclarationError, match="`n` is 3 in one place of the file and 4 in another"):
        freed(model(text), x="_ n", z="_ n")


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ({"z": ("batch",)}, "the file has no input `z`, only `x`"),
        ({"x": ("batch",)}, "`x` has 3 axes, 1 are declared"),
        ({"x": ("batch size", None, None)}, "`batch size` cannot name a dim"),
    ],
)
def test_a_wrong_declaration_gets_one_sentence(wanted, sentence):
    with pytest.raises(DeclarationError, match=sentence):
        free(view(), wanted)


def test_axes_that_the_file_leaves_open_stay_open():
    static = model("g (float[N, 3, 4] x) => (float[N, 12] y) { y = Reshape(x, s) }", s=np.array([-1, 12]))
    result = freed(static, x="_ _ _")
    assert result.outputs == (("N", "12"),)
    assert freed(static, x="batch _ _").outputs == (("batch", "12"),)


@pytest.mark.parametrize("opset", [11, 13, 17, 21, 24])
def test_every_opset_from_11_on_is_freed(opset):
    static = view(opset=opset)
    assert_right_sample_by_sample(static, freed(static, x="batch _ _").model)


def test_axes_as_attributes_are_understood():
    text = """g (float[2, 4, 3] x) => (float[2, 3] y) {
        u = Unsqueeze<axes = [1]>(t) a = Add(x, u) s = ReduceSum<axes = [1], keepdims = 0>(a) y = Div(s, n) }"""
    result = freed(model(text, opset=11, t=np.arange(4, dtype=np.float32), n=np.float32(4)), x="batch seq _")
    x = floats(3, 6, 3)
    np.testing.assert_allclose(run(result.model, x)[0], (x + np.arange(6)[:, None]).mean(1), rtol=1e-5)


def test_a_reading_that_contradicts_what_follows_is_left_for_the_next():
    """`batch` goes to the 4 that stands alone; but then the weights would meet it."""
    text = """g (float[3, 1, 4] x) => (float[3, 4] z) { h = Reshape(x, s) z = MatMul(h, w) }"""
    result = freed(model(text, s=np.array([3, 4]), w=floats(4, 4)), x="seq batch _")
    assert result.outputs == (("batch*seq", "4"),)
    assert sum(result.choices) >= 2
    assert run(result.model, floats(5, 2, 4))[0].shape == (10, 4)


def test_a_choice_is_taken_as_told():
    text = "g (float[1, 6] x) => (float[1, 1, 6] y) { y = Reshape(x, s) }"
    static = model(text, s=np.array([1, 1, 6]))
    assert freed(static, x="batch _").outputs == (("batch", "1", "6"),)
    second = freed(static, (1,), x="batch _")
    assert (second.outputs, second.taken) == ((("1", "batch", "6"),), (1,))


def test_weights_beside_the_file_are_used_where_they_are(tmp_path):
    static = model("g (float[2, 64] x) => (float[2, 64] y) { y = MatMul(x, w) }", w=floats(64, 64))
    ir.save(static, tmp_path / "m.onnx", external_data="m.data", size_threshold_bytes=0)
    loaded = ir.load(tmp_path / "m.onnx")
    result = freed(loaded, folder=tmp_path, x="batch _")
    kept = result.model.graph.initializers["w"].const_value
    assert kept is loaded.graph.initializers["w"].const_value
    assert isinstance(kept, ir.ExternalTensor)


def test_operators_of_the_runtime_are_asked_from_the_run():
    text = "g (float[2, 4] x) => (float[2, 4] y) { y = com.microsoft.FastGelu(x) }"
    assert freed(model(text), x="batch _").outputs == (("batch", "4"),)


# ---- files that are not sound


def graph(nodes, shape=(1, 2), outputs=("y",), **constants):
    initializers = [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    inputs = [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)]
    ends = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in outputs]
    made = onnx.helper.make_graph([onnx.helper.make_node(*node) for node in nodes], "g", inputs, ends, initializers)
    opsets = [onnx.helper.make_opsetid("", 18)]
    return ir.serde.deserialize_model(onnx.helper.make_model(made, opset_imports=opsets, ir_version=10))


@pytest.mark.parametrize(
    ("static", "sentence"),
    [
        (lambda: graph([("Add", ["x", "b"], ["a"]), ("Relu", ["a"], ["b"])], outputs=["b"]), "`b` is used before"),
        (lambda: graph([("Add", ["x", "nowhere"], ["y"])]), "`nowhere` is used before"),
        (lambda: graph([("Frobnicate", ["x"], ["y"])]), "ONNX Runtime cannot run the file"),
        (lambda: graph([("Relu", ["x"], ["y"])], shape=(2**40, 2**30)), "too large to run"),
        (lambda: graph([("Relu", ["x"], ["y"])], shape=(1, -5)), "negative"),
        (lambda: graph([("Reshape", ["x", "s"], ["y"])], s=np.array([3, 3])), "ONNX Runtime cannot run the file"),
        (lambda: graph([("Relu", ["x"], ["y"])], shape=None), "does not say how many axes"),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_a_file_that_is_not_sound_gets_one_sentence(static, sentence):
    with pytest.raises(AnyshapeError, match=sentence) as caught:
        free(static(), {})
    assert "\n" not in str(caught.value)


def test_a_long_chain_is_no_trouble():
    nodes = [("Add", [f"v{k}" if k else "x", "x"], [f"v{k + 1}"]) for k in range(600)]
    result = free(graph(nodes, outputs=["v600"]), {"x": ("batch", None)})
    assert result.outputs == (("batch", "2"),)


def test_sizes_that_grow_and_grow_are_no_trouble():
    nodes = [("Transpose", ["x"], ["v0"]), *(("Relu", [f"v{k}"], [f"v{k + 1}"]) for k in range(3))]
    nodes += [("Reshape", ["v3", "s"], ["y"])]
    with pytest.raises(PinnedError):
        free(graph(nodes, shape=(3, 2), s=np.array([3, 2])), {"x": ("batch", None)})


# ---- names alone

HEAD = '<ir_version: 8, opset_import: ["" : 18, "ai.onnx.ml" : 3]>\n'
LINEAR = """
main (float[2, 3] x) => (int64[2] label, float[2, 2] scores) {
  label, scores = ai.onnx.ml.LinearClassifier<coefficients = [1.0, 2.0, 3.0, -1.0, 0.5, 2.0], intercepts = [0.1, 0.2],
    classlabels_ints = [0, 1], multi_class = 0, post_transform = "NONE">(x)
}"""


def renamed(shapes_at):
    model = ir.from_proto(onnx.parser.parse_model(HEAD + LINEAR))
    return with_outputs(named(model, {"x": ("batch", None)}, {"batch": 2}), shapes_at)


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (lambda n: n, "batch"),
        (lambda n: 4 * n, "4*batch"),
        (lambda n: n + 1, "batch + 1"),
        (lambda n: 2 * n - 1, "2*batch - 1"),
        (lambda n: 7, "7"),
        (lambda n: n * n, None),
    ],
)
def test_an_axis_is_labelled_by_what_runs_show(size, said):
    made = renamed(lambda sizes: [(size(sizes["batch"]),), (size(sizes["batch"]), 2)])
    assert made.outputs == ((said,), (said, "2"))


def test_operators_that_nobody_knows_are_freed_where_nothing_pins_them(tmp_path):
    onnx.save(onnx.parser.parse_model(HEAD + LINEAR), tmp_path / "static.onnx")
    result = anyshape.make_dynamic(tmp_path / "static.onnx", {"x": "batch 3"})
    assert [port.axes for port in result.outputs] == [("batch",), ("batch", 2)]
    assert result.verification.how == {"batch": "1 to 5 (5 sizes), sample by sample"}


def test_the_file_itself_is_left_as_it_is():
    model = ir.from_proto(onnx.parser.parse_model(HEAD + LINEAR))
    named(model, {"x": ("batch", None)}, {"batch": 2})
    assert list(model.graph.inputs[0].shape) == [2, 3]
    assert list(model.graph.outputs[1].shape) == [2, 2]
