"""Small models with branches, exported and run on both sides."""

from __future__ import annotations

from pathlib import Path

import onnx
from torch import Tensor, nn

import anyshape
from tests.running import is_right


def ifs_of(path: Path) -> int:
    return sum(node.op_type == "If" for node in onnx.load(path).graph.node)


def checked(model: nn.Module, path: Path, example: Tensor, dims: str, *others: Tensor) -> anyshape.Result:
    result = anyshape.export(model, (example,), path, dims={"x": dims}, quick=True)
    assert all(is_right(path, model, (other,)) for other in (example, *others))
    return result
