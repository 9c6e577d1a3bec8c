"""How an export ends: which finding is told, and what is refused although a file is right."""

from __future__ import annotations

from pathlib import Path

import onnx
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


class Summed(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.zeros_like(x).scatter_add(0, torch.zeros_like(x, dtype=torch.int64), x)


def test_a_kernel_that_is_lacking_in_float16_has_a_way_around_it_that_works(tmp_path: Path) -> None:
    x, dims = torch.rand(3, 4), {"x": "n 4"}
    with pytest.raises(anyshape.ExportError) as caught:
        anyshape.export(Summed(), x.half(), dims=dims, quick=True)
    (finding,) = caught.value.findings
    assert finding.helps == (
        "where ONNX Runtime lacks this in float16, export in float32 and convert the file: "
        "`convert_float_to_float16(..., op_block_list=[*DEFAULT_OP_BLOCK_LIST, 'ScatterElements'])` of "
        "onnxruntime.transformers.float16",
    )
    assert str(caught.value).count("MLFloat16") <= 3  # what several ways have in common is said once
    float16 = pytest.importorskip("onnxruntime.transformers.float16")
    anyshape.export(Summed(), x, tmp_path / "m.onnx", dims=dims, quick=True)
    blocked = [*float16.DEFAULT_OP_BLOCK_LIST, "ScatterElements"]
    half = float16.convert_float_to_float16(onnx.load(tmp_path / "m.onnx"), op_block_list=blocked)
    onnx.save(half, tmp_path / "h.onnx")
    anyshape.load(tmp_path / "h.onnx")(x.half().numpy())


class Apart(nn.Module):
    """No file has two ranks, and a batch of three or fewer is refused at the first sizes."""

    def forward(self, x: Tensor) -> Tensor:
        x = x[:, : x.shape[1] // 2 * 2]
        x = x * 2 if x.shape[0] * x.shape[1] > 1 else x
        return x.sum(0) if x.shape[0] > 3 else x


def test_a_refusal_tells_what_became_of_assumptions_that_no_run_needed() -> None:
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.export(Apart(), torch.randn(5, 8), dims={"x": "n m"}, sizes={"n": "1..80", "m": "2..9"}, quick=True)
    ends = {one.expression: one.end for one in refused.value.result.assumptions}
    assert ends == {"2 * n * (m // 2) > 1": "proved", "n > 3": "open"}
