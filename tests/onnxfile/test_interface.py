from __future__ import annotations

import onnx
import onnx.parser
import pytest

from anyshape.onnxfile.interface import Interface, Port, broken_promise, read_interface, unused_inputs

HEAD = '<ir_version: 8, opset_import: ["" : 18]>\n'


def interface_of(signature, body="y = Identity(x)"):
    return read_interface(onnx.parser.parse_model(f"{HEAD} main {signature} {{ {body} }}"))


def port(name, *axes):
    return Port(name, "float32", axes)


def promise(inputs, outputs, shapes, results):
    return broken_promise(Interface(tuple(inputs), tuple(outputs)), shapes, results)


# ---- what a file declares


def test_numbers_names_and_unknown_axes_are_read():
    found = interface_of("(float[batch, 3, seq, ?] x, int64 n, bool[2] m) => (double[batch] y)")
    assert found.inputs == (
        Port("x", "float32", ("batch", 3, "seq", None)), Port("n", "int64", ()), Port("m", "bool", (2,))
    )  # fmt: skip
    assert found.outputs == (Port("y", "float64", ("batch",)),)


@pytest.mark.parametrize(
    ("axes", "text"),
    [(("batch", 3, None), "x: float32[batch, 3, ?]"), ((), "x: float32[]"), (None, "x: float32[...]")],
)
def test_a_port_is_written_as_it_is_declared(axes, text):
    assert str(Port("x", "float32", axes)) == text


def test_weights_that_are_listed_as_inputs_are_none():
    model = onnx.parser.parse_model(
        HEAD + "main (float[n] x, float[1] w) => (float[n] y) <float[1] w = {2}> { y = Mul(x, w) }"
    )
    assert [p.name for p in read_interface(model).inputs] == ["x"]


def test_an_output_without_a_shape_has_unknown_axes():
    model = onnx.parser.parse_model(HEAD + "main (float[n] x) => (float[n] y) { y = Identity(x) }")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    assert read_interface(model).outputs == (Port("y", "float32", None),)


def test_an_unknown_element_type_is_no_crash():
    model = onnx.parser.parse_model(HEAD + "main (float[n] x) => (float[n] y) { y = Identity(x) }")
    model.graph.input[0].type.tensor_type.elem_type = 999
    assert read_interface(model).inputs[0].dtype == "type 999"


def test_dims_are_the_names_on_inputs_and_in_their_expressions():
    inputs = (port("x", "batch", "past + seq"), port("y", "batch", "odd name!", 3, None), Port("z", "int64", None))
    assert Interface(inputs, (port("out", "other"),)).dims == ("batch", "past", "seq", "odd name!")


# ---- does a run keep it?


@pytest.mark.parametrize(
    ("results", "broken"),
    [
        ([(2, 8, 5)], None),
        ([(2, 8)], ("y", "declares 3 axes but has shape (2, 8)")),
        ([(2, 8, 6)], ("y", "declares 5 on axis 2 but has shape (2, 8, 6)")),
        ([(2, 7, 5)], ("y", "declares `past + seq` = 8 on axis 1 but has shape (2, 7, 5)")),
        ([(3, 8, 5)], ("y", "declares `batch` = 2 on axis 0 but has shape (3, 8, 5)")),
    ],
)
def test_an_output_that_breaks_its_declaration_is_named(results, broken):
    inputs = [port("m", "batch", "past + seq"), port("p", "batch", "past"), port("s", "seq")]
    shapes = {"m": (2, 8), "p": (2, 3), "s": (5,)}
    assert promise(inputs, [port("y", "batch", "past + seq", 5)], shapes, results) == broken


def test_one_name_is_one_size_among_inputs():
    inputs = [port("x", "batch"), port("y", "batch")]
    assert promise(inputs, [], {"x": (2,), "y": (3,)}, []) == ("y", "declares `batch` = 2 on axis 0 but has shape (3,)")


def test_an_expression_before_its_names_is_checked_too():
    inputs = [port("mask", "past + seq"), port("x", "past", "seq")]
    assert promise(inputs, [], {"mask": (9,), "x": (3, 5)}, []) == (
        "mask", "declares `past + seq` = 8 on axis 0 but has shape (9,)"
    )  # fmt: skip


def test_one_label_is_one_size_among_outputs():
    outputs = [port("a", "found", 4), port("b", "found")]
    assert promise([], outputs, {}, [(7, 4), (7,)]) is None
    assert promise([], outputs, {}, [(7, 4), (6,)]) == ("b", "declares `found` = 7 on axis 0 but has shape (6,)")


def test_names_that_are_no_expressions_are_labels():
    outputs = [port("a", "batch size"), port("b", "batch size")]
    assert promise([], outputs, {}, [(7,), (6,)]) == ("b", "declares `batch size` = 7 on axis 0 but has shape (6,)")


def test_unknown_axes_and_shapes_promise_nothing():
    assert promise([], [port("a", None, None), Port("b", "float32", None)], {}, [(1, 2), (3, 4, 5)]) is None


def test_an_expression_of_unknown_dims_or_that_divides_by_zero_promises_nothing():
    assert promise([port("x", "n")], [port("a", "m // n"), port("b", "8 // n")], {"x": (0,)}, [(3,), (4,)]) is None


def test_an_input_that_only_a_branch_looks_at_is_used() -> None:
    model = onnx.parser.parse_model("""
        <ir_version: 9, opset_import: ["" : 20]>
        g (bool c, float[n] x, float[n] inner, float[n] unused, float[n] straight) => (float[n] y, float[n] straight) {
            y = If (c) <
                then_branch = a () => (float[n] p) { p = Add (x, inner) },
                else_branch = b () => (float[n] q) { q = Identity (x) }
            >
        }
    """)
    assert unused_inputs(model) == ["unused"]
