"""What runs show, and which formulas may be read off them."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import sympy

from anyshape.costs.observed_shapes import ObservedFile, ShapeEvidence, chosen_sizes
from anyshape.onnxfile.interface import read_interface
from anyshape.runtime.made_up_inputs import Calls, axes_by_input
from anyshape.sizes.conditions import parse_where
from anyshape.sizes.notation import SizeRange, parse_expression
from tests.costs.files import write

A, B = sympy.symbols("a b", integer=True, positive=True)
RANGES = {"a": SizeRange(), "b": SizeRange()}


def _file(folder: Path, text: str, **numbers: str) -> ObservedFile:
    path = write(folder, text)
    model = onnx.load(path)
    for node in model.graph.node:
        node.name = node.output[0]
    onnx.save(model, path)
    interface = read_interface(model)
    calls = Calls(axes_by_input(interface.inputs), interface, 0)
    made = {node.name: list(node.output) for node in model.graph.node}
    return ObservedFile(path, made, calls, {name: parse_expression(text) for name, text in numbers.items()})


def _evidence(file: ObservedFile) -> ShapeEvidence:
    return ShapeEvidence(file, {"a": A, "b": B}, RANGES, chosen_sizes(RANGES, (), has_contract=True))


def test_the_shapes_of_all_results_are_seen(tmp_path: Path) -> None:
    file = _file(tmp_path, "(float[a, b] x) => (float y) { t = Transpose (x) y = MatMul (x, t) }")
    assert file.at({"a": 2, "b": 5}) == {"x": (2, 5), "t": (5, 2), "y": (2, 2)}


def test_an_input_that_is_a_size_is_given_that_size(tmp_path: Path) -> None:
    text = (
        "(float[a, b] x, int64 n) => (float y) { o = Constant <value = int64[1] {0}> () u = Unsqueeze (n, o) "
        "y = ConstantOfShape (u) }"
    )
    file = _file(tmp_path, text, n="a*b")
    found = file.at({"a": 2, "b": 5})
    assert found is not None
    assert found["y"] == (10,)


def test_what_does_not_run_shows_nothing(tmp_path: Path) -> None:
    file = _file(tmp_path, "(float[a, 3] x, float[b, 3] z) => (float y) { y = Add (x, z) }")
    assert file.at({"a": 2, "b": 5}) is None
    assert _evidence(file).held_at == [{"a": 1, "b": 1}, {"a": 8, "b": 8}, {"a": 32, "b": 32}]


def test_sizes_are_apart_and_keep_what_is_declared() -> None:
    where = parse_where(["a >= 2 * b"], RANGES)
    chosen = list(chosen_sizes({"a": SizeRange(), "b": SizeRange(4, 64, 4)}, where, has_contract=True))
    assert all(sizes["a"] >= 2 * sizes["b"] and sizes["b"] % 4 == 0 for sizes in chosen)
    assert len(chosen) > 3
    assert next(chosen_sizes(RANGES, (), has_contract=False)) == {"a": 3, "b": 5}


@pytest.mark.parametrize(
    ("shape", "holds"),
    [((A, B), True), ((A, B + 0 * A), True), ((B, A), False), ((A,), False), ((A, sympy.Max(B, 4)), False)],
)
def test_a_formula_holds_or_it_does_not(shape: tuple[sympy.Basic, ...], *, holds: bool, tmp_path: Path) -> None:
    evidence = _evidence(_file(tmp_path, "(float[a, b] x) => (float y) { y = Relu (x) }"))
    assert evidence.holds("y", shape) is holds
    assert evidence.holds("unseen", shape) is None


def test_a_formula_is_fitted_where_only_sizes_matter(tmp_path: Path) -> None:
    text = "(float[a, b] x) => (float y) { y = Concat <axis = 1> (x, x) n = NonZero (x) }"
    evidence = _evidence(_file(tmp_path, text))
    assert evidence.fitted_shape("y") == (A, 2 * B)
    assert evidence.fitted_shape("unseen") is None


def test_a_formula_that_fails_where_a_dim_is_one_is_none(tmp_path: Path) -> None:
    evidence = _evidence(_file(tmp_path, "(float[a, 1, b] x) => (float y) { y = Squeeze (x) }"))
    evidence.held_at.remove({"a": 1, "b": 1})
    assert evidence.fitted_shape("y") is None
