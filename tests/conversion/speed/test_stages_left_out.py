"""Rules are tried where they can match, and find there what they find when they are tried everywhere."""

from __future__ import annotations

import onnx
import onnx_ir as ir
import pytest
from onnxscript.optimizer import optimize_ir
from onnxscript.rewriter import _rewrite_rule

from anyshape.conversion.speed.stages_left_out import rules_tried_at_their_ends

TEXTS = {
    "two slices of one value": """
        main (float[n, 8] x) => (float[n, 4] y, float[n, 4] z)
        <int64[1] zero = {0}, int64[1] four = {4}, int64[1] eight = {8}, int64[1] last = {1}> {
          y = Slice(x, zero, four, last)
          z = Slice(x, four, eight, last)
        }""",
    "slices of two values": """
        main (float[n, 8] x, float[n, 8] w) => (float[n, 4] y, float[n, 4] z)
        <int64[1] zero = {0}, int64[1] four = {4}, int64[1] eight = {8}, int64[1] last = {1}> {
          y = Slice(x, zero, four, last)
          z = Slice(w, four, eight, last)
        }""",
    "transposes that cancel": """
        main (float[n, 8] x) => (float[n, 8] y) {
          z = Transpose<perm = [1, 0]>(x)
          w = Transpose<perm = [1, 0]>(z)
          y = Relu(w)
        }""",
}


def optimized(text: str) -> list[str]:
    model = ir.from_proto(onnx.parser.parse_model('<ir_version: 9, opset_import: ["" : 20]>' + text))
    optimize_ir(model)
    return [node.op_type for node in model.graph]


@pytest.mark.parametrize("name", TEXTS)
def test_the_graph_is_the_same(name: str) -> None:
    with rules_tried_at_their_ends():
        found = optimized(TEXTS[name])
    assert found == optimized(TEXTS[name])


def test_slices_of_two_values_are_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    original = _rewrite_rule.RewriteRule.try_rewrite

    def try_rewrite(rule, model, graph, node, **how):
        tried.append(f"{rule.name} at {node.op_type}")
        return original(rule, model, graph, node, **how)

    monkeypatch.setattr(_rewrite_rule.RewriteRule, "try_rewrite", try_rewrite)
    with rules_tried_at_their_ends():
        optimized(TEXTS["slices of two values"])
    assert "SlicesSplit at Slice" not in tried
    with rules_tried_at_their_ends():
        optimized(TEXTS["two slices of one value"])
    assert "SlicesSplit at Slice" in tried


def test_a_rule_that_has_moved_its_pattern_is_tried_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anyshape.conversion.speed.stages_left_out._ends_of_pattern", lambda _rule: None)
    monkeypatch.setattr("anyshape.conversion.speed.stages_left_out._KEPT", "_another_name")
    with rules_tried_at_their_ends():
        assert optimized(TEXTS["transposes that cancel"]) == ["Relu"]
