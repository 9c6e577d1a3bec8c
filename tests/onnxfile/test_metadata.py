"""The file says which of ONNX Runtime's fusions to do without, where one would be slower."""

from __future__ import annotations

import json
from pathlib import Path

import onnxruntime
import torch
from torch import nn

import anyshape
from anyshape.onnxfile.metadata import module_of_scopes


class Layer(nn.Module):
    """A sum that is normalised behind it, or before it."""

    def __init__(self, *, norm_first: bool) -> None:
        super().__init__()
        self.linear, self.norm, self.norm_first = nn.Linear(8, 8), nn.LayerNorm(8), norm_first

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.linear(self.norm(x)) if self.norm_first else self.norm(x + self.linear(x))


def advice(path: Path) -> str | None:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.get_modelmeta().custom_metadata_map.get("anyshape.session")


def test_a_normalised_sum_is_better_not_fused(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    anyshape.export(Layer(norm_first=False), (torch.randn(2, 3, 8),), path, dims={"x": "batch seq 8"}, quick=True)
    told = json.loads(advice(path) or "")
    assert told == {"disabled_optimizers": ["SkipLayerNormFusion"]}
    onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"], **told)


def test_a_file_without_one_gives_no_advice(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    anyshape.export(Layer(norm_first=True), (torch.randn(2, 3, 8),), path, dims={"x": "batch seq 8"}, quick=True)
    assert advice(path) is None


def test_the_innermost_module_is_told_by_what_torch_writes() -> None:
    assert module_of_scopes("['', 'encoder', 'encoder.layer.0', 'linear_3']") == "encoder.layer.0"
    assert module_of_scopes("['linear_3']") == ""
    assert module_of_scopes("['_empty_nn_module_stack_from_metadata_hook', 'add']") == ""
    assert module_of_scopes("nothing of the kind(") == ""
