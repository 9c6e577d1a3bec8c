"""From a job to a candidate by torch.export, with a record of what both assumed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import anyshape
from anyshape.conversion import torch_export
from anyshape.conversion.candidates import Job, make_job
from anyshape.conversion.operators.table import REPAIRS
from anyshape.conversion.torch_export import (
    by_export,
    by_torchscript,
    cause_of,
    operators_at,
    torchscript_model,
    translate_again,
)
from anyshape.declaration.calls import Adapter, bind_call
from anyshape.declaration.spec import Spec, declare
from anyshape.declaration.targets import resolve_target
from anyshape.results.attempt import PinnedByTrace
from anyshape.source.spans import Span
from anyshape.torchkit import capture
from tests.surveys import survey_of

ALWAYS = tuple(repair for repair in REPAIRS if repair.always)


class Branch(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2 if x.shape[0] > 4 else x


def test_what_a_trace_assumed_is_in_the_candidate_and_in_the_attempt() -> None:
    job = make_job(survey_of(Branch(), (torch.randn(3),), {"x": "n"}))
    candidate, attempt, _ = by_export(job, "torch.export", ALWAYS)
    assert candidate is not None
    assert [str(guard.condition) for guard in candidate.guards] == ["n <= 4"]
    assert attempt.guards == candidate.guards
    assert candidate.program is not None


def test_with_both_sides_there_is_nothing_to_assume_and_no_program_to_write_again() -> None:
    job = make_job(survey_of(Branch(), (torch.randn(3),), {"x": "n"}))
    candidate, _, acted = by_export(job, "x", REPAIRS, both_sides=True)
    assert candidate is not None
    assert candidate.guards == ()
    assert [str(branch.condition) for branch in candidate.branches] == ["n > 4"]
    assert candidate.program is None
    assert [sentence.split(":")[0] for sentence in acted.sentences] == ["1 branch kept as If"]


class Fails(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if torch.compiler.is_exporting():
            raise RuntimeError("not to be exported")
        return x


def test_a_failure_is_an_attempt_with_its_cause() -> None:
    job = make_job(survey_of(Fails(), (torch.randn(3),), {"x": "n"}))
    candidate, attempt, _ = by_export(job, "torch.export", ALWAYS)
    assert candidate is None
    assert (attempt.outcome, attempt.reason) == ("failed", "RuntimeError: not to be exported")
    assert operators_at(job, ALWAYS) is None


def test_a_program_is_written_again_in_another_opset() -> None:
    job = make_job(survey_of(nn.Linear(4, 2), (torch.randn(3, 4),), {"input": "n 4"}))
    candidate, _, _ = by_export(job, "torch.export", ALWAYS)
    assert candidate is not None
    again, attempt = translate_again(job, "torch.export, opset 20", candidate)
    assert again is not None
    assert (attempt.strategy, attempt.outcome) == ("torch.export, opset 20", "converted")
    assert again.model is not candidate.model
    assert [node.op_type for node in again.model.graph] == [node.op_type for node in candidate.model.graph]


def test_dims_that_became_numbers_are_the_cause() -> None:
    pins = [PinnedByTrace("n", 3, Span("model.py", 7)), PinnedByTrace("m", 4, None)]
    assert cause_of(RuntimeError("no"), pins) == "`n` became 3 at model.py:7:1; `m` became 4"


# ---- torch's older exporter


class First(nn.Module):
    def forward(self, x: Tensor, unused: Tensor) -> Tensor:
        return x * 2


def test_an_empty_input_never_reaches_what_would_end_the_process() -> None:
    class Patches(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return nn.functional.pixel_unshuffle(x, 1)

    empty = torch.randn(1, 1, 0, 1)
    target = resolve_target(Patches())
    signature = bind_call(target, (empty,), None)
    job = Job(Adapter(target, signature, ["x"]), (("x", empty),), declare(signature, {}, None), 17)
    candidate, attempt = by_torchscript(job, "TorchScript")
    assert (candidate, attempt.reason) == (None, "TorchScript cannot take an empty input")


def test_dynamic_axes_are_open_and_unused_inputs_left_out() -> None:
    args = (torch.randn(3, 4), torch.randn(2))
    target = resolve_target(First())
    signature = bind_call(target, args, None)
    spec = declare(signature, {"x": "n 4"}, None)
    job = Job(Adapter(target, signature, ["x", "unused"]), (("x", args[0]), ("unused", args[1])), spec, 17)
    model = torchscript_model(job, 17)
    (value,) = model.graph.inputs
    assert value.name == "input_0"
    assert [isinstance(size, int) for size in value.shape] == [False, True]
    assert model.opset_imports[""] == 17


class Cells(nn.Module):
    """One of each in a loop; in TorchScript, they ask how many axes there are."""

    def __init__(self) -> None:
        super().__init__()
        self.gru, self.lstm, self.relu = (
            nn.GRUCell(4, 5, bias=False),
            nn.LSTMCell(5, 6),
            nn.RNNCell(6, 4, nonlinearity="relu"),
        )
        self.tanh = nn.RNNCell(4, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        one, two, kept = torch.zeros(x.size(1), 5), torch.zeros(x.size(1), 6), torch.zeros(x.size(1), 6)
        three, four = torch.zeros(x.size(1), 4), torch.zeros(x.size(1), 4)
        for t in range(x.size(0)):
            one = self.gru(x[t], one)
            two, kept = self.lstm(one, (two, kept))
            three = self.relu(two, three)
            four = self.tanh(three, four)
        return four, kept


@pytest.mark.parametrize("opset", [15, 20])
def test_recurrent_cells_are_exported_in_torchscript(opset: int) -> None:
    torch.manual_seed(0)
    model = torch.jit.script(Cells())
    result = anyshape.export(model, torch.randn(3, 2, 4), dims={"x": "n batch 4"}, opset_version=opset, quick=True)
    assert result.verdict == "checked"
    x = torch.randn(7, 3, 4)
    assert all(torch.allclose(*pair, atol=1e-5) for pair in zip(result(x), model(x), strict=True))


def test_a_list_of_unknown_numbers_in_torchscript_is_told() -> None:
    def asks(x: Tensor) -> Tensor:
        return x * 2 if 3 in [x.size(0), 7] else x

    with pytest.raises(anyshape.ExportError, match="Unsupported: `in` a list of numbers that are not known"):
        anyshape.export(torch.jit.script(asks), torch.randn(4, 2), dims={"x": "n 2"}, quick=True)


# ---- one trace


class Model(nn.Module):
    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.function(x, y)


class Called(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, *values: Tensor) -> Tensor:
        return self.model(*values)


def _traced(function: Callable[..., Tensor]) -> tuple[capture.Recorder, torch.export.ExportedProgram | None, Spec]:
    model = Model(function)
    call = (torch.ones(4, 6), torch.ones(6))
    spec = declare(bind_call(resolve_target(model), call, None), {"x": "batch n", "y": "n"}, {})
    with capture.recording() as recorder:
        try:
            program = torch_export.trace(Called(model), [("x", call[0]), ("y", call[1])], spec)
        except Exception:  # noqa: BLE001  a dim that became a number
            program = None
    return recorder, program, spec


def test_sizes_of_results_are_expressions_of_dims() -> None:
    recorder, program, spec = _traced(lambda x, y: torch.cat([x + y, x * y], 1)[:, 1:])
    assert program is not None
    meaning = torch_export.meaning_of(recorder, ["x", "y"], spec)
    assert {str(expression) for expression in meaning.values()} == {"batch", "n"}
    ((rows, columns),) = torch_export.output_expressions(program, meaning)
    assert (str(rows), columns.value({"n": 6})) == ("batch", 11)


def test_guards_speak_of_dims_and_have_lines() -> None:
    recorder, _, spec = _traced(lambda x, y: x * y if x.shape[0] > 3 else x)
    guards = torch_export.guards_of(recorder, torch_export.meaning_of(recorder, ["x", "y"], spec))
    (guard,) = [guard for guard in guards if guard.dims == ("batch",) and guard.span]
    assert [guard.holds({"batch": size}) for size in (3, 4, 9)] == [False, True, True]


def test_a_dim_that_became_a_number_is_named() -> None:
    recorder, program, spec = _traced(lambda x, y: x + y + torch.zeros(4, 1))
    assert program is None
    (pin,) = torch_export.pins_of(recorder, torch_export.meaning_of(recorder, ["x", "y"], spec))
    assert (pin.dim, pin.size) == ("batch", 4)


def test_views_do_not_count_as_computing_and_values_that_are_read_decide() -> None:
    _, program, _ = _traced(lambda x, y: (x * y).transpose(0, 1).reshape(-1).relu())
    assert program is not None
    assert torch_export.operators_of(program) == Counter({"aten.mul.Tensor": 1, "aten.relu.default": 1})
    assert not torch_export.decides(program)
    _, program, _ = _traced(lambda x, y: x * y.max().item())
    assert program is not None
    assert torch_export.decides(program)
