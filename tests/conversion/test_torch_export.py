"""From a job to a candidate by torch.export, with a record of what both assumed."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from anyshape.conversion.candidates import Job, make_job
from anyshape.conversion.operators.table import REPAIRS
from anyshape.conversion.torch_export import by_export, cause_of, operators_at, torchscript_model, translate_again
from anyshape.declaration.calls import bind_call
from anyshape.declaration.dims import declare
from anyshape.declaration.outputs import Adapter
from anyshape.declaration.targets import resolve_target
from anyshape.results.attempt import PinnedByTrace
from anyshape.source.spans import Span
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
