"""The table of rules: one for every operator that can pin a size."""

import onnx_ir as ir
import pytest

from anyshape.freeing.rules import broadcast, expand, index, products, reshape, rule_for, sequences, slices, subgraphs

FAMILIES = (broadcast, expand, index, products, reshape, sequences, slices, subgraphs)


def test_no_operator_has_two_rules():
    operators = [operator for family in FAMILIES for operator in family.RULES]
    assert len(operators) == len(set(operators))


@pytest.mark.parametrize("domain", ["", "ai.onnx"])
def test_an_operator_is_found_under_both_names_of_its_domain(domain):
    assert rule_for(ir.node("Reshape", [], domain=domain)) is reshape.RULES["Reshape"]


def test_an_operator_of_others_has_no_rule():
    assert rule_for(ir.node("Reshape", [], domain="com.microsoft")) is None
    assert rule_for(ir.node("Relu", [])) is None
