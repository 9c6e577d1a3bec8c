"""A trace is recorded with the lines that made it assume something, and leaves the process as it was."""

from __future__ import annotations

import logging
import sys
import warnings

import pytest
import sympy
import torch
from torch import Tensor, nn

from anyshape.errors import AnyshapeError
from anyshape.torchkit import capture

DYNAMIC = torch.export.Dim.DYNAMIC


class Halves(nn.Module):
    def forward(self, *values: Tensor) -> Tensor:
        (x,) = values
        if x.shape[0] % 2 == 0:
            return x[: x.shape[0] // 2]
        return x.reshape(5, 4)


def _traced(rows: int) -> tuple[capture.Recorder, torch.export.ExportedProgram | None]:
    with capture.recording() as recorder:
        try:
            program = capture.export_program(Halves(), (torch.ones(rows, 4),), [{0: DYNAMIC}])
        except Exception:  # noqa: BLE001  a dim that became a number
            program = None
    return recorder, program


def test_an_assumption_has_its_symbol_and_its_line() -> None:
    recorder, program = _traced(6)
    assert program is not None
    (symbol,) = (symbol for symbol, place in recorder.sources.items() if place == (0, 0))
    found = [one for one in recorder.assumptions if symbol in one.condition.free_symbols and one.span]
    first = Halves.forward.__code__.co_firstlineno
    assert {one.span.line - first for one in found} == {2, 3}


def test_a_size_that_became_a_number_has_its_line() -> None:
    recorder, _ = _traced(5)
    places = {(str(one.value), one.span.line) for one in recorder.specialisations if one.span}
    assert ("5", Halves.forward.__code__.co_firstlineno + 4) in places


class Worded(nn.Module):
    def forward(self, *values: Tensor) -> Tensor:
        (x,) = values
        size, number = f"{x.shape[0]}", x.sum().item()
        texts = [str(x), f"{x[0]}", f"{number}", size]
        print(f"{x}")  # noqa: T201
        return x * len(texts)


def test_texts_of_values_that_a_trace_does_not_have_are_noted() -> None:
    before = Tensor.__repr__, torch.SymFloat.__repr__
    with capture.recording() as record, capture.texts_noted(record):
        capture.export_program(Worded(), (torch.ones(6, 4),), [{0: DYNAMIC}])
    line = Worded.forward.__code__.co_firstlineno + 3
    assert [(place.line, place.column) for place in record.texts] == [(line, 18), (line, 26), (line, 37)]
    assert (Tensor.__repr__, torch.SymFloat.__repr__) == before


def test_size_one_is_no_special_size() -> None:
    program = capture.export_program(_Flat(nn.ReLU()), (torch.ones(1, 4),), [{0: DYNAMIC}])
    (shape,) = [node.meta["val"].shape for node in program.graph.nodes if node.op == "placeholder"]
    assert isinstance(shape[0], torch.SymInt)


class _Flat(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, *values: Tensor) -> Tensor:
        return self.inner(*values)


def test_inside_nothing_is_said_and_afterwards_all_is_as_before(capsys: pytest.CaptureFixture[str]) -> None:
    out, filters = sys.stdout, list(warnings.filters)
    with capture.quiet():
        sys.stdout.write("hidden")
        warnings.warn("hidden", stacklevel=1)
        logging.getLogger("torch.export").error("hidden")
    assert capsys.readouterr() == ("", "")
    assert (sys.stdout, warnings.filters) == (out, filters)


def test_a_trace_leaves_nothing_in_the_module() -> None:
    class Keeping(torch.nn.Module):
        def forward(self, *values: Tensor) -> Tensor:
            (self.last,) = values
            return self.last + 1

    module = Keeping()
    capture.export_program(module, (torch.ones(2),), [{0: DYNAMIC}])
    assert not hasattr(module, "last")


def test_an_older_torch_is_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    capture.require_torch()
    monkeypatch.setattr(torch, "__version__", "2.12.1+cpu")
    with pytest.raises(AnyshapeError, match=r"^anyshape needs torch 2.13 or newer, installed is 2.12.1\+cpu$"):
        capture.require_torch()


def test_numbers_are_the_same_as_expressions() -> None:
    assert capture.expression_of(3) == sympy.Integer(3)
    assert capture.is_same_number(3, 3)
    assert not capture.is_same_number(3, 4)
    assert capture.newest_translated_opset() >= 20
    assert capture.newest_torchscript_opset() >= 18


class Asking(nn.Module):
    def forward(self, *values: Tensor) -> Tensor:
        (x,) = values
        return x + x if torch.onnx.is_in_onnx_export() else x * 3


def test_a_model_hears_that_it_is_exported_in_a_trace_alone() -> None:
    program = capture.export_program(Asking(), (torch.ones(2),), [None])
    assert [str(node.target) for node in program.graph.nodes if node.op == "call_function"] == ["aten.add.Tensor"]
    assert torch.onnx.is_in_onnx_export() is False
    with capture.export_questions() as places:
        assert Asking()(torch.ones(2)).tolist() == [3.0, 3.0]
    (place,) = places
    assert place.line == Asking.forward.__code__.co_firstlineno + 2


class NoTensor(nn.Module):
    def forward(self) -> Tensor:
        return torch.arange(3)


def test_a_module_may_take_nothing() -> None:
    assert capture.export_program(NoTensor(), (), []).module()().tolist() == [0, 1, 2]
