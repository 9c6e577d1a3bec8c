"""How an export ends: which finding is told, and what is refused although a file is right."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

import anyshape
from anyshape.results.attempt import Attempt, PinnedByTrace
from anyshape.stages.conclusion import most_telling


def test_what_a_repair_solves_is_no_cause() -> None:
    plain = Attempt("torch.export", "failed")
    repaired = Attempt("torch.export with repairs", "failed", pins=(PinnedByTrace("n", 3, None),))
    assert most_telling([plain, repaired]) is repaired
    assert most_telling([plain, Attempt("torch.export with repairs", "failed")]) is plain


class Table(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rows = nn.Parameter(torch.ones(8, 2))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.rows[: x.shape[0]]


def test_a_limit_inside_of_what_was_written_is_refused_and_a_limit_of_what_was_not_is_told() -> None:
    told = anyshape.export(Table(), torch.randn(3, 2), dims={"x": "n 2"}, quick=True)
    assert (told.verdict, told.limits) == ("checked", ("n <= 8",))
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.export(Table(), torch.randn(3, 2), dims={"x": "n 2"}, sizes={"n": "1..9"}, quick=True)
    assert [finding.rule for finding in refused.value.findings] == ["bounded-dim"]
    assert refused.value.result.verification.is_right


def test_where_the_user_allows_less_the_limit_is_written(tmp_path: object) -> None:
    result = anyshape.export(
        Table(), torch.randn(3, 2), dims={"x": "n 2"}, sizes={"n": "1..9"}, narrow=True, quick=True
    )
    assert result.verdict == "narrowed"
    assert result.given_up == ("n 1..8 instead of 1..9",)
