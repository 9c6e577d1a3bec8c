"""What is asked of every model, also of one whose file is right."""

from __future__ import annotations

import pytest
import sympy
import torch
from torch import Tensor, nn

import anyshape
from anyshape.diagnosis.doubts import doubts, pinned
from anyshape.results.attempt import Guard
from anyshape.sizes.notation import parse_condition
from tests.surveys import survey_of


class Mean(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.sum(dim=1) / 5


class Mixing(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.softmax(0)


class Folded(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.reshape(3, -1)


class Pinned(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + torch.zeros(3, 5)


DIMS = {"x": "batch seq"}


def _guards(*texts: str) -> list[Guard]:
    return [Guard(sympy.true, {}, parse_condition(text), None) for text in texts]


@pytest.mark.parametrize(
    ("model", "rules"),
    [(Mean(), [("frozen-value", ("seq",))]), (Mixing(), [("mixed-batch", ("batch",))]), (nn.Tanh(), [])],
)
def test_doubts_are_warnings_about_what_pytorch_does_too(
    model: nn.Module, rules: list[tuple[str, tuple[str, ...]]]
) -> None:
    dims = {"input": "batch seq"} if isinstance(model, nn.Tanh) else DIMS
    found = doubts(survey_of(model, (torch.randn(3, 5),), dims))
    assert [(one.rule, one.dims) for one in found] == rules
    assert all(one.level == "warning" for one in found)


def test_an_axis_that_is_split_by_the_example_s_size_is_looked_into() -> None:
    found = doubts(survey_of(Folded(), (torch.randn(3, 4),), {"x": "batch 4"}), _guards("batch * 4 % 3 == 0"))
    assert [one.rule for one in found] == ["mixed-batch"]


class Rows(nn.Module):
    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x.reshape(y.shape[0], -1) + y


def test_sizes_that_the_user_excluded_raise_no_doubt() -> None:
    call, dims = (torch.randn(3, 4), torch.randn(3, 4)), {"x": "batch 4", "y": "bs 4"}
    assert anyshape.export(Rows(), call, dims=dims, where=["bs == batch"], quick=True).verdict == "checked"
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.export(Rows(), call, dims=dims, quick=True)
    (finding,) = refused.value.result.findings
    assert finding.helps == (
        'did you mean one dim? give both axes the name `batch`, or where=["bs == batch"]: with it the file is right',
    )


def test_without_dims_there_is_nothing_to_doubt() -> None:
    assert doubts(survey_of(Mixing(), (torch.randn(3, 5),), {})) == []


def test_why_a_dim_is_pinned_is_told_with_an_edit() -> None:
    found = pinned(survey_of(Pinned(), (torch.randn(3, 5),), DIMS))
    assert [(one.rule, one.dims) for one in found] == [("pinned-dim", ("batch", "seq"))]
    assert found[0].edit is not None
    assert "x.new_zeros(x.shape[0], x.shape[1])" in found[0].edit.source
