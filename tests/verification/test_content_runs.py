"""Right files are run with other values than those that were drawn; what is wrong there is told with the values."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import onnx_ir as ir
import pytest
import torch
from torch import Tensor, nn

import anyshape
from anyshape.model import oracle as references
from anyshape.model.request import understand
from anyshape.onnxfile.interface import read_interface
from anyshape.results.verification import Check, Verification
from anyshape.runtime.session import Session
from anyshape.testbench.plan import Budget
from anyshape.verification.content_runs import run_contents
from anyshape.verification.model_reference import checker_beside_model

X = torch.rand(3, 4, generator=torch.Generator().manual_seed(0)) + 0.5
MASK = torch.tensor([True, False, True])
IDS = torch.tensor([5, 2, 7])
DIMS = {"x": "n 4"}


def run(
    folder: Path, text: str, model: Callable[..., Any], args: tuple[Any, ...] = (X,), *, seconds: float = 20.0
) -> Verification:
    """What the contents add to the example's own run, which is right, of a file of this text."""
    proto = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]> {text}')
    onnx.save(proto, folder / "model.onnx")
    names = ("x", "mask") if len(args) > 1 else ("x",)
    dims = {name: "n 4" if value.dim() > 1 else "n" for name, value in zip(names, args, strict=True)}
    request = understand(model, args, None, dims=dims, sizes=None, make_inputs=None)
    reference = references.from_example(request.target, request.signature, request.spec, seed=0)
    session = Session(folder / "model.onnx")
    checker = checker_beside_model(session, read_interface(proto), reference, request.spec.inputs(request.signature))
    first = checker.judge(reference.run({"n": 3}))
    assert isinstance(first, Check)
    return run_contents(checker, Verification((first,)), {"n": 3}, ir.from_proto(proto), Budget(seconds))


def file(nodes: str, inputs: str = "float[n, 4] x", output: str = "float[n, 4] y") -> str:
    return f"main ({inputs}) => ({output}) {{ {nodes} }}"


DOUBLE = file("y = Add (x, x)")


def double(x: Tensor) -> Tensor:
    return x + x


# ---- right files


def test_a_right_file_is_run_with_every_content_and_says_so(tmp_path: Path) -> None:
    found = run(tmp_path, DOUBLE, double)
    assert found.is_right
    assert found.notes == ()
    assert [check.values for check in found.checks[1:]] == [
        "`x` negated", "`x` thirty times as large", "`x` a thousand times as large", "`x` all zero",
        "`x` of three values in ties", "`x` rounded to halves",
        "`x` holding a NaN", "`x` holding inf", "`x` holding -inf",
        "`x` in other strides", "`x` expanded from one slice",
    ]  # fmt: skip
    assert len(found.observations) == 11


def test_masks_and_integers_have_contents_of_their_own(tmp_path: Path) -> None:
    text = file("y = Where (mask, x, x)", "int64[n] x, bool[n] mask", "int64[n] y")
    found = run(tmp_path, text, lambda x, mask: torch.where(mask, x, x), (IDS, MASK))
    assert [check.values for check in found.checks[1:]] == [
        "`mask` all off", "`mask` all on", "`x` all at the smallest value", "`x` all at the largest value",
    ]  # fmt: skip


def test_what_pytorch_refuses_or_cannot_compute_is_not_judged(tmp_path: Path) -> None:
    def picky(x: Tensor) -> Tensor:
        if bool((x < 0).any()):
            raise ValueError
        return x + x + 0 / x.max()  # NaN alone where all is zero, or something NaN

    found = run(tmp_path, DOUBLE, picky)
    assert found.is_right
    assert "`x` negated" not in [check.values for check in found.checks]
    assert "`x` all zero" not in [check.values for check in found.checks]


def test_a_loop_that_such_values_never_end_is_left(tmp_path: Path) -> None:
    def grown(x: Tensor) -> Tensor:
        while x.sum() < 1:
            x = x * 2
        return x + x

    found = run(tmp_path, DOUBLE, grown)
    assert found.is_right
    assert "`x` all zero" not in [check.values for check in found.checks]


