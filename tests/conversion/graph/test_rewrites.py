"""A rewrite that goes wrong costs time, and no file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx_ir as ir
import pytest
import torch
from torch import nn

import anyshape
from anyshape.conversion.graph import rewrites
from anyshape.onnxfile.graph import first_input, insert, nodes_of, replace
from tests.conversion.graph.exported import operators
from tests.running import is_right


class Squashed(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x.reshape(x.shape[0], -1))


def squash_otherwise(graph: ir.Graph, _sizes: Any) -> None:
    for node in nodes_of(graph, "Tanh"):
        replace(node.outputs[0], insert(node, "Sigmoid", [first_input(node)], like=node.outputs[0]))


def stumble(_graph: ir.Graph, _sizes: Any) -> None:
    raise ValueError


@pytest.mark.parametrize(
    ("rewrite", "tries"),
    [(squash_otherwise, ["torch.export", "torch.export, not rewritten"]), (stumble, ["torch.export"])],
)
def test_the_file_is_written_as_it_was_translated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rewrite: Any, tries: list[str]
) -> None:
    monkeypatch.setattr(rewrites, "_REWRITES", (rewrite,))
    path = tmp_path / "model.onnx"
    result = anyshape.export(Squashed(), (torch.randn(2, 3, 4),), path, dims={"x": "batch seq 4"}, quick=True)
    assert [attempt.strategy for attempt in result.attempts] == tries
    assert operators(path)["Tanh"] == 1
    assert is_right(path, Squashed(), (torch.randn(1, 5, 4),))


def test_nothing_is_rewritten_where_the_user_does_not_want_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewrites, "_REWRITES", (squash_otherwise,))
    path = tmp_path / "model.onnx"
    result = anyshape.export(
        Squashed(), (torch.randn(2, 3, 4),), path, dims={"x": "batch seq 4"}, quick=True, optimize=False
    )
    assert [attempt.strategy for attempt in result.attempts] == ["torch.export"]
    assert operators(path)["Tanh"] == 1
