"""Files that would eat a machine, made small: functions, nodes, axes, sizes and loops without end."""

from __future__ import annotations

import onnx
import onnx.helper
import onnx.parser

HEAD = '<ir_version: 10, opset_import: ["": 21, "own": 1]>\n'
OPSETS = [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid("own", 1)]


def text_model(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(HEAD + text)


def _with_functions(*bodies: tuple[str, list[str]]) -> onnx.ModelProto:
    """Functions of one value each that call others one after the other; the first is the file's only node."""
    model = text_model(f"main (float[2] x) => (float[2] y) {{ y = own.{bodies[0][0]}(x) }}")
    for name, called in bodies:
        nodes = [
            onnx.helper.make_node(
                one,
                [f"v{index}"],
                [f"v{index + 1}"],
                domain="" if one == "Neg" else "own",
            )
            for index, one in enumerate(called)
        ]
        model.functions.append(onnx.helper.make_function("own", name, ["v0"], [f"v{len(called)}"], nodes, OPSETS))
    return model


def deep_functions(depth: int, calls: int) -> onnx.ModelProto:
    """Each calls the next so many times; the last has as many nodes."""
    names = [f"f{level}" for level in range(depth)]
    return _with_functions(*((one, [below] * calls) for one, below in zip(names, [*names[1:], "Neg"], strict=True)))


def calling_itself(through: int) -> onnx.ModelProto:
    names = [f"f{level}" for level in range(through + 1)]
    return _with_functions(*((one, [below]) for one, below in zip(names, [*names[1:], "f0"], strict=True)))


def many_nodes(count: int) -> onnx.ModelProto:
    model = text_model("main (float[2] x) => (float[2] y) { y = Neg(x) }")
    node = onnx.helper.make_node("Neg", ["x"], ["y"])
    model.graph.node.extend([node] * (count - 1))
    return model


def many_axes(count: int, place: str) -> onnx.ModelProto:
    model = text_model("main (float[2] x) => (float[2] y) { y = Neg(x) }")
    if place == "initializer":
        model.graph.initializer.append(onnx.TensorProto(name="wide", dims=[1] * count, data_type=1, float_data=[1]))
    else:
        getattr(model.graph, place).append(onnx.helper.make_tensor_value_info("wide", 1, [1] * count))
    return model


def large_constant(dim: int | str) -> onnx.ModelProto:
    """Eight gigabytes of zeros, of a file of 200 bytes."""
    return text_model(
        f"main (float[{dim}] x) => (float[{dim}] y) <int64[1] s = {{2000000000}}> "
        "{ z = ConstantOfShape(s) k = ReduceMax<keepdims=0>(z) y = Add(x, k) }"
    )


def endless_loop(dim: int | str) -> onnx.ModelProto:
    values = f"float[{dim}]"
    return text_model(
        f"main ({values} x) => ({values} y) <int64 most = {{9223372036854775807}}, bool go = {{1}}> {{ y = Loop(most, "
        f"go, x) <body = b (int64 i, bool c, {values} v) => (bool d, {values} w) {{ d = Identity(c) w = Neg(v) }}> }}"
    )