def test_values_that_make_sizes_are_not_enlarged(tmp_path: Path) -> None:
    nodes = """
      start = Constant <value_ints: ints = [0]> ()
      end = Constant <value_ints: ints = [1]> ()
      flat = Flatten <axis: int = 0> (x)
      axes = Constant <value_ints: ints = [0, 1]> ()
      most = ReduceMax <keepdims: int = 0> (flat, axes)
      count = Cast <to: int = 7> (most)
      nothing = Constant <value_int: int = 0> ()
      one = Constant <value_int: int = 1> ()
      y = Range (nothing, count, one)
    """
    found = run(tmp_path, file(nodes, output="int64[m] y"), lambda x: torch.arange(int(x.max())), (X * 3,))
    assert found.is_right
    enlarged = "`x` thirty times as large, `x` a thousand times as large, `x` holding inf, `x` holding -inf"
    assert f"not run with {enlarged}: values make sizes, which would grow as well" in found.notes


def test_what_the_budget_cuts_is_said(tmp_path: Path) -> None:
    found = run(tmp_path, DOUBLE, double, seconds=-1.0)
    assert len(found.checks) == 1
    (note,) = found.notes
    assert note.startswith("not run with `x` negated, `x` thirty times as large, ")
    assert note.endswith(", `x` expanded from one slice: the budget was used up")
    assert note.count("`x`") == 11


# ---- wrong files

WRONG: dict[str, tuple[str, Callable[..., Any], tuple[Any, ...]]] = {
    "`x` negated": (file("y = Relu (x)"), lambda x: x * 1, (X,)),
    "`x` thirty times as large": (
        file("lo = Constant <value_float: float = -9.0> () hi = Constant <value_float: float = 9.0> ()"
             "y = Clip (x, lo, hi)"),
        lambda x: x * 1, (X,),
    ),
    "`x` all zero": (
        file("z = Constant <value_float: float = 0.0> () is = Equal (x, z)"
             "one = Constant <value_float: float = 1.0> () y = Where (is, one, x)"),
        lambda x: x * 1, (X,),
    ),
    "`x` of three values in ties": (
        file("p = ArgMax <axis: int = 1, keepdims: int = 0, select_last_index: int = 1> (x)"
             "a = Constant <value_ints: ints = [1]> () t = ReduceSum <keepdims: int = 0> (x, a)"
             "s = Sign (t) i = Cast <to: int = 7> (s) y = Mul (p, i)", output="int64[n] y"),
        lambda x: x.argmax(1) * x.sum(1).sign().long(), (X,),
    ),
    "`x` a thousand times as large": (
        file("e = Exp (x) a = Constant <value_ints: ints = [1]> () t = ReduceSum <keepdims: int = 1> (e, a)"
             "y = Div (e, t)"),
        lambda x: x.softmax(1), (X / 4,),
    ),
    "`x` rounded to halves": (
        file("h = Constant <value_float: float = 0.5> () m = Add (x, h) y = Floor (m)"), lambda x: x.round(), (X,),
    ),
    "`mask` all off": (
        file("i = Cast <to: int = 6> (mask) m = ReduceMax <keepdims: int = 0> (i) a = Cast <to: int = 1> (m)"
             "d = Add (x, x) y = Mul (d, a)", "float[n, 4] x, bool[n] mask"),
        lambda x, mask: x + x, (X, MASK),
    ),
    "`mask` all on": (
        file("i = Cast <to: int = 6> (mask) m = ReduceMin <keepdims: int = 0> (i) a = Cast <to: int = 1> (m)"
             "d = Add (x, x) y = Sub (d, a)", "float[n, 4] x, bool[n] mask"),
        lambda x, mask: x + x, (X, MASK),
    ),
    "`x` all at the largest value": (
        file("a = ReduceMin <keepdims: int = 1> (x) b = Constant <value_int: int = 6> () c = Min (a, b)"
             "y = Add (x, c)", "int64[n] x", "int64[n] y"),
        lambda x: x + x.min(), (IDS,),
    ),
}  # fmt: skip
"""Files that are right as drawn, and wrong with one content."""


@pytest.mark.parametrize("values", WRONG)
def test_a_file_that_is_wrong_with_other_values_fails(values: str, tmp_path: Path) -> None:
    text, model, args = WRONG[values]
    (failure,) = run(tmp_path, text, model, args).failures
    assert failure.rule == "wrong-values"
    assert failure.sentence.endswith(f" with {values}")
    assert failure.values == values


def test_a_file_that_fails_in_the_runtime_fails(tmp_path: Path) -> None:
    nodes = """
      table = Constant <value_floats: floats = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]> ()
      two = Constant <value_int: int = 2> ()
      least = ReduceMin <keepdims: int = 1> (x)
      more = Sub (least, two)
      places = Add (x, more)
      y = Gather (table, places)
    """
    text = file(nodes, "int64[n] x", "float[n] y")
    (failure,) = run(tmp_path, text, lambda x: x.float() + x.min() - 2, (IDS,)).failures
    assert failure.rule == "runtime-error"
    assert failure.sentence.endswith(" with `x` all at the largest value")


