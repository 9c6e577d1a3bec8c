"""What is known before the first strategy runs."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import anyshape
from anyshape.model.survey import model_constants
from tests.surveys import survey_of


def test_traced_sizes_differ_from_each_other_from_one_and_from_the_models_own() -> None:
    survey = survey_of(nn.Linear(4, 5), (torch.randn(1, 4, 4),), {"input": "a b 4"})
    sizes = list(survey.traced.values())
    assert len(set(sizes)) == 2
    assert not set(sizes) & {1, 4, 5}
    assert survey.start == {"a": 1, "b": 4}


def test_lengths_of_weights_are_constants_of_the_model() -> None:
    assert model_constants(nn.Linear(4, 5)) == {4, 5}


class Reshaped(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.view(3, 4) * 2


def test_a_dim_that_cannot_vary_is_seen_before_any_trace() -> None:
    survey = survey_of(Reshaped(), (torch.randn(3, 4),), {"x": "n 4"})
    assert [pin.dim for pin in survey.boundaries.pins] == ["n"]
    assert survey.traced == survey.start == {"n": 3}


class Complex(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.complex(x, x)


def test_an_output_that_onnx_cannot_hold_is_one_sentence() -> None:
    with pytest.raises(anyshape.DeclarationError) as refused:
        survey_of(Complex(), (torch.randn(3),), {"x": "n"})
    assert str(refused.value) == (
        "output `output` is complex, ONNX outputs are real: return torch.view_as_real() of it"
    )
