"""All marks of a model become control flow, and names differ over all of its graphs."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import pytest
import torch

from anyshape.conversion.control_flow.lowering import lower_regions
from anyshape.conversion.control_flow.marks import RegionError
from tests.conversion.control_flow.lowering import Marked, all_operators, lowered, ops, translated

EXAMPLE = (torch.randn(2, 5, 4),)


def which(condition: Any) -> Any:
    return torch.sym_ite(condition, 1, 0)


def test_a_model_without_marks_is_left_as_it_is() -> None:
    made = translated(Marked(lambda x: torch.exp(x) + 1), EXAMPLE)
    before = [(node.name, node.op_type) for node in made.graph]
    lower_regions(made)
    assert [(node.name, node.op_type) for node in made.graph] == before


def test_names_are_unique_over_all_graphs() -> None:
    def marked(x: Any) -> Any:
        shared = torch.exp(x)
        first = ops.choose(which(x.size(1) > 6), shared.sum(1), torch.cos(x).sum(1), 1)
        second = ops.choose(which(x.size(1) > 3), shared.amax(1), torch.sin(x).amax(1), 2)
        return ops.choose(which(x.size(0) > 2), first, second, 0)

    made = lowered(Marked(marked), EXAMPLE)
    assert all_operators(made.graph)["Exp"] == 2
    nodes = list(ir.traversal.RecursiveGraphIterator(made.graph))
    names = [value.name for node in nodes for value in node.outputs]
    assert len(set(names)) == len(names)
    assert len({node.name for node in nodes}) == len(nodes)
    assert "anyshape" not in made.opset_imports


def test_a_mark_that_is_left_over_is_an_error() -> None:
    made = translated(Marked(lambda x: ops.loop_begin(x.size(1), [x], [], [], 0)[1] + 1), EXAMPLE)
    with pytest.raises(RegionError, match="LoopBegin is left"):
        lower_regions(made)