def test_a_file_that_serves_one_order_in_memory_says_so(tmp_path: Path) -> None:
    found = run(tmp_path, DOUBLE, lambda x: x + x if x.is_contiguous() else x * 3)
    assert found.is_right
    words = "PyTorch itself gives other values with `x` {}: the file, those of the same numbers in order"
    assert found.notes == tuple(words.format(how) for how in ("in other strides", "expanded from one slice"))


def test_a_file_that_is_wrong_with_numbers_of_one_slice_fails_in_whatever_strides(tmp_path: Path) -> None:
    text = file("""
      first = Constant <value_ints: ints = [0]> () second = Constant <value_ints: ints = [1]> ()
      top = Gather <axis: int = 0> (x, first) next = Gather <axis: int = 0> (x, second)
      alike = Equal (top, next) add = Cast <to: int = 1> (alike) d = Add (x, x) y = Add (d, add)
    """)
    (failure,) = run(tmp_path, text, double).failures
    assert failure.sentence.endswith((" with `x` all zero", " with `x` of three values in ties", " from one slice"))


def test_memory_that_nobody_wrote_to_is_not_judged(tmp_path: Path) -> None:
    calls = itertools.count(1)

    def doubled(x: Tensor) -> Tensor:
        return x + x if bool(x.any()) else x + next(calls)

    found = run(tmp_path, DOUBLE, doubled)
    assert found.is_right
    words = "PyTorch's own results change from call to call with `x` all zero: these are not judged"
    assert found.notes == (words,)


# ---- NaN


def test_nan_that_is_handled_otherwise_is_a_note(tmp_path: Path) -> None:
    text = file("axes = Constant <value_ints: ints = [1]> () y = ReduceMax <keepdims: int = 0> (x, axes)",
                output="float[n] y")  # fmt: skip
    found = run(tmp_path, text, lambda x: x.amax(1))
    assert found.is_right
    assert found.notes == ("NaN or inf is handled otherwise than in PyTorch: `y` is another with `x` holding a NaN",)


