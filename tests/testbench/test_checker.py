"""A plan is run in its order, within its budget and its limits, and judged beside whatever reference is handed in."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import onnx.parser
import pytest

from anyshape.onnxfile.interface import read_interface
from anyshape.results.verification import Check, Failure
from anyshape.runtime.session import Session
from anyshape.sizes import budgets
from anyshape.sizes.effort import Effort
from anyshape.sizes.notation import SizeRange, parse_condition
from anyshape.testbench.checker import (
    ALONE,
    BESIDE_A_MODEL,
    BESIDE_ITS_STATIC_TWIN,
    Checker,
    Expected,
    judge_until_wrong,
    smallest_failure,
    verify,
)
from anyshape.testbench.judgement import FACTOR, MovedRuns, Tolerance
from anyshape.testbench.plan import Budget, Plan

HEAD = '<ir_version: 9, opset_import: ["" : 20]> g '
DOUBLE = "(float[n] x) => (float[n] y) { y = Add (x, x) }"
LABELLED = "(float[n] x) => (float[3] y) { y = Add (x, x) }"


@dataclass(frozen=True)
class Call:
    sizes: dict
    content: int
    error: Exception | None = None
    outputs: tuple = ()
    gradients: bool = False

    @property
    def x(self):
        return np.arange(self.sizes["n"], dtype=np.float32) + self.content


@dataclass
class Doubled:
    """A reference that doubles: wrong from `wrong_from` on, and without an answer from `fails_from` on."""

    wrong_from: int = 10**9
    fails_from: int = 10**9
    is_forgiving: bool = False
    work_of_an_element: float = 1.0

    def __post_init__(self):
        self.runs = []

    def run(self, sizes, content=0):
        self.runs.append((sizes["n"], content))
        call = Call(dict(sizes), content)
        if sizes["n"] >= self.fails_from:
            return replace(call, error=ValueError("too long"))
        return replace(call, outputs=(call.x,))

    def volume(self, sizes):
        return sizes["n"]

    def effort(self, sizes):
        return Effort(sizes["n"] * self.work_of_an_element)

    def refuses(self, sizes):
        return "a number of ill luck" if sizes["n"] == 13 else None

    def inputs(self, run):
        return {"x": run.x}

    def input_shapes(self, run):
        return {"x": run.x.shape}

    def make_room(self):
        pass

    def expected(self, run):
        is_wrong = run.sizes["n"] >= self.wrong_from and not run.gradients
        values = run.x * 3 if is_wrong else run.x * 2
        yield Expected(0, values, MovedRuns(lambda _: values))

    def compared(self, run, index, result):
        return result

    def broken_promise(self, run, shapes):
        return None

    def other_answer(self, run):
        return replace(run, gradients=True) if self.is_forgiving else None


class NoLimits:
    def __init__(self):
        self.base, self.conditions, self.ran = {"n": 4}, [], []

    def holds(self, sizes):
        return all(condition.holds(sizes) for condition in self.conditions)

    def admit(self, sizes):
        return sizes if self.holds(sizes) else None

    def explain(self, sizes):
        self.conditions.append(parse_condition(f"n <= {sizes['n'] - 1}"))
        return True

    def note_run(self, sizes):
        self.ran.append(sizes["n"])


def checker(reference, text=DOUBLE, rules=BESIDE_A_MODEL):
    model = onnx.parser.parse_model(HEAD + text)
    return Checker(Session(model.SerializeToString()), read_interface(model), reference, rules)


PLAN = Plan({"n": SizeRange(1, 12)}, {"n": 4}, is_closed=True)


def verified(reference, plan=PLAN, rules=BESIDE_A_MODEL, seconds=60.0, limits=None):
    return verify(checker(reference, rules=rules), plan, limits or NoLimits(), Budget(seconds))


def test_every_size_of_the_plan_is_judged_and_observed():
    reference = Doubled()
    found = verified(reference)
    assert found.is_right
    assert [sizes["n"] for sizes in found.sizes_run][:2] == [4, 1]
    assert {sizes["n"] for sizes in found.sizes_run} == set(range(1, 13))
    assert {one.shapes for one in found.observations} == {((n,),) for n in range(1, 13)}
    assert (found.factor, found.measure) == (FACTOR, "the model's own rounding noise")


def test_every_third_size_is_run_with_other_values_too():
    reference = Doubled()
    verified(reference)
    sizes = list(dict.fromkeys(n for n, _ in reference.runs))
    assert [n for n, content in reference.runs if content == 1] == sizes[::3]
    reference = Doubled()
    verified(reference, rules=ALONE)
    assert {content for _, content in reference.runs} == {0}


def test_three_wrong_sizes_are_enough_beside_a_model_and_all_are_wanted_alone():
    assert len(verified(Doubled(wrong_from=5)).failures) == 3
    assert {failure.sizes["n"] for failure in verified(Doubled(wrong_from=5), rules=ALONE).failures} == set(
        range(5, 13)
    )


@pytest.mark.parametrize(("rules", "always"), [(BESIDE_A_MODEL, 3), (ALONE, 4)])
def test_the_first_sizes_run_although_there_is_no_time(rules, always):
    found = verified(Doubled(), rules=rules, seconds=0.0)
    assert len(found.sizes_run) == always
    assert {reason for _, reason in found.skipped} == {"the budget was used up"}
    assert len(found.skipped) == 12 - always


def test_what_cannot_be_made_is_skipped_with_its_reason_even_first():
    plan = Plan({"n": SizeRange(12, 14)}, {"n": 13}, is_closed=True)
    found = verified(Doubled(), plan, ALONE, seconds=0.0)
    assert found.skipped == (({"n": 13}, "a number of ill luck"),)


def test_where_the_reference_fails_the_plan_is_chosen_anew_inside_its_limits():
    limits = NoLimits()
    found = verified(Doubled(fails_from=7), limits=limits)
    assert found.is_right
    assert str(limits.conditions[-1]) == "n <= 6"
    assert set(limits.ran) == set(range(1, 7))
    assert found.invalid[0]["n"] >= 7
    assert {sizes["n"] for sizes in found.sizes_run} == set(range(1, 7))


def test_a_second_answer_of_the_reference_is_right_as_well():
    found = verified(Doubled(wrong_from=5, is_forgiving=True))
    assert found.is_right
    assert {check.gradients for check in found.checks if check.sizes["n"] >= 5} == {True}


def test_a_label_that_is_not_kept_is_called_by_the_rules():
    call = Doubled().run({"n": 4})
    judged = checker(Doubled(), LABELLED).judge(call)
    assert (judged.rule, judged.sentence) == ("mislabelled-dim", "`y` declares 3 on axis 0 but has shape (4,)")
    assert checker(Doubled(), LABELLED, BESIDE_ITS_STATIC_TWIN).results(call).rule == "wrong-shape"


def test_an_error_of_the_runtime_is_a_failure():
    text = "(float[n] x) => (float[3] y) <int64[1] s = {3}> { y = Reshape (x, s) }"
    judged = checker(Doubled(), text).judge(Doubled().run({"n": 4}, 1))
    assert (judged.rule, judged.output, judged.content) == ("runtime-error", None, 1)
    assert judged.sentence.startswith("fails in ONNX Runtime: Reshape node: ")


def test_calls_are_judged_up_to_the_first_that_is_wrong():
    reference = Doubled(wrong_from=3)
    judged = judge_until_wrong(checker(reference), (reference.run({"n": n}) for n in range(1, 9)))
    assert [type(one) for one in judged] == [Check, Check, Failure]
    assert [n for n, _ in reference.runs] == [1, 2, 3]


def test_what_takes_long_to_find_is_asked_for_once_the_first_sizes_are_right():
    asked = []

    def breaking():
        asked.append([n for n, _ in reference.runs])
        return [{"n": 11}]

    reference = Doubled()
    verified(reference, replace(PLAN, first=({"n": 7},), breaking=breaking))
    runs = list(dict.fromkeys(n for n, _ in reference.runs))
    assert asked == [[n for n, _ in reference.runs][: len(asked[0])]]
    assert list(dict.fromkeys(asked[0])) == [4, 1, 2, 3, 7]
    assert runs[5] == 11
    assert sorted(runs) == list(range(1, 13))


def test_what_takes_long_to_find_is_not_asked_for_of_a_wrong_file():
    reference, asked = Doubled(wrong_from=1), []
    plan = replace(PLAN, first=({"n": 7}, {"n": 9}), breaking=lambda: asked.append(1) or ())
    found = verified(reference, plan)
    assert len(found.failures) == 3
    assert not asked


def test_the_smallest_failing_size_is_found():
    one = checker(Doubled(wrong_from=5))
    failures = [one.judge(one.reference.run({"n": 11}))]
    assert smallest_failure(one, failures, PLAN, Budget(60.0)).sizes == {"n": 5}
    assert smallest_failure(one, failures, PLAN, Budget(0.0)).sizes == {"n": 11}


def test_a_tolerance_of_the_user_is_told_as_such():
    tolerant = replace(checker(Doubled(wrong_from=1)), tolerance=Tolerance(atol=1e3))
    found = verify(tolerant, PLAN, NoLimits(), Budget(60.0))
    assert (found.is_right, found.factor, found.measure) == (True, 1.0, "the tolerance in use")


# ---- what is too dear


def test_a_size_is_cut_for_its_work_and_cheaper_ones_are_still_run():
    reference = Doubled(work_of_an_element=budgets.WORK_TO_CHECK / 24)
    found = verified(reference, rules=ALONE, seconds=None)
    assert [sizes["n"] for sizes in found.sizes_run] == [4, 1, 2, 3, 12]
    assert found.skipped[0] == (
        {"n": 5},
        "predicted to be more work than a check takes by itself (budget= allows more)",
    )
    assert len(verified(reference, rules=ALONE).sizes_run) == 12  # a user's seconds are not counted in work


def test_what_the_limits_exclude_was_not_cut():
    found = verified(Doubled(fails_from=7), seconds=0.0, plan=replace(PLAN, traced={"n": 8}))
    assert found.invalid == ({"n": 8}, {"n": 7})
    assert {sizes["n"] for sizes, _ in found.skipped} == {1, 2, 3, 4, 5}
