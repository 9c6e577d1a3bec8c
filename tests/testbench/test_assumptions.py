"""Every assumption about sizes is proved, run on both sides, or open; each once, with its line and its sizes."""

from __future__ import annotations

import pytest
import sympy
import torch
from torch import nn
from torch.utils._sympy import functions as f

import anyshape
from anyshape.onnxfile.contract import Assumption, read_contract
from anyshape.results.attempt import Guard
from anyshape.results.verification import Check, Verification
from anyshape.sizes.expressions import to_condition
from anyshape.sizes.notation import Expression, parse_condition, parse_sizes
from anyshape.sizes.settlement import SizesInQuestion
from anyshape.source.spans import Span
from anyshape.testbench.assumptions import Assumptions

N, M, U = (sympy.Symbol(name, integer=True, positive=True) for name in ("s0", "s1", "u0"))
MEANING = {N: Expression("n"), M: Expression("m")}


def guard(condition, line=12, *, decides=True):
    return Guard(condition, MEANING, to_condition(condition, MEANING), Span("model.py", line), decides)


def assumed(*paths, trace=None, relations=(), n="1..", m="1.."):
    ranges = {"n": parse_sizes(n, dim="n"), "m": parse_sizes(m, dim="m")}
    declared = SizesInQuestion(ranges, tuple(map(parse_condition, relations)), {"n": 5, "m": 4})
    return Assumptions(paths, lambda: declared, trace)


def run_at(*sizes, **more):
    return Verification(tuple(Check({"n": n, "m": m}, 0, 0.0) for n, m in sizes), **more)


def test_each_assumption_has_one_of_three_ends():
    squares = sympy.Ne(N * N, 2 * M * M)  # no such numbers, which takes a thought
    path = tuple(guard(one) for one in (N * M >= 2, sympy.Ne(N, 9), squares, U < N, sympy.Eq(N, N, evaluate=False)))
    assumptions = assumed(path, relations=["n >= 2"])
    assert assumptions.before_any_run([]) == [{"n": 9, "m": 4}]
    assert assumptions.ends(run_at((5, 4), (9, 4))) == (
        Assumption("m * n >= 2", "model.py:12", "proved"),
        Assumption("n != 9", "model.py:12", "run", {"n": 5, "m": 4}, {"n": 9, "m": 4}),
        Assumption("n * n != 2 * (m * m)", "model.py:12", "open", {"n": 5, "m": 4}),
        Assumption("? < n", "model.py:12", "open"),
        Assumption("n == n", "model.py:12", "proved"),
    )


def test_what_is_run_breaks_what_the_planned_sizes_do_not():
    assumptions = assumed((guard(sympy.Ne(N, M + 37)),))
    assert assumptions.before_any_run([{"n": 5, "m": 4}]) == [{"n": 40, "m": 3}, {"n": 41, "m": 4}]
    again = assumed((guard(sympy.Ne(N, M + 37)),))
    assert again.before_any_run([{"n": 60, "m": 23}, {"n": 61, "m": 24}]) == []


def test_a_size_counts_only_where_the_questions_before_are_answered_alike():
    path = (guard(N >= M), guard(sympy.Ne(f.Mod(N + M, 53), 17), 13))
    assumptions = assumed(path)
    # at 1, 16 the second is broken, but the model never asks it
    found = assumptions.before_any_run([{"n": 1, "m": 16}, {"n": 2, "m": 15}, {"n": 5, "m": 4}])
    assert found
    assert all(sizes["n"] >= sizes["m"] and (sizes["n"] + sizes["m"]) % 53 == 17 for sizes in found)


def test_what_no_size_keeps_is_settled_by_what_breaks_it():
    assumptions = assumed((guard(sympy.Eq(N, 1)), guard(sympy.Eq(N, 4), 13)))
    (_, end) = assumptions.ends(run_at((5, 4), (1, 4), (4, 4)))
    assert end == Assumption("n == 4", "model.py:13", "run", None, {"n": 1, "m": 4})


