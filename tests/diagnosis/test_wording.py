"""Findings out of what happened: values in, words out."""

from __future__ import annotations

import subprocess
import sys

import sympy
import torch

from anyshape.diagnosis import wording
from anyshape.model.limits import Limit, Pin
from anyshape.model.oracle import Outcome
from anyshape.results.attempt import Attempt, Guard, PinnedByTrace, UntranslatedOperatorError
from anyshape.results.verification import Check, Failure, Verification
from anyshape.sizes.notation import parse_condition, parse_expression, parse_sizes
from anyshape.source.spans import Span

HOME = Span("net.py", 1)
N = sympy.Symbol("s0", integer=True)
WRONG = Failure({"n": 2}, 0, "wrong-values", "y", "`y` differs")
CHECKED = Verification((Check({"n": 5}, 0, 0.1),), (WRONG,))


def _guard(expression: sympy.Basic, condition: str, span: Span | None = None) -> Guard:
    return Guard(expression, {N: parse_expression("n")}, parse_condition(condition), span)


def _raised() -> Exception:
    try:
        torch.zeros(2) + torch.zeros(3)
    except RuntimeError as error:
        return error
    raise AssertionError


# ---- what PyTorch cannot do


def test_dims_that_one_expression_pins_share_a_finding() -> None:
    error = _raised()
    pins = [Pin("n", 3, {"n": 2}, error), Pin("m", 4, {"m": 2}, error), Pin("k", 5, {"k": 2}, None)]
    both, alone = wording.pinned_in_pytorch(pins, HOME)
    assert (both.message, both.label) == ("`n` and `m` cannot vary", "`n` must be 3 and `m` must be 4 here")
    assert both.span.function == "_raised"
    assert both.notes[0].startswith("n = 2 breaks it; PyTorch fails there too: RuntimeError: The size of tensor a")
    assert (alone.span, alone.notes) == (HOME, ("k = 2 breaks it; PyTorch fails there too: no reason given",))


def test_a_limit_says_which_rule_it_is_and_what_to_declare() -> None:
    declared = {dim: parse_sizes("1..64", dim=dim) for dim in ("m", "n")}
    found = [
        wording.limited_in_pytorch(Limit(parse_condition(text), ValueError(), {"n": 9}), declared, HOME)
        for text in ("n <= 8", "n % 4 == 1", "n <= m", "n <= 9 or n >= 21", "n == m or m == 1")
    ]
    assert [one.rule for one in found] == ["bounded-dim", "divided-dim", "tied-dims", "bounded-dim", "tied-dims"]
    assert found[2].message == "`m` and `n` cannot take every declared size together"
    assert found[2].helps == ('declare it: where=["n <= m"]',)
    assert found[3].helps == ('declare it: where=["n <= 9 or n >= 21"]',)
    assert found[4].helps == ('declare it: one name for both dims, or where=["n == m or m == 1"]',)
    assert found[0].helps == ('declare it: sizes={"n": "1..8"} instead of "1..64"',)
    assert found[1].helps == ('declare it: sizes={"n": "1..61 step 4"} instead of "1..64"',)
    assert found[0].notes == ("n = 9 breaks it; PyTorch fails there too: ValueError",)
    assert wording.limited_in_pytorch(Limit(parse_condition("n <= 8")), declared, HOME).notes == ()


# ---- what only the export cannot do


def test_a_dim_that_a_trace_made_a_number_is_the_export_s() -> None:
    span = Span("net.py", 7)
    attempt = Attempt("torch.export", "failed", pins=(PinnedByTrace("n", 3, span), PinnedByTrace("m", 4, None)))
    first, second = wording.pinned_by_export(attempt, HOME)
    assert (first.span, first.label, first.origin) == (span, "`n` becomes 3 here", "export")
    assert (second.span, second.dims) == (HOME, ("m",))


def test_a_guard_that_tells_wrong_sizes_from_right_ones_is_blamed() -> None:
    span = Span("net.py", 9)
    guards = [
        _guard(sympy.Gt(N, 4), "n > 4", span),
        _guard(sympy.Gt(N, 0), "n > 0"),
        _guard(sympy.Ne(N, 2), "n != 2"),
        _guard(sympy.Gt(N, 9), "n > 9"),
    ]
    assert wording.implicated(guards, WRONG, CHECKED) == guards[:1]
    found = wording.wrong_file(WRONG, CHECKED, guards, HOME, None)
    assert (found.rule, found.span, found.label) == ("bounded-dim", span, "exported only for `n > 4`")


