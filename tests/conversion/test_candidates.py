"""The job that strategies are given, and the names that their candidates get."""

from __future__ import annotations

import onnx_ir as ir
import pytest
import torch
from torch import Tensor, nn

from anyshape.conversion.candidates import Candidate, give_names, make_job
from tests.surveys import survey_of


class Scaled(nn.Module):
    def forward(self, x: Tensor, scale: float) -> Tensor:
        return x * scale


def test_a_float_that_is_an_input_is_a_tensor_for_the_trace() -> None:
    job = make_job(survey_of(Scaled(), (torch.randn(3, 4), 0.5), {"x": "n 4", "scale": ""}))
    assert job.names == ("x", "scale")
    assert isinstance(dict(job.leaves)["scale"], torch.Tensor)


def test_values_at_other_sizes_are_those_of_a_valid_call() -> None:
    job = make_job(survey_of(nn.Linear(4, 2), (torch.randn(3, 4),), {"input": "n 4"}))
    values = job.values_at({"n": 7})
    assert values is not None
    assert values[0].shape == (7, 4)


def test_sizes_that_stand_for_all_lie_around_those_of_the_call_and_around_constants() -> None:
    survey = survey_of(nn.Linear(4, 2), (torch.randn(3, 4),), {"input": "n 4"})
    sizes = [one["n"] for one in make_job(survey, constants=[1000]).spread()]
    assert {survey.traced["n"], 4, 5, 999, 1000, 1001} <= set(sizes)


def test_a_candidate_gets_the_users_names_and_dims() -> None:
    survey = survey_of(nn.ReLU(), (torch.randn(3, 4),), {"input": "n 4"})
    x = ir.Value(name="arg0", type=ir.TensorType(ir.DataType.FLOAT), shape=ir.Shape([3, 4]))
    node = ir.node("Relu", [x])
    model = ir.Model(ir.Graph([x], node.outputs, nodes=[node], opset_imports={"": 20}), ir_version=10)
    give_names(survey, Candidate(model, 20))
    assert [value.name for value in model.graph.inputs] == ["input"]
    assert str(model.graph.inputs[0].shape) == "[n,4]"
    assert [value.name for value in model.graph.outputs] == ["output"]


@pytest.mark.parametrize(("asked", "ir_version"), [(23, 11), (11, 6)])
def test_what_a_way_wrote_in_another_opset_gets_the_one_that_was_asked_for(asked: int, ir_version: int) -> None:
    survey = survey_of(nn.Linear(4, 4), (torch.randn(3, 4),), {"input": "n 4"}, opset=asked, opset_is_fixed=True)
    x = ir.Value(name="input_0", type=ir.TensorType(ir.DataType.FLOAT))
    node = ir.node("Relu", [x])
    model = ir.Model(ir.Graph([x], node.outputs, nodes=[node], opset_imports={"": 20}), ir_version=10)
    give_names(survey, Candidate(model, 20))
    assert (model.opset_imports[""], model.ir_version) == (asked, ir_version)
