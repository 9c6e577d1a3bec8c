"""What is written is what was judged: dims, contract, notes."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import torch
from torch import Tensor, nn

import anyshape
from anyshape.onnxfile.contract import read_contract
from anyshape.runtime import releases
from anyshape.runtime.releases import RELEASES, Release


class Halves(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x[: x.shape[0] // 2] * 2


def test_the_contract_holds_ranges_and_formulas(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    result = anyshape.export(Halves(), torch.randn(6), path, dims={"x": "n"}, sizes={"n": "2..64"}, quick=True)
    contract = read_contract(onnx.load(path))
    assert contract is not None
    assert {dim: str(sizes) for dim, sizes in contract.dims.items()} == {"n": "2..64"}
    assert contract.outputs == {"output": ("n // 2",)}
    assert contract.verdict == result.verdict == "checked"


class Moody(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.shape[0] in (2, 5, 7, 8, 11):
            raise RuntimeError("not today")
        return x * 2


def test_failures_of_pytorch_that_follow_no_rule_are_noted() -> None:
    result = anyshape.export(Moody(), torch.randn(3), dims={"x": "n"}, budget=5)
    (note,) = [note for note in result.notes if note.startswith("PyTorch fails at")]
    assert "by no rule that was found (RuntimeError: not today)" in note


def test_a_file_that_the_named_runtime_would_not_load_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that is known writes such a file: a release is made older than the table says."""
    older = {**RELEASES, (1, 20): Release("1.20", 21, 9)}
    monkeypatch.setattr(releases, "RELEASES", older)
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.export(
            nn.Linear(4, 4), torch.randn(3, 4), dims={"input": "n 4"}, target="onnxruntime==1.20", quick=True
        )
    (finding,) = refused.value.findings
    assert finding.message == "ONNX Runtime 1.20 does not load the file: it takes opset 21 and IR version 9"
    assert finding.notes == ("the file has opset 21 and IR version 10",)


def test_a_file_with_an_operator_that_the_named_runtime_lacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    older = {**RELEASES, (1, 20): Release("1.20", 21, 10, (("Gemm", 13), ("Relu", 22)))}
    monkeypatch.setattr(releases, "RELEASES", older)
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.export(
            nn.Linear(4, 4), torch.randn(3, 4), dims={"input": "n 4"}, target="onnxruntime==1.20", quick=True
        )
    (finding,) = refused.value.findings
    assert finding.message == "ONNX Runtime 1.20 has no kernel for `Gemm` of opset 21"
    result = anyshape.export(
        nn.ReLU(), torch.randn(3, 4), dims={"input": "n 4"}, target="onnxruntime==1.20", quick=True
    )
    assert result.opset == 21