def test_without_a_guard_a_wrong_file_is_told_by_its_values() -> None:
    found = wording.wrong_file(WRONG, CHECKED, (), HOME, None)
    assert (found.rule, found.message) == ("wrong-values", "`y` differs at n = 2")
    assert found.notes == ("the failing size found: n = 2; PyTorch runs there",)
    lost = wording.wrong_file(WRONG, CHECKED, (), HOME, None, lost=("x", "mask"))
    assert (lost.rule, lost.message) == ("lost-input", "the file does not depend on `x` and `mask`, the model does")


def test_what_no_strategy_converts_lists_why() -> None:
    attempts = [Attempt("one", "failed", "no", error=_raised()), Attempt("two", "failed", "nor this")]
    found = wording.not_converted(attempts, HOME)
    assert (found.notes, found.span.function) == (("one: no", "two: nor this"), "_raised")


def test_an_operator_is_shown_with_what_the_user_would_write() -> None:
    given = ("my::norm", "my.norm.default", ("x", "eps=1e-05"), None, "why")
    untranslated = wording.untranslated_operator(UntranslatedOperatorError(*given, shapeless=False), HOME)
    assert "@anyshape.translation(torch.ops.my.norm.default)\ndef norm(x, eps=1e-05):" in untranslated.helps[0]
    shapeless = wording.untranslated_operator(UntranslatedOperatorError(*given, shapeless=True), HOME)
    assert '@torch.library.register_fake("my::norm")\ndef _(x, eps=1e-05):' in shapeless.helps[0]
    assert (untranslated.span, untranslated.notes) == (HOME, ("why",))
    torchs = UntranslatedOperatorError("aten::geqrf", "aten.geqrf.default", ("A",), None, "why", shapeless=False)
    assert wording.untranslated_operator(torchs, HOME).helps[1:] == (
        "or compute it before or after the file; or translate it to a node of your own, which a library or a Python "
        "function computes: `custom_ops`",
    )


def test_a_draw_is_told_at_its_place_with_the_others() -> None:
    outcome, place = Outcome({}, 0, {}, ("y",), draws=True), Span("net.py", 4)
    found = wording.random_output(outcome, HOME, {None: "rand", place: "random", Span("net.py", 9): "randn"})
    assert (found.span, found.label) == (place, "draws random numbers")
    assert found.notes[1:] == ("random numbers are drawn at net.py:9, too",)
    assert found.helps == (
        "pass the random numbers as an input, or draw them with torch: then "
        'random="inputs" makes each draw an input of the file',
        'random="shapes" checks shapes and types alone',
    )


def test_randomness_and_decisions() -> None:
    drawn = wording.random_output(Outcome({"n": 41}, 0, {}, ("y", "z"), draws=True), HOME)
    assert drawn.message == "`y`, `z` changes from call to call, so that no file can be checked against it"
    assert drawn.notes == ("in eval mode, the same inputs gave other results under another random seed",)
    far = wording.random_output(Outcome({"n": 41}, 0, {}, ("y",)), HOME, elsewhere=True)
    assert far.message == "`y` changes from call to call at n = 41, so that no file can be checked against it"
    assert far.notes == ("in eval mode, the same inputs gave other results, although no generator was drawn from",)
    assert far.breaks_at == {"n": 41}
    assert far.helps == (
        "pass the random numbers as an input, or draw them from a fixed table",
        "or fill memory before it is read: `torch.empty` and `x.resize_()` leave in it what stood there",
    )
    known, unknown = wording.frozen_decisions([Span("net.py", 4), None], HOME)
    assert (known.span.line, unknown.span) == (4, HOME)
    assert wording.decided_by_values([Attempt("one", "failed", error=_raised())]) == []


def test_words_need_nothing_that_converts() -> None:
    code = "import sys, anyshape.diagnosis.wording; print([m for m in sys.modules if '.conversion.' in m])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"
