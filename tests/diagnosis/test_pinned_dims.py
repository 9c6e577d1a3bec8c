"""Every expression that makes a size a number, each once, with an edit that was tried."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from anyshape.diagnosis.pinned_dims import Diagnosis
from anyshape.results.finding import Finding
from tests.surveys import survey_of


class TwoLines(nn.Module):
    """The second number shows only once the first is a size."""

    def forward(self, x: Tensor) -> Tensor:
        y = x.view(3, 8)
        return y + torch.zeros(3, 8)


class Multiple(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.view(-1, 2, 4)


class Head(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x)


def _found(model: nn.Module, x: Tensor, dims: str) -> list[Finding]:
    return Diagnosis(survey_of(model, (x,), {"x": dims})).findings()


def test_a_number_hides_those_behind_it_and_all_are_told() -> None:
    first, second = _found(TwoLines(), torch.randn(3, 2, 4), "n 2 4")
    assert [one.dims for one in (first, second)] == [("n",), ("n",)]
    assert second.span.line == first.span.line + 1
    assert first.edit is not None
    assert second.edit is not None
    assert {change.new for change in second.edit.changes} == {"x.new_zeros", "x.shape[0]"}
    assert first.edit.title.endswith(f"together with line {second.span.line}")
    assert first.breaks_at == {"n": 1}


def test_the_architecture_has_a_way_out_and_no_edit() -> None:
    (found,) = _found(Head(), torch.randn(3, 6), "n features")
    assert (found.dims, found.edit) == (("features",), None)
    assert "the architecture fixes the size: `linear` was made for 6 features" in found.notes
    assert found.helps[0].startswith("pool to a fixed size in front of `linear`")


def test_a_limit_is_no_pin() -> None:
    assert [one for one in _found(Multiple(), torch.randn(4, 6), "n 6") if one.level == "error"] == []
