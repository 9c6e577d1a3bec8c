"""Resizing as torch's CPU kernel computes it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from anyshape.conversion.operators.resize import mark_layouts
from tests.conversion.functions import Of, exported, image, wrong_sizes, wrong_sizes_of

FUNCTIONS = {
    "antialiased": lambda x: F.interpolate(x, scale_factor=(0.7, 0.6), mode="bicubic", antialias=True),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_resizing_by_factors(name: str, tmp_path: Path) -> None:
    assert wrong_sizes_of(FUNCTIONS[name], image, tmp_path / "m.onnx") == []


SIGNALS = {
    "by a factor": lambda x: F.interpolate(x, scale_factor=1.7, mode="linear"),
    "to a size": lambda x: F.interpolate(x, size=5, mode="linear", align_corners=True),
}


@pytest.mark.parametrize("name", SIGNALS)
def test_linear_resizing_of_one_axis(name: str, tmp_path: Path) -> None:
    signal = lambda b, t: (torch.randn(b, 2, t),)  # noqa: E731
    path = tmp_path / "m.onnx"
    exported(SIGNALS[name], signal, ["b 2 t"], {"b": 2, "t": 6}, path)
    assert wrong_sizes(SIGNALS[name], signal, [{"b": 1, "t": 2}, {"b": 3, "t": 11}], path) == []


def test_channels_that_lie_last_are_marked() -> None:
    def resized(x: torch.Tensor) -> torch.Tensor:
        return F.interpolate(x.to(memory_format=torch.channels_last), size=(3, 1), mode="bilinear", antialias=True)

    program = torch.export.export(Of(resized), (torch.randn(2, 3, 6, 6),)).run_decompositions({})
    mark_layouts(program.graph_module)
    marked = [node for node in program.graph.nodes if node.kwargs.get("from_channels_last")]
    assert [node.target.name() for node in marked] == ["aten::_upsample_bilinear2d_aa.vec"]


@pytest.mark.parametrize("align_corners", [False, True])
def test_a_grid_of_any_size(align_corners: bool, tmp_path: Path) -> None:
    def grid(theta: torch.Tensor, image: torch.Tensor) -> torch.Tensor:
        return F.affine_grid(theta, list(image.shape), align_corners=align_corners)

    make = lambda b, h, w: (torch.randn(b, 2, 3), torch.zeros(b, 1, h, w))  # noqa: E731
    path = tmp_path / "m.onnx"
    exported(grid, make, ["b 2 3", "b 1 h w"], {"b": 2, "h": 4, "w": 5}, path)
    assert wrong_sizes(grid, make, [{"b": 1, "h": 2, "w": 9}, {"b": 3, "h": 7, "w": 2}], path) == []
