"""What is known before the first strategy runs."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

import anyshape
from anyshape.model.survey import blind_spots, model_constants, take_survey
from anyshape.sizes.notation import parse_conditions
from tests.surveys import survey_of


def test_traced_sizes_differ_from_each_other_from_one_and_from_the_models_own() -> None:
    survey = survey_of(nn.Linear(4, 5), (torch.randn(1, 4, 4),), {"input": "a b 4"})
    sizes = list(survey.traced.values())
    assert len(set(sizes)) == 2
    assert not set(sizes) & {1, 4, 5}
    assert survey.start == {"a": 1, "b": 4}


def test_sizes_that_were_declared_together_and_that_the_model_does_not_run_are_not_traced() -> None:
    class Contracted(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return torch.tensordot(x, y, 2)

    call = torch.randn(7, 3, 4), torch.randn(3, 4, 9)
    survey = survey_of(Contracted(), call, {"x": "a b c", "y": "d e f"})
    spec = replace(survey.request.spec, where=tuple(parse_conditions("f == b*d")))
    assert take_survey(replace(survey.request, spec=spec), survey.options).first.runs


def test_lengths_of_weights_are_constants_of_the_model() -> None:
    assert model_constants(nn.Linear(4, 5)) == {4, 5}


class Reshaped(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.view(3, 4) * 2


def test_a_dim_that_cannot_vary_is_seen_before_any_trace() -> None:
    survey = survey_of(Reshaped(), (torch.randn(3, 4),), {"x": "n 4"})
    assert [pin.dim for pin in survey.boundaries.pins] == ["n"]
    assert survey.traced == survey.start == {"n": 3}


class To(nn.Module):
    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype = dtype

    def forward(self, x: Tensor) -> Tensor:
        return x.to(self.dtype)


def test_an_output_that_onnx_cannot_hold_is_one_sentence() -> None:
    with pytest.raises(anyshape.DeclarationError) as refused:
        survey_of(To(torch.float8_e4m3fn), (torch.randn(3),), {"x": "n"})
    assert str(refused.value) == "output `output` is float8_e4m3fn, which numpy lacks: return it as float16"


def test_complex_numbers_are_noted_as_pairs() -> None:
    given = torch.complex(torch.randn(3), torch.randn(3))
    pairs = "pairs of real and imaginary parts, as torch.view_as_real"
    assert survey_of(To(torch.complex64), (given,), {"x": "n"}).notes == (
        f"`x` is complex, ONNX inputs are real: the file takes {pairs}(x)",
        f"output `output` is complex: the file gives {pairs}()",
    )


class Asking(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + x if torch.onnx.is_in_onnx_export() else x * 2


def test_a_model_that_asks_whether_it_is_exported_is_noted() -> None:
    (note,) = survey_of(Asking(), (torch.randn(3),), {"x": "n"}).notes
    place, said = note.split(" ", 1)
    assert place.endswith(f"test_survey.py:{Asking.forward.__code__.co_firstlineno + 1}")
    assert said == "asks is_in_onnx_export(): yes for the file, no for the model that it is compared with"


def test_weights_that_look_untrained_are_noted() -> None:
    torch.manual_seed(0)
    layers = nn.Sequential(*(nn.Linear(32, 32) for _ in range(4)))
    assert blind_spots(layers) == []
    for layer in layers:
        assert isinstance(layer, nn.Linear)
        nn.init.normal_(layer.weight, std=0.02)
        nn.init.zeros_(layer.bias)
    assert blind_spots(layers) == [
        "the weights look freshly initialised (standard deviation 0.02, biases zero): small errors may not show; "
        "check again with trained weights"
    ]
    result = anyshape.export(layers, torch.randn(3, 32), dims={"input": "n 32"}, quick=True)
    assert set(blind_spots(layers)) <= set(result.notes)