class Largest(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        plain = x * 2
        return torch.nn.functional.max_pool1d(plain, 2)


def test_the_first_note_about_nan_names_the_operator_and_the_line() -> None:
    first, *others = anyshape.export(Largest(), torch.randn(1, 2, 6), dims={}).notes
    line = Largest.forward.__code__.co_firstlineno + 2
    words = "NaN or inf is handled otherwise than in PyTorch: `output` is another with `x` holding a NaN"
    assert re.fullmatch(rf"{re.escape(words)}, first by `MaxPool` of .*test_content_runs.py:{line}", first)
    assert not any("first by" in note for note in others)


def test_nan_of_the_file_alone_is_a_note_where_a_mask_leaves_nothing(tmp_path: Path) -> None:
    nodes = """
      one = Cast <to: int = 1> (mask)
      count = ReduceSum <keepdims: int = 0> (one)
      same = Div (count, count)
      y = Mul (x, same)
    """
    text = file(nodes, "float[n, 4] x, bool[n] mask")
    found = run(tmp_path, text, lambda x, mask: x * 1, (X, MASK))
    assert found.notes == ("NaN or inf is handled otherwise than in PyTorch: `y` is another with `mask` all off",)


def test_what_overflows_in_pytorch_alone_is_a_note(tmp_path: Path) -> None:
    text = file("big = Constant <value_float: float = 3000.0> () y = Mul (x, big)")
    found = run(tmp_path, text, lambda x: torch.where(x > 20, torch.inf, x * 3000))
    assert found.is_right
    words = "NaN or inf is handled otherwise than in PyTorch: `y` is another with `x` "
    # a thousand times as large, there is nothing but inf
    assert found.notes == (f"{words}thirty times as large", f"{words}holding 20 and numbers beside it")


def test_nan_of_the_file_alone_is_a_failure_for_plain_numbers(tmp_path: Path) -> None:
    (failure,) = run(tmp_path, file("r = Sqrt (x) y = Mul (r, r)"), lambda x: x * 1).failures
    assert failure.sentence == "`y` has 12 NaN, in PyTorch 0 with `x` negated"


def test_an_infinity_that_is_handled_otherwise_is_a_note(tmp_path: Path) -> None:
    text = file("""
      is_infinite = IsInf (x) most = Constant <value_float: float = 65504.0> ()
      cut = Where (is_infinite, most, x) y = Add (cut, cut)
    """)
    found = run(tmp_path, text, double)
    assert found.is_right
    words = "NaN or inf is handled otherwise than in PyTorch: `y` is another with `x` holding "
    assert found.notes == (f"{words}inf", f"{words}-inf")


def test_an_infinity_that_changes_finite_numbers_is_a_failure(tmp_path: Path) -> None:
    text = file("""
      is_infinite = IsInf (x) one = Cast <to: int = 1> (is_infinite) any = ReduceMax <keepdims: int = 0> (one)
      doubled = Add (x, x) y = Add (doubled, any)
    """)
    (failure,) = run(tmp_path, text, double).failures
    assert failure.sentence == "`y` differs by 1 (allowed 1.5e-06) with `x` holding inf"


# ---- where sizes decide otherwise


def _doubled_where(test: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    return lambda x: torch.where(test(x), 2 * x, x)


FORKED: dict[str, Callable[[Tensor], Tensor]] = {
    "itself": _doubled_where(lambda x: x > 1e8),
    "equality": _doubled_where(lambda x: x == -100),
    "behind a sum": _doubled_where(lambda x: x * 3 + 1 > 1e8),
    "behind a function": _doubled_where(lambda x: x.exp() > 1e20),
    "small": _doubled_where(lambda x: x * x < 1e-5),
    "clamped": lambda x: x.clamp(max=5000.0),
}
"""What is other than the plain input for values that nobody draws."""


@pytest.mark.parametrize("is_traced", [True, False])
@pytest.mark.parametrize("name", FORKED)
def test_other_values_are_run_where_sizes_decide_otherwise(name: str, is_traced: bool) -> None:
    class Forked(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            usual, rare = (FORKED[name], torch.clone) if is_traced else (torch.clone, FORKED[name])
            return rare(x) if x.shape[0] % 97 == 5 else usual(x)

    result = anyshape.export(Forked(), X, dims=DIMS, sizes={"n": "1..200"}, quick=True)
    first = result.attempts[0]
    assert first.outcome == "wrong"
    assert re.search(r" with `x` (holding \S+|.* times as large|.* beside it) at n = 5$", first.reason)
    assert result.verdict == "checked"  # by both branches


def test_a_given_file_that_decides_by_a_size_is_run_with_other_values_on_both_sides(tmp_path: Path) -> None:
    nodes = """
      n = Shape <start: int = 0, end: int = 1> (x) fifty = Constant <value_ints: ints = [50]> ()
      is_long = Greater (n, fifty) end = Constant <value_float: float = 5000.0> ()
      most = Constant <value_float: float = 1e25> () high = Where (is_long, end, most)
      y = Min (x, high)
    """
    text = f'<ir_version: 10, opset_import: ["": 20]> {file(nodes)}'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.check(tmp_path / "model.onnx", nn.Identity(), X, sizes={"n": "1..200"}, quick=True)
    (finding,) = refused.value.findings
    assert finding.message.endswith(" with `x` holding 5000 and numbers beside it at n = 51")


# ---- in the verbs


class Doubled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + x


def test_the_values_stand_in_the_result() -> None:
    result = anyshape.export(Doubled(), X, dims=DIMS, quick=True)
    rows = result.to_dict()["verification"]["values_run"]
    assert {"sizes": {"n": 3}, "values": "`x` thirty times as large"} in rows
    assert len(rows) == 11


def test_a_given_file_that_is_wrong_with_other_values_is_refused(tmp_path: Path) -> None:
    text, _, _ = WRONG["`x` thirty times as large"]
    onnx.save(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]> {text}'), tmp_path / "model.onnx")
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.check(tmp_path / "model.onnx", nn.Identity(), X, quick=True)
    (finding,) = refused.value.findings
    assert finding.rule == "wrong-values"
    assert finding.message.endswith(" with `x` thirty times as large at n = 3")


def test_a_model_that_reads_strides_says_so() -> None:
    class Strided(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.as_strided(x, (x.shape[0], 2), (4, 1))

    result = anyshape.export(Strided(), X, dims=DIMS, quick=True)
    words = "PyTorch itself gives other values with `x` in other strides: the file, those of the same numbers in order"
    assert result.notes == (words,)
