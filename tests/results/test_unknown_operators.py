"""Operators that ONNX Runtime does not have: each with its line, and with what the user would write."""

from __future__ import annotations

import onnx
from onnx import TensorProto, helper

from anyshape.results.unknown_operators import not_loaded, unknown_operators
from anyshape.runtime.custom_ops import CustomOps, UnknownOperator
from anyshape.runtime.session import RuntimeFailureError
from anyshape.source.spans import Span

HOME = Span("model.onnx", 1)


def _file(operator: str, domain: str) -> onnx.ModelProto:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"]) for name in "xy")
    graph = helper.make_graph([helper.make_node(operator, ["x"], ["y"], domain=domain)], "g", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid("my", 1)])


def test_an_operator_is_told_at_its_line_with_the_function_to_write() -> None:
    span = Span("net.py", 7)
    first, second = unknown_operators(
        [UnknownOperator("my::Norm", ("x", "eps=1e-05"), span), UnknownOperator("my::Other", (), None)], HOME
    )
    assert (first.rule, first.message, first.span) == ("unsupported-op", "ONNX Runtime has no `my::Norm`", span)
    assert "def norm(x, eps=1e-05):" in first.helps[0]
    assert "custom_ops={'my::Norm': norm}" in first.helps[0]
    assert first.helps[-1] == "or write the file without a check: unchecked=['my::Norm']"
    assert second.span == HOME


def test_a_check_cannot_do_without_the_operator() -> None:
    (finding,) = unknown_operators([UnknownOperator("my::Norm", (), None)], HOME, "check")
    assert not any("unchecked" in one for one in finding.helps)


def test_a_file_that_is_not_loaded_names_its_operators_else_what_the_runtime_says() -> None:
    failure = RuntimeFailureError("it says no")
    (unknown,) = not_loaded(failure, _file("Norm", "my"), CustomOps(), HOME)
    assert (unknown.rule, unknown.message) == ("unsupported-op", "ONNX Runtime has no `my::Norm`")
    (other,) = not_loaded(failure, _file("Relu", ""), CustomOps(), HOME)
    assert (other.rule, other.message) == ("runtime-error", "ONNX Runtime does not load the file: it says no")