def test_a_known_size_that_was_not_run_stays_with_what_is_open():
    assumptions = assumed((guard(N <= 10**6),))
    assert assumptions.before_any_run([{"n": 5, "m": 4}]) == [{"n": 10**6 + 1, "m": 4}]
    skipped = (({"n": 10**6 + 1, "m": 4}, "the budget was used up"),)
    (end,) = assumptions.ends(run_at((5, 4), skipped=skipped))
    assert end == Assumption("n <= 1000000", "model.py:12", "open", {"n": 5, "m": 4}, {"n": 10**6 + 1, "m": 4})


def test_where_pytorch_fails_other_sizes_are_looked_for():
    assumptions = assumed((guard(sympy.Ne(N, 9)),))
    assumptions.before_any_run([])
    failing = [{"n": 9, "m": 4}]
    assert assumptions.sizes_to_run([{"n": 5, "m": 4}], failing) == []
    (end,) = assumptions.ends(run_at((5, 4), invalid=tuple(failing)))
    assert (end.end, end.breaks_at) == ("run", {"n": 9, "m": 4})


def test_the_other_side_of_a_decision_is_followed():
    asked = []

    def trace(sizes):
        asked.append(sizes)
        return (guard(N < M), guard(sympy.Ne(f.Mod(N + M, 53), 17), 13))

    assumptions = assumed((guard(N >= M),), trace=trace)
    right = [{"n": 5, "m": 4}, {"n": 3, "m": 4}, {"n": 4, "m": 5}]
    found = assumptions.sizes_to_run(right)
    assert asked == [{"n": 3, "m": 4}]
    assert all(sizes["n"] < sizes["m"] and (sizes["n"] + sizes["m"]) % 53 == 17 for sizes in found)
    assert assumptions.sizes_to_run([*right, *found]) == []
    assert [one.expression for one in assumptions.ends(run_at((5, 4), (3, 4)))] == ["n >= m", "(m + n) % 53 != 17"]


def test_what_torch_itself_asks_is_not_followed():
    followed = assumed((guard(N >= M, decides=False),), trace=lambda _: pytest.fail("traced"))
    assert followed.sizes_to_run([{"n": 5, "m": 4}, {"n": 3, "m": 4}, {"n": 4, "m": 5}]) == []


# ---- in an export


class Far(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 64)

    def forward(self, x):
        if x.shape[0] > 4_000_000:
            return self.layer(x) * 2
        return self.layer(x)


def test_a_declared_size_that_breaks_it_and_is_not_run_is_refused_with_its_line():
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.export(Far(), torch.randn(3, 64), dims={"x": "n 64"})
    (finding,) = refused.value.findings
    assert finding.rule == "bounded-dim"
    assert finding.span.line == Far.forward.__code__.co_firstlineno + 1
    assert finding.label == "exported only for `n <= 4000000`"
    assert finding.notes[0].startswith("n = 4000001 breaks it, and was not run: ")
    assert refused.value.result.assumptions[0].breaks_at == {"n": 4_000_001}


def test_what_was_refused_is_narrowed_at_the_users_wish():
    result = anyshape.export(Far(), torch.randn(3, 64), dims={"x": "n 64"}, narrow=True)
    assert result.verdict == "narrowed"
    assert result.given_up == ("only where n <= 4000000",)
    assert [one.end for one in result.assumptions] == ["proved"]


class Unknown(nn.Module):
    def forward(self, x):
        n, m, k = x.shape
        if n**3 + m**3 == k**3:
            return x * 2
        return x + 1


def test_what_is_open_is_printed_and_written(tmp_path):
    path = tmp_path / "model.onnx"
    result = anyshape.export(Unknown(), torch.randn(2, 3, 5), path, dims={"x": "n m k"})
    (end,) = result.assumptions
    assert (end.end, end.holds_at, end.breaks_at) == ("open", {"n": 2, "m": 3, "k": 5}, None)
    line = Unknown.forward.__code__.co_firstlineno + 2
    assert end.expression == "m * m * m + n * n * n != k * k * k"
    shown = f"  assumed  {end.expression} (tests/testbench/test_assumptions.py:{line}), not settled"
    assert shown in str(result).splitlines()
    assert shown in str(anyshape.inspect(path)).splitlines()
    rows = result.to_dict()["assumptions"]
    assert rows == anyshape.inspect(path).to_dict()["contract"]["assumptions"]
    assert rows[0]["end"] == "open"
    assert read_contract(result.model_proto).assumptions == result.assumptions
