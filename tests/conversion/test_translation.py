"""A program is translated with our operators in torch's table, which is torch's own again afterwards."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import pytest
import torch
from onnxscript import opset18, script
from torch import Tensor, nn
from torch._subclasses.fake_tensor import DynamicOutputShapeException

from anyshape.conversion import translation as translating
from anyshape.conversion.operators.table import TRANSLATIONS
from anyshape.conversion.translation import translation, translations
from anyshape.errors import DeclarationError
from anyshape.results.attempt import UntranslatedOperatorError
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
    found = translating.translate_program(_program(Written()), 20, {})
    assert found.model.opset_imports[""] == 20
    assert (found.inlined, found.forced_by) == ((), ())
    trapezoid = nn.Module()
    trapezoid.forward = lambda x: torch.trapezoid(x, dim=1)
    found = translating.translate_program(_program(trapezoid), 20, {})
    assert found.inlined == ("aten.trapezoid.dx",)


def test_what_cannot_be_translated_raises() -> None:
    module = nn.Module()
    module.forward = lambda x: torch.linalg.svdvals(x)
    with pytest.raises(UntranslatedOperatorError) as caught:
        translating.translate_program(_program(module), 20, {})
    assert str(caught.value) == "`aten::_linalg_svd` has no ONNX translation; ONNX has no operator for it"
    assert caught.value.overload == "aten._linalg_svd.default"


def test_an_operator_that_stops_a_trace_is_named() -> None:
    stopped = RuntimeError("a trace")
    stopped.__cause__ = DynamicOutputShapeException(torch.ops.aten.linalg_lstsq.default)
    named = translating.named_operator(stopped, 20)
    assert str(named) == "`aten::linalg_lstsq` has no ONNX translation; ONNX has no operator for it"
    for operator in (torch.ops.aten.nonzero.default, torch.ops.aten.equal.default):  # translated; no tensor
        stopped.__cause__ = DynamicOutputShapeException(operator)
        assert translating.named_operator(stopped, 20) is stopped


def test_which_operators_are_translated(monkeypatch: pytest.MonkeyPatch) -> None:
    assert translating.is_translated(torch.ops.aten.masked_select.default, 20)
    assert translating.is_translated(torch.ops.aten.tanh.default, 20)
    assert not translating.is_translated(torch.ops.aten._linalg_svd.default, 20)
    hide(monkeypatch, BUILD)
    assert translating.is_translated(torch.ops.aten.masked_select.default, 20)
    assert not translating.is_translated(torch.ops.aten.tanh.default, 20)


def test_our_operators_are_in_torchs_table_inside_alone() -> None:
    target = torch.ops.aten.masked_select.default
    ours = TRANSLATIONS[OURS]
    original = lookup(BUILD)
    with translating.our_operators():
        table = lookup(BUILD)(opset_version=20)
    assert ours in [known.onnx_function for known in table.get_decomps(target)]
    assert lookup(BUILD) == original


# ---- the user's own translations

LIBRARY = torch.library.Library("anyshape_translated", "FRAGMENT")
LIBRARY.define("one(Tensor x) -> Tensor")
LIBRARY.define("two(Tensor x) -> Tensor")
LIBRARY.define("two.scaled(Tensor x, float by) -> Tensor")
ONE, TWO = torch.ops.anyshape_translated.one, torch.ops.anyshape_translated.two


@pytest.fixture(autouse=True)
def _none_decorated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(translating, "_DECORATED", {})


def plain(x: Any) -> Any:
    return opset18.Relu(x)


def other(x: Any) -> Any:
    return opset18.Tanh(x)


def test_the_newest_decorated_holds_and_the_table_wins() -> None:
    assert translation(ONE)(other) is other
    translation(ONE)(plain)
    translation(TWO.scaled)(plain)
    assert translations(None) == {ONE.default: plain, TWO.scaled: plain}
    assert translations({ONE: other, torch.sym_max: plain}) == {
        ONE.default: other, TWO.scaled: plain, torch.sym_max: plain,
    }  # fmt: skip


def test_a_script_without_a_return_annotation_has_outputs() -> None:
    @script(default_opset=opset18)
    def scripted(x):
        return opset18.Relu(x)

    (found,) = translations({ONE: scripted}).values()
    assert found is not scripted
    assert [output.name for output in scripted._pt_onnx_signature.outputs] == ["output_0"]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: translation("nothing"), "translation('nothing'): give a torch operator, such as torch.ops.mine.twice"),
        (
            lambda: translation(TWO),
            "translation: torch.ops.anyshape_translated.two has the overloads default, scaled: name one of them",
        ),
        (lambda: translations([ONE]), "custom_translation_table is a list: map operators to functions"),
        (
            lambda: translations({ONE: 3}),
            "the translation of anyshape_translated.one is a int: give a function",
        ),
    ],
)
def test_what_is_no_translation_is_refused(call: Any, sentence: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        call()
    assert str(caught.value) == sentence


class TinyNumbers(nn.Module):
    def forward(self, x: Tensor) -> Any:
        return torch.log(x + 1e-12), x + 1e-9 - 1e-20, x * 1.0000001, x + 0.0, x * 1


def test_tiny_numbers_are_kept() -> None:
    """onnxscript's rules take what is nearly zero for zero, and log(0 + 1e-12) would be infinite."""
    nodes = [node.op_type for node in translating.translate_program(_program(TinyNumbers()), 20, {}).model.graph]
    assert [one for one in nodes if one != "Identity"] == ["Add", "Log", "Add", "Sub", "Mul"]


class Halves(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return x.sum(0), x.amax(1), x.cumsum(0), x.prod(), x.std(), *torch.var_mean(x, 0), x.int().sum()


def test_sums_of_halves_are_halves() -> None:
    program = torch.export.export(Halves(), (torch.ones(3, 4).half(),))
    outputs = translating.translate_program(program, 20, {}).model.graph.outputs
    assert [one.dtype for one in outputs if one is not None] == [ir.DataType.FLOAT16] * 7 + [ir.DataType.INT64]


def test_an_operator_without_words_for_complex_values_is_named() -> None:
    module = nn.Module()
    module.forward = lambda x: torch.view_as_real(torch.complex(x, x).tanh())
    with pytest.raises(UntranslatedOperatorError) as caught:
        translating.translate_program(_program(module), 20, {})
    assert str(caught.value) == "`aten::tanh` has no ONNX translation; of complex values there is none"
