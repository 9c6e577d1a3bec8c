"""One candidate on trial: run where assumptions break, and told with the smallest size at which it is wrong."""

from __future__ import annotations

from pathlib import Path

import onnx.parser
import onnx_ir as ir
import pytest
import torch
from torch import Tensor, nn

import anyshape
from anyshape.conversion.candidates import Candidate
from anyshape.conversion.strategies import Strategy
from anyshape.results.attempt import Attempt


class Double(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2


def refused(nodes: str, monkeypatch: pytest.MonkeyPatch, **options: object) -> anyshape.Result:
    """The export of a model that doubles, where the only strategy gives a file of these nodes."""
    text = f'<ir_version: 9, opset_import: ["" : 20]> g (float[n] x) => (float[n] y) {{ {nodes} }}'
    made = Candidate(ir.from_proto(onnx.parser.parse_model(text)), 20), Attempt("by hand", "converted")
    by_hand = Strategy("by hand", "always", "a file that stands ready", lambda _: made)
    monkeypatch.setattr("anyshape.stages.strategy_walk.STRATEGIES", [by_hand])
    with pytest.raises(anyshape.ExportError) as error:
        anyshape.export(Double(), torch.randn(3), dims={"x": "n"}, **options)
    return error.value.result


FROM_NINE_ON = (
    "c = Size (x) e = Constant <value_int: int = 9> () l = GreaterOrEqual (c, e) f = CastLike (l, x) "
    "d = Add (x, x) y = Add (d, f)"
)


def test_a_lone_number_of_the_file_is_met_and_the_smallest_failing_size_told(monkeypatch: pytest.MonkeyPatch) -> None:
    result = refused(FROM_NINE_ON, monkeypatch, sizes={"n": "1..500"})
    (finding,) = result.findings
    assert finding.rule == "wrong-values"
    assert finding.breaks_at == {"n": 9}


def test_the_file_must_load(monkeypatch: pytest.MonkeyPatch) -> None:
    result = refused("a = Cast <to = 8> (x) y = Cast <to = 1> (a) z = NoSuchOperator (y)", monkeypatch)
    assert result.verdict == "refused"
    assert result.verification is None


def test_bfloat16_is_run_in_float32_and_said(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    result = anyshape.export(nn.Linear(4, 2).bfloat16(), torch.randn(3, 4).bfloat16(), path, dims={"input": "n 4"})
    assert result.verification is not None
    assert (result.verification.computed_in, result.inputs[0].dtype) == ("float32", "bfloat16")


class ByText(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2 if f"length {x.shape[0]}" == "length 1777" else x


class BySteps(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2 if len(range(0, x.shape[0], 7)) == 100 else x


class ByDigits(nn.Module):
    """Of a size in a trace there are none, so that the trace ends here."""

    def forward(self, x: Tensor) -> Tensor:
        return x * 2 if format(x.shape[0], "b").count("1") == 11 else x


class ByTextUnmet(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2 if str(x.shape[0])[::-1] == "7771" else x


class PrintsItsLength(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        print(f"length {x.shape[0]}")  # noqa: T201
        return x * 2


@pytest.mark.parametrize(("model", "size"), [(ByText(), 1777), (BySteps(), 694)])
def test_integers_in_code_that_makes_a_number_or_a_text_of_a_size_are_run(model: nn.Module, size: int) -> None:
    with pytest.raises(anyshape.ExportError) as error:
        anyshape.export(model, torch.randn(6, 2), dims={"x": "n 2"}, sizes={"n": "1..3000"})
    assert any(f"at n = {size}" in attempt.reason for attempt in error.value.result.attempts)


@pytest.mark.parametrize(("model", "what"), [(ByTextUnmet(), "text"), (ByDigits(), "use")])
def test_what_code_makes_of_a_size_without_a_record_is_shown(model: nn.Module, what: str) -> None:
    result = anyshape.export(model, torch.randn(6, 2), dims={"x": "n 2"}, sizes={"n": "1..3000"})
    line = type(model).forward.__code__.co_firstlineno + 1
    shown = f"  assumed  a {what} made of n (tests/verification/test_candidate_check.py:{line}), not settled"
    assert shown in str(result).splitlines()
    result = anyshape.export(model, torch.randn(6, 2), dims={"x": "n 2"}, sizes={"n": "1..30"})
    assert result.assumptions == ()


def test_a_text_of_a_size_that_is_printed_is_no_assumption() -> None:
    result = anyshape.export(PrintsItsLength(), torch.randn(6, 2), dims={"x": "n 2"}, sizes={"n": "1..3000"})
    assert result.assumptions == ()
