"""The walk through a graph, where it must not believe what it sees."""

from __future__ import annotations

import onnx.parser
import onnx_ir as ir
import sympy

from anyshape.costs.value_shapes import ShapeWalk

A, B = sympy.symbols("a b", integer=True, positive=True)


class Runs:
    """What runs would say: these formulas fit, and others do not hold."""

    def __init__(self, **fitted: tuple[sympy.Basic, ...]) -> None:
        self.fitted, self.asked = fitted, []

    def holds(self, name: str, shape: tuple[sympy.Basic, ...]) -> bool | None:
        return shape == self.fitted[name] if name in self.fitted else None

    def fitted_shape(self, name: str) -> tuple[sympy.Basic, ...] | None:
        self.asked.append(name)
        return self.fitted.get(name)


def _walked(text: str, runs: Runs | None = None) -> tuple[ShapeWalk, dict[str, ir.Value]]:
    head = '<ir_version: 9, opset_import: ["": 20, "other": 1]> main '
    model = ir.from_proto(onnx.parser.parse_model(head + text))
    walk = ShapeWalk(model, {"a": A, "b": B}, runs)
    for value in model.graph.inputs:
        walk.assign(value, tuple(sympy.Symbol(str(dim), integer=True, positive=True) for dim in value.shape or ()))
    walk.main(model.graph)
    return walk, {str(value.name): value for node in model.graph for value in node.outputs}


def test_a_formula_that_runs_contradict_is_read_off_them() -> None:
    runs = Runs(h=(A, A + B))
    walk, values = _walked("(float[a, b] x) => (float[n, m] y) { h = Relu (x) y = Exp (h) }", runs)
    assert walk.known_shape(values["y"]) == (A, A + B)
    assert walk.read == {values["h"]}


def test_nothing_is_read_off_runs_that_data_decide() -> None:
    runs = Runs(n=(A, B), z=(A, B))
    text = "(float[a, b] x) => (int64[n, m] y) { n = NonZero (x) y = Transpose (n) z = Shape (y) }"
    walk, values = _walked(text, runs)
    assert (walk.known_shape(values["n"]), walk.known_shape(values["y"]), runs.asked) == (None, None, [])


def test_a_stranger_s_operator_is_read_off_runs_unless_whole_numbers_go_in() -> None:
    runs = Runs(h=(A, B), k=(A, B))
    text = "(float[a, b] x, int64[a] n) => (float[n, m] y) { h = other.Own (x) k = other.Own (x, n) y = Exp (h) }"
    walk, values = _walked(text, runs)
    assert walk.known_shape(values["h"]) == (A, B)
    assert walk.known_shape(values["k"]) is None


def test_a_loop_that_grows_what_it_carries_leaves_that_open() -> None:
    body = "f (int64 i, bool c, float[n] v) => (bool d, float[m] o) { d = Identity (c) o = Concat <axis = 0> (v, v) }"
    text = (
        "(float[a] x, int64 n) => (float[k] y) { yes = Constant <value = bool {1}> () "
        f"y = Loop (n, yes, x) <body = {body}> }}"
    )
    walk, values = _walked(text)
    assert walk.known_shape(values["y"]) is None


def test_branches_that_data_choose_have_the_shape_that_both_have() -> None:
    text = (
        "(float[a, b] x, bool c) => (float[n, m] y) { y, z = If (c) <"
        "then_branch = t () => (float u, float v) { u = Exp (x) v = Concat <axis = 1> (x, x) }, "
        "else_branch = e () => (float p, float q) { p = Relu (x) q = Relu (x) }> }"
    )
    walk, values = _walked(text)
    assert walk.known_shape(values["y"]) == (A, B)
    assert walk.known_shape(values["z"]) is None
