"""Graphs of the same make are laid side by side; everything but constants must be the same."""

from __future__ import annotations

import onnx.parser
import onnx_ir as ir
import pytest

from anyshape.conversion.lifting.alignment import DifferentError, align

HEAD = '<ir_version: 9, opset_import: ["" : 18]>\n'
VIEW = """
main (float[{n}, 4] x) => (float[{n}, 2, 2] y) <int64[3] target = {{{n}, 2, 2}}, float[1] one = {{1}}> {{
  a = Add(x, one)
  y = Reshape(a, target)
}}"""


def model(text):
    return ir.from_proto(onnx.parser.parse_model(HEAD + text))


def test_only_the_constant_that_moves_is_named():
    models = [model(VIEW.format(n=n)) for n in (3, 5, 8)]
    (moved,) = align(models).moved
    assert (moved.node, moved.place) == (models[0].graph[1], 1)
    assert [seen.tolist() for seen in moved.seen] == [[3, 2, 2], [5, 2, 2], [8, 2, 2]]


def test_sizes_of_inner_values_are_collected():
    assert list(align([model(VIEW.format(n=n)) for n in (3, 5, 8)]).sizes) == [(3, 5, 8)]


def test_one_constant_for_two_uses_may_be_two_elsewhere():
    shared = "main (float[4] x) => (float[2, 2] y) <int64[2] a = {2, 2}> { b = Reshape(x, a) y = Reshape(b, a) }"
    apart = """main (float[6] x) => (float[2, 3] y) <int64[2] a = {3, 2}, int64[2] c = {2, 3}> {
      b = Reshape(x, a) y = Reshape(b, c) }"""
    moved = align([model(shared), model(apart)]).moved
    assert [one.seen[1].tolist() for one in moved] == [[3, 2], [2, 3]]


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ("{ y = Relu(x) }", "{ a = Relu(x) y = Neg(a) }", "the nodes differ from size to size: 1, 2"),
        ("{ y = Relu(x) }", "{ y = Neg(x) }", "the operators differ from size to size: Relu, Neg"),
        ("{ y = Softmax<axis = 0>(x) }", "{ y = Softmax<axis = 1>(x) }", "`axis` of Softmax follows the sizes"),
        ("{ a = Neg(x) y = Add(x, a) }", "{ a = Neg(x) y = Add(a, x) }", "an input of Add comes from another node"),
        ("{ a = Neg(x) y = Add(x, a) }", "<float[1] w = {1}> { a = Neg(x) y = Add(x, w) }", "comes from another node"),
        ("<float[1] w = {1}> { y = Add(w, x) }", "{ y = Add(x, x) }", "is a constant at others"),
    ],
)
def test_graphs_that_differ_are_refused(one, other, said):
    head = "main (float[3, 4] x) => (float[3, 4] y) "
    with pytest.raises(DifferentError, match=said):
        align([model(head + one), model(head + other)])
