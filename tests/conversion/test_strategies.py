"""The table of the ways to a file: its order, when each applies, and in which forms it is written again."""

from __future__ import annotations

from dataclasses import replace

import onnx_ir as ir
import sympy
import torch

from anyshape.conversion.candidates import Candidate, Job
from anyshape.conversion.strategies import (
    FORMS,
    STRATEGIES,
    Past,
    Strategy,
    breaks_assumptions,
    in_form,
    may_be_badly_written,
    plain_operators,
)  # fmt: skip
from anyshape.results.attempt import Attempt, Guard
from anyshape.sizes.notation import parse_expression

N = sympy.Symbol("s0", integer=True, positive=True)
ABOVE_FOUR = Guard(N > 4, {N: parse_expression("n")}, None, None)
BY_NAME = {strategy.name: strategy for strategy in STRATEGIES}


def past(*attempts: Attempt, decides: bool = False, calls: int = 0) -> Past:
    return Past(attempts, lambda: decides, calls)


def job(**changes: object) -> Job:
    return Job(None, (), None, 23, **changes)  # type: ignore[arg-type]


def model_of(kind: str) -> ir.Model:
    node = ir.node(kind, [ir.Value(name="x")])
    return ir.Model(ir.Graph([], [], nodes=[node], opset_imports={"": 23}), ir_version=10)


def test_the_ways_stand_in_their_order() -> None:
    assert [strategy.name for strategy in STRATEGIES] == [
        "torch.export", "torch.export in full", "torch.export with repairs", "torch.export at other sizes",
        "torch.export with branches and loops", "torch.export at other sizes after all", "TorchScript",
        "lifting from static exports",
    ]  # fmt: skip
    assert [form.name for form in FORMS] == ["opset 20", "not rewritten"]


def test_every_way_and_form_says_when_and_what() -> None:
    assert all(row.when and row.what and not row.what.endswith(".") for row in (*STRATEGIES, *FORMS))


def test_at_first_only_ways_that_need_no_history_apply() -> None:
    names = [strategy.name for strategy in STRATEGIES if strategy.applies(past())]
    assert names == [
        "torch.export", "torch.export with repairs", "torch.export with branches and loops", "TorchScript",
        "lifting from static exports",
    ]  # fmt: skip


def test_a_file_that_is_wrong_where_its_trace_assumed_otherwise_breaks_an_assumption() -> None:
    beyond = Attempt("torch.export", "wrong", guards=(ABOVE_FOUR,), wrong_at=({"n": 9}, {"n": 3}, {"n": 2}))
    inside = Attempt("torch.export", "wrong", guards=(ABOVE_FOUR,), wrong_at=({"n": 9},))
    assert breaks_assumptions(beyond)
    assert not breaks_assumptions(inside)
    assert not may_be_badly_written(beyond)
    assert may_be_badly_written(inside)
    assert not may_be_badly_written(Attempt("torch.export", "failed", ran_right=True))


def test_other_sizes_are_the_smallest_beyond_the_assumption() -> None:
    elsewhere = BY_NAME["torch.export at other sizes"]
    beyond = Attempt("torch.export", "wrong", guards=(ABOVE_FOUR,), wrong_at=({"n": 9}, {"n": 3}, {"n": 2}))
    assert elsewhere.applies(past(beyond))
    assert elsewhere.sizes(past(beyond)) == {"n": 2}
    slow = Attempt("torch.export", "wrong", seconds=1e6, guards=(ABOVE_FOUR,), wrong_at=({"n": 3},))
    assert elsewhere.applies(past(slow))
    assert not elsewhere.applies(past(beyond, calls=4001))


def test_where_paths_part_in_every_layer_branches_are_kept_before_another_path_is_traced() -> None:
    elsewhere, after_all = BY_NAME["torch.export at other sizes"], BY_NAME["torch.export at other sizes after all"]
    often = tuple(replace(ABOVE_FOUR, expression=size < N) for size in range(4, 13))
    once = Attempt("torch.export", "wrong", guards=often, wrong_at=({"n": 12},))
    assert elsewhere.applies(past(once))
    assert not after_all.applies(past(once))
    apart = Attempt("torch.export", "wrong", guards=often, wrong_at=({"n": 3}, {"n": 5}))
    kept = Attempt("torch.export with branches and loops", "wrong", guards=(ABOVE_FOUR,), wrong_at=({"n": 2},))
    assert not elsewhere.applies(past(apart))
    assert after_all.applies(past(apart, kept))
    assert after_all.sizes(past(apart)) == {"n": 3}
    assert not after_all.applies(past(Attempt("torch.export", "failed")))


def test_parts_are_traced_in_full_where_they_only_looked_alike() -> None:
    in_full = BY_NAME["torch.export in full"]
    assert in_full.applies(past(Attempt("torch.export", "wrong", copied=("Block",), wrong_at=({"n": 9},))))
    assert not in_full.applies(past(Attempt("torch.export", "wrong", wrong_at=({"n": 9},))))


def test_nothing_is_lifted_that_decides_or_is_long() -> None:
    lifting = BY_NAME["lifting from static exports"]
    assert lifting.applies(past(Attempt("torch.export", "failed")))
    assert not lifting.applies(past(Attempt("torch.export", "failed"), decides=True))
    assert lifting.applies(past(Attempt("torch.export", "failed", seconds=1e6)))
    assert not lifting.applies(past(Attempt("torch.export", "failed"), calls=1501))
    beyond = Attempt("torch.export", "wrong", guards=(ABOVE_FOUR,), wrong_at=({"n": 2},))
    assert not lifting.applies(past(beyond))


def test_newest_operators_are_written_in_older_ones_unless_an_opset_was_asked_for() -> None:
    older, _ = FORMS
    changed = older.job(job(), model_of("Attention"))
    assert changed is not None
    assert changed.opset == 20
    assert older.job(job(), model_of("MatMul")) is None
    assert older.job(job(opset_is_fixed=True), model_of("Attention")) is None


def test_a_form_that_only_the_trace_can_give_is_traced_again() -> None:
    again = Strategy("x", "always", "anything", lambda job: (None, Attempt("x", "failed", str(job.opset))))
    candidate = Candidate(model_of("Attention"), 23)
    made, attempt = in_form(again, job(), "x, opset 20", candidate)
    assert made is None
    assert (attempt.strategy, attempt.reason) == ("x, opset 20", "23")


def test_operators_at_fixed_sizes_are_counted() -> None:
    class Twice(torch.nn.Module):
        def forward(self, values: tuple[torch.Tensor, ...]) -> torch.Tensor:
            return values[0].relu().relu() + 1

    found = plain_operators(Job(Twice(), (("x", torch.randn(3)),), None, 20))  # type: ignore[arg-type]
    assert found is not None
    assert found["aten.relu.default"] == 2
