"""Work that a program does not need is left out; whatever needs it is right all the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir
import pytest
import torch
import torch.nn.functional as F
from onnxscript.optimizer import optimize_ir
from onnxscript.rewriter import _rewrite_rule
from torch import Tensor, nn

import anyshape
from anyshape.conversion.speed.stages_left_out import rules_tried_at_their_ends
from tests.conversion.functions import Of, exported, wrong_sizes
from tests.conversion.speed.one_tensor import DIMS, SIZES, make
from tests.running import is_right
from tests.torchkit.hiding import hide

# ---- stages


class Block(nn.Module):
    """What most networks are made of, with the writes that are usual in them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Conv1d(4, 4, 3, padding=1), nn.Conv1d(4, 4, 1)
        self.norm, self.activation = nn.BatchNorm1d(4), nn.ReLU(inplace=True)
        self.up = nn.ConvTranspose1d(4, 2, 2, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        out = self.activation(self.norm(self.first(x)))
        out += self.second(x)
        return self.up(out).to(torch.float64).square()


def test_usual_layers_and_their_writes_are_translated_as_traced(taken_apart: list[int], tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, path = Block().eval(), tmp_path / "model.onnx"
    anyshape.export(model, make(2, 5), path, dims={"x": DIMS[0]}, quick=True)
    assert not taken_apart
    assert all(is_right(path, model, make(**sizes)) for sizes in SIZES)


def test_a_stage_that_torch_has_moved_is_run(
    taken_apart: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    passes = "torch.onnx._internal.exporter._fx_passes"
    hide(monkeypatch, f"{passes}.decompose_with_registry", f"{passes}.insert_type_promotion_nodes")
    path = tmp_path / "model.onnx"
    anyshape.export(Of(torch.relu), make(2, 5), path, dims={"tensors.0": DIMS[0]}, quick=True)
    assert taken_apart


NORMS = [
    nn.BatchNorm1d(4), nn.BatchNorm1d(4, affine=False), nn.BatchNorm1d(4, track_running_stats=False),
    nn.BatchNorm1d(4, affine=False, track_running_stats=False), nn.ConvTranspose1d(4, 6, 3, 2, 1, 1, groups=2),
]  # fmt: skip


@pytest.mark.parametrize("layer", NORMS, ids=str)
def test_layers_made_of_others_keep_their_options(layer: nn.Module, taken_apart: list[int], tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    for parameter in layer.parameters():
        nn.init.normal_(parameter, generator=torch.Generator().manual_seed(0))
    layer = Of(layer.eval())
    exported(layer, make, DIMS, {"batch": 2, "length": 5}, path)
    assert not taken_apart
    assert not wrong_sizes(layer, make, SIZES[1:], path)


LOGIC: dict[str, Callable[..., Any]] = {
    "and": lambda x: (x > 0) & (x < 1),
    "or": lambda x: (x > 1) | (x < 0),
    "xor": lambda x: (x > 1) ^ (x < 1.5),
    "bits": lambda x: (x * 9).long() & 5,
    "nothing at all": lambda x: F.dropout(x, 0.5, training=False),
    "one result twice": lambda x: (2 * x, F.dropout(2 * x, 0.5, training=False), x + 1),
    "like another": lambda x: (x > 0).type_as(x) + (x > 0).to(x),
    "shaped like another": lambda x: x.flatten().view_as(x) + x.flatten().reshape_as(x),
}


@pytest.mark.parametrize("name", LOGIC)
def test_short_forms_are_translated_as_traced(name: str, taken_apart: list[int], tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    exported(LOGIC[name], make, DIMS, {"batch": 2, "length": 5}, path)
    assert not taken_apart
    assert not wrong_sizes(LOGIC[name], make, SIZES, path)


# ---- rules: tried where they can match, they find what they find when they are tried everywhere

TEXTS = {
    "two slices of one value": """
        main (float[n, 8] x) => (float[n, 4] y, float[n, 4] z)
        <int64[1] zero = {0}, int64[1] four = {4}, int64[1] eight = {8}, int64[1] last = {1}> {
          y = Slice(x, zero, four, last)
          z = Slice(x, four, eight, last)
        }""",
    "slices of two values": """
        main (float[n, 8] x, float[n, 8] w) => (float[n, 4] y, float[n, 4] z)
        <int64[1] zero = {0}, int64[1] four = {4}, int64[1] eight = {8}, int64[1] last = {1}> {
          y = Slice(x, zero, four, last)
          z = Slice(w, four, eight, last)
        }""",
    "transposes that cancel": """
        main (float[n, 8] x) => (float[n, 8] y) {
          z = Transpose<perm = [1, 0]>(x)
          w = Transpose<perm = [1, 0]>(z)
          y = Relu(w)
        }""",
}


def optimized(text: str) -> list[str]:
    model = ir.from_proto(onnx.parser.parse_model('<ir_version: 9, opset_import: ["" : 20]>' + text))
    optimize_ir(model)
    return [node.op_type for node in model.graph]


@pytest.mark.parametrize("name", TEXTS)
def test_the_graph_is_the_same(name: str) -> None:
    with rules_tried_at_their_ends():
        found = optimized(TEXTS[name])
    assert found == optimized(TEXTS[name])


def test_slices_of_two_values_are_not_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    original = _rewrite_rule.RewriteRule.try_rewrite

    def try_rewrite(rule, model, graph, node, **how):
        tried.append(f"{rule.name} at {node.op_type}")
        return original(rule, model, graph, node, **how)

    monkeypatch.setattr(_rewrite_rule.RewriteRule, "try_rewrite", try_rewrite)
    with rules_tried_at_their_ends():
        optimized(TEXTS["slices of two values"])
    assert "SlicesSplit at Slice" not in tried
    with rules_tried_at_their_ends():
        optimized(TEXTS["two slices of one value"])
    assert "SlicesSplit at Slice" in tried


def test_a_rule_that_has_moved_its_pattern_is_tried_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anyshape.conversion.speed.stages_left_out._ends_of_pattern", lambda _rule: None)
    monkeypatch.setattr("anyshape.conversion.speed.stages_left_out._KEPT", "_another_name")
    with rules_tried_at_their_ends():
        assert optimized(TEXTS["transposes that cancel"]) == ["Relu"]
