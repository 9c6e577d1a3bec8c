"""A program is translated with our operators in torch's table, which is torch's own again afterwards."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from anyshape.conversion import translation
from anyshape.conversion.operators.table import TRANSLATIONS
from anyshape.torchkit.private_names import lookup
from tests.torchkit.hiding import hide

BUILD = "torch.onnx._internal.exporter._registration.ONNXRegistry.from_torchlib"


OURS = "aten::masked_select"


class Written(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return (x * 2).relu_()


def _program(module: nn.Module) -> torch.export.ExportedProgram:
    rows = {0: torch.export.Dim.DYNAMIC}
    return torch.export.export(module, (torch.ones(3, 4),), dynamic_shapes=(rows,))


def test_a_program_becomes_a_model_and_says_what_was_replaced() -> None:
    found = translation.translate_program(_program(Written()), 20, {})
    assert found.model.opset_imports[""] == 20
    assert (found.inlined, found.forced_by) == ((), ())
    trapezoid = nn.Module()
    trapezoid.forward = lambda x: torch.trapezoid(x, dim=1)
    found = translation.translate_program(_program(trapezoid), 20, {})
    assert found.inlined == ("aten.trapezoid.dx",)


def test_what_cannot_be_translated_raises() -> None:
    module = nn.Module()
    module.forward = lambda x: torch.linalg.svdvals(x)
    with pytest.raises(Exception, match="svd"):
        translation.translate_program(_program(module), 20, {})


def test_which_operators_are_translated(monkeypatch: pytest.MonkeyPatch) -> None:
    assert translation.is_translated(torch.ops.aten.masked_select.default, 20)
    assert translation.is_translated(torch.ops.aten.relu.default, 20)
    assert not translation.is_translated(torch.ops.aten._linalg_svd.default, 20)
    hide(monkeypatch, BUILD)
    assert translation.is_translated(torch.ops.aten.masked_select.default, 20)
    assert not translation.is_translated(torch.ops.aten.relu.default, 20)


def test_our_operators_are_in_torchs_table_inside_alone() -> None:
    target = torch.ops.aten.masked_select.default
    ours = TRANSLATIONS[OURS]
    original = lookup(BUILD)
    with translation.our_operators():
        table = lookup(BUILD)(opset_version=20)
    assert ours in [known.onnx_function for known in table.get_decomps(target)]
    assert lookup(BUILD) == original
