"""The job that strategies are given, and the names that their candidates get."""

from __future__ import annotations

import onnx_ir as ir
import pytest
import torch
from torch import Tensor, nn

from anyshape.conversion.candidates import Candidate, choose_opset, give_names, make_job
from anyshape.errors import DeclarationError
from anyshape.runtime.session import newest_opset
from anyshape.torchkit.capture import newest_translated_opset
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


# ---- the opset

NEWEST = min(newest_opset(), newest_translated_opset())


@pytest.mark.parametrize(
    ("asked", "target", "opset"),
    [(None, None, NEWEST), (18, None, 18), (None, "onnxruntime==1.18", 21), (17, " onnxruntime >= 1.18.2 ", 17)],
)
def test_the_opset(asked: int | None, target: str | None, opset: int) -> None:
    assert choose_opset(asked, target) == min(opset, NEWEST)


@pytest.mark.parametrize(
    ("asked", "target", "sentence"),
    [
        (6, None, f"opset_version is 6, the installed ONNX Runtime takes 7 to {newest_opset()}"),
        ("18", None, f"opset_version is '18', the installed ONNX Runtime takes 7 to {newest_opset()}"),
        (22, "onnxruntime==1.18", "opset_version is 22, but target `onnxruntime==1.18` takes 21 at most"),
        (None, "tensorrt", "target is `tensorrt`: write `onnxruntime==1.18`"),
        (None, "onnxruntime==1.2", "target is `onnxruntime==1.2`: ONNX Runtime 1.12 is the oldest that is known"),
    ],
)
def test_what_cannot_be_is_refused(asked: int, target: str, sentence: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        choose_opset(asked, target)
    assert str(caught.value) == sentence
