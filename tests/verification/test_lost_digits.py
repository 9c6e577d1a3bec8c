"""A file whose kernels lose digits is told from one that computes something else."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import torch
from torch import Tensor, nn

import anyshape


class Spectrum(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.view_as_real(torch.fft.rfft(x))


FILE = """
<ir_version: 10, opset_import: ["" : 20]>
main (float[batch, n] x) => (float[batch, half, two] y) <int64[1] last = {2}, float scale = {%s}> {
    row = Unsqueeze(x, last)
    s = DFT<onesided = 1>(row)
    y = Mul(s, scale)
}
"""


@pytest.mark.parametrize(("scale", "is_told"), [("1.0", True), ("1.01", False)])
def test_digits_that_only_the_runtime_loses_are_told(tmp_path: Path, scale: str, is_told: bool) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(FILE % scale), path)
    x = torch.randn(2, 100, generator=torch.Generator().manual_seed(0))
    with pytest.raises(anyshape.ExportError) as caught:
        anyshape.check(path, Spectrum(), (x,), dims={"x": "batch n"}, at={"batch": 2, "n": 100})
    (finding,) = caught.value.result.findings
    told = [note for note in finding.notes if note.startswith("in float64 the file differs from PyTorch by ")]
    assert [note.endswith(": kernels of ONNX Runtime lose these digits") for note in told] == [True] * is_told


class PaddedPool(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.max_pool2d(nn.functional.pad(x, (1, 1, 1, 1)), 2)


POOL = """
<ir_version: 10, opset_import: ["" : 20]>
main (float[n, 1, h, 4] x) => (float[n, 1, a, b] y) <int64[8] pads = {0, 0, 1, 1, 0, 0, 1, 1}> {
    p = Pad(x, pads)
    y = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(p)
}
"""


def test_a_kernel_that_computes_something_else_loses_no_digits(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(onnx.parser.parse_model(POOL), path)
    x = -1 - torch.rand(2, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    with pytest.raises(anyshape.ExportError) as caught:
        anyshape.check(path, PaddedPool(), (x,), dims={"x": "n 1 h 4"}, at={"n": 2, "h": 4})
    (finding,) = caught.value.result.findings
    assert finding.rule == "wrong-values"
    assert not [note for note in finding.notes if "digits" in note]
