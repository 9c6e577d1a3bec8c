"""Branches on values are run on both sides, and what no values reach is said."""

from __future__ import annotations

import inspect
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
from anyshape.conversion.candidates import Candidate
from anyshape.conversion.strategies import Strategy
from anyshape.model import oracle as references
from anyshape.model.request import understand
from anyshape.onnxfile.interface import read_interface
from anyshape.onnxfile.metadata import SOURCE_KEY
from anyshape.onnxfile.saving import write_model
from anyshape.results.attempt import Attempt
from anyshape.results.verification import Check, Verification
from anyshape.runtime.session import Session
from anyshape.testbench.plan import Budget
from anyshape.verification.branches_taken import Sides, computed_from, provoke
from anyshape.verification.model_reference import checker_beside_model

LINES = {"y": "model.py:31 in Net.forward", "z": "model.py:40 in Net.forward"}
"""The line of each If, by its output."""


def write(path: Path, inputs: str, nodes: str, outputs: str = "float[?, ?] y") -> Path:
    """A file of this text, with a source for its Ifs."""
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 20]> main ({inputs}) => ({outputs}) {{ {nodes} }}'
    )
    for node in model.graph.node:
        if node.op_type == "If" and node.output[0] in LINES:
            node.metadata_props.add(key=SOURCE_KEY, value=LINES[node.output[0]])
    onnx.checker.check_model(model)
    onnx.save(model, path)
    return path


def branch(condition: str, first: str, second: str, output: str = "y") -> str:
    """An If; the sides are expressions of one node."""
    then, other = f"float[?, ?] {output}1", f"float[?, ?] {output}2"
    return (
        f"{output} = If ({condition}) <then_branch: graph = then () => ({then}) {{ {output}1 = {first} }}, "
        f"else_branch: graph = other () => ({other}) {{ {output}2 = {second} }}>"
    )


POSITIVE = "total = ReduceSum <keepdims: int = 0> (x)\n nothing = Constant <value_float: float = 0.0> ()\n"
POSITIVE += "positive = Greater (total, nothing)\n"


def provoked(
    path: Path, model: Callable[..., Any], args: tuple[Any, ...], dims: dict[str, str], *others: int
) -> Verification:
    """The ordinary runs at the example's size and at others of `n`, all right, and then what provoking adds."""
    request = understand(model, args, None, dims=dims, sizes=None, make_inputs=None)
    reference = references.from_example(request.target, request.signature, request.spec, seed=0)
    interface = read_interface(onnx.load(path, load_external_data=False))
    checker = checker_beside_model(Session(path), interface, reference, request.spec.inputs(request.signature))
    traced = dict(request.spec.example)
    outcomes = [reference.run(sizes) for sizes in (traced, *({**traced, "n": n} for n in others))]
    checks = [checker.judge(outcome) for outcome in outcomes]
    assert all(isinstance(check, Check) for check in checks)
    return provoke(checker, Verification(tuple(checks)), traced, path, Session, Budget(20.0))


def double_or_negate(x: Tensor) -> Tensor:
    return x + x if x.sum() > 0 else -x


class DoubleOrNegate(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return double_or_negate(x)


X = torch.rand(3, 4, generator=torch.Generator().manual_seed(0)) + 0.5
DIMS = {"x": "n 4"}
INPUT = "float[n, 4] x"


def test_a_right_file_is_run_on_both_sides_at_two_sizes(tmp_path: Path) -> None:
    path = write(tmp_path / "model.onnx", INPUT, POSITIVE + branch("positive", "Add (x, x)", "Neg (x)"))
    found = provoked(path, double_or_negate, (X,), DIMS, 5)
    assert found.is_right
    assert found.notes == ()
    assert [check.sizes for check in found.checks[2:]] == [{"n": 3}, {"n": 5}]
    assert len(found.observations) == 2


def test_a_file_that_is_wrong_on_the_side_the_example_never_takes_fails(tmp_path: Path) -> None:
    path = write(tmp_path / "model.onnx", INPUT, POSITIVE + branch("positive", "Add (x, x)", "Identity (x)"))
    (failure,) = provoked(path, double_or_negate, (X,), DIMS, 5).failures
    assert failure.rule == "wrong-values"
    assert failure.sizes == {"n": 3}
    assert failure.sentence.startswith("`y` differs by ")
    assert failure.sentence.endswith(" with `x` negated")


def test_a_side_that_is_right_at_the_traced_size_alone_fails_at_another(tmp_path: Path) -> None:
    baked = "three = Constant <value_ints: ints = [3, 4]> ()\n flipped = Neg (x)\n"
    nodes = POSITIVE + baked + branch("positive", "Add (x, x)", "Reshape (flipped, three)")
    (failure,) = provoked(write(tmp_path / "model.onnx", INPUT, nodes), double_or_negate, (X,), DIMS, 5).failures
    assert failure.rule == "runtime-error"
    assert failure.sizes == {"n": 5}


def test_nothing_is_provoked_where_the_runs_took_both_sides_at_two_sizes(tmp_path: Path) -> None:
    def by_the_first(x: Tensor) -> Tensor:
        return x + x if x[0, 0] * x.shape[0] > 4 else -x

    nodes = """
      start = Constant <value_ints: ints = [0]> ()
      end = Constant <value_ints: ints = [1]> ()
      shape = Shape <start: int = 0, end: int = 1> (x)
      count = CastLike (shape, x)
      flat = Flatten <axis: int = 0> (x)
      first = Slice (flat, start, end, end)
      product = Mul (first, count)
      four = Constant <value_float: float = 4.0> ()
      large = Greater (product, four)
    """
    path = write(tmp_path / "model.onnx", INPUT, nodes + branch("large", "Add (x, x)", "Neg (x)"))
    found = provoked(path, by_the_first, (torch.ones(3, 4),), DIMS, 2, 5, 6)
    assert len(found.checks) == 4
    assert found.notes == ()


def test_a_side_that_no_values_reach_is_said(tmp_path: Path) -> None:
    def never(x: Tensor) -> Tensor:
        return x + x if (x == x).float().sum() >= 0 else -x

    nodes = """
      same = Equal (x, x)
      ones = Cast <to: int = 1> (same)
      total = ReduceSum <keepdims: int = 0> (ones)
      nothing = Constant <value_float: float = 0.0> ()
      always = GreaterOrEqual (total, nothing)
    """
    found = provoked(
        write(tmp_path / "model.onnx", INPUT, nodes + branch("always", "Add (x, x)", "Neg (x)")), never, (X,), DIMS, 5
    )
    assert found.is_right
    assert found.notes == (
        "the side of the branch at model.py:31 that is taken where its condition is false "
        "was reached by no values that were tried: it is not checked",
    )
    assert 2 < len(found.checks) <= 2 + 24


def test_two_sides_that_no_values_reach_are_one_sentence(tmp_path: Path) -> None:
    def never(x: Tensor) -> tuple[Tensor, Tensor]:
        total = (x == x).float().sum()
        return x + x if total >= 0 else -x, x + x if total < 0 else -x

    nodes = """
      same = Equal (x, x)
      ones = Cast <to: int = 1> (same)
      total = ReduceSum <keepdims: int = 0> (ones)
      nothing = Constant <value_float: float = 0.0> ()
      always = GreaterOrEqual (total, nothing)
      never = Not (always)
    """
    nodes += branch("always", "Add (x, x)", "Neg (x)") + "\n" + branch("never", "Add (x, x)", "Neg (x)", "z")
    outputs = "float[?, ?] y, float[?, ?] z"
    (note,) = provoked(write(tmp_path / "model.onnx", INPUT, nodes, outputs), never, (X,), DIMS, 5).notes
    assert note == (
        "the side of the branch at model.py:31 that is taken where its condition is false and "
        "the side of the branch at model.py:40 that is taken where its condition is true "
        "were reached by no values that were tried: they are not checked"
    )


def test_a_mask_is_emptied_and_nothing_else_is_touched(tmp_path: Path) -> None:
    smallest = []

    def masked(x: Tensor, mask: Tensor) -> Tensor:
        smallest.append(float(x.min()))
        return x + x if mask.any() else -x

    nodes = """
      number = Cast <to: int = 7> (mask)
      most = ReduceMax <keepdims: int = 0> (number)
      any = Cast <to: int = 9> (most)
    """
    path = write(tmp_path / "model.onnx", f"{INPUT}, bool[n] mask", nodes + branch("any", "Add (x, x)", "Identity (x)"))
    mask = torch.tensor([True, False, True])
    (failure,) = provoked(path, masked, (X, mask), {**DIMS, "mask": "n"}, 5).failures
    assert failure.sentence.endswith(" with `mask` all off")
    assert min(smallest) > 0  # no condition depends on `x`


def test_a_condition_that_is_an_input_itself_is_observed(tmp_path: Path) -> None:
    def flagged(x: Tensor, flag: Tensor) -> Tensor:
        return x + x if flag else -x

    path = write(tmp_path / "model.onnx", f"{INPUT}, bool flag", branch("flag", "Add (x, x)", "Neg (x)"))
    found = provoked(path, flagged, (X, torch.tensor(True)), DIMS, 5)
    assert found.is_right
    assert found.notes == ()
    assert len(found.checks) == 4


def test_values_at_which_the_module_raises_or_gives_no_number_are_passed_over(tmp_path: Path) -> None:
    def picky(x: Tensor) -> Tensor:
        if (x < 0).all():
            raise ValueError
        return x + x if x.sum() > 0 else x / x.sum().clamp(min=0)

    path = write(tmp_path / "model.onnx", INPUT, POSITIVE + branch("positive", "Add (x, x)", "Identity (x)"))
    found = provoked(path, picky, (X,), DIMS, 5)
    assert found.is_right  # all zero is the one change that reaches the other side, and gives NaN alone
    assert "where its condition is false" in found.notes[0]


# ---- which branches count


SIZES = "count = Size (x)\n eight = Constant <value_int: int = 8> ()\n"


@pytest.mark.parametrize(
    ("nodes", "inputs"),
    [
        (POSITIVE, [{"x"}]),
        (SIZES + "positive = Greater (count, eight)\n", []),
        # a shape that values make
        ("where = NonZero (x)\n" + SIZES.replace("(x)", "(where)") + "positive = Greater (count, eight)\n", [{"x"}]),
        (SIZES + "one = CastLike (count, x)\n two = Mul (x, one)\n" + POSITIVE.replace("(x)", "(two)"), [{"x"}]),
    ],
)
def test_a_branch_counts_where_values_decide_it(nodes: str, inputs: list[set[str]], tmp_path: Path) -> None:
    path = write(tmp_path / "model.onnx", INPUT, nodes + branch("positive", "Add (x, x)", "Neg (x)"))
    assert [one.inputs for one in Sides(path, Session, {"x"}).branches] == inputs


def test_an_integer_that_is_a_size_does_not_count(tmp_path: Path) -> None:
    def by_size(x: Tensor, k: int) -> Tensor:
        return x + x if k > 4 else -x

    nodes = "four = Constant <value_int: int = 4> ()\n more = Greater (k, four)\n"
    path = write(tmp_path / "model.onnx", f"{INPUT}, int64 k", nodes + branch("more", "Add (x, x)", "Neg (x)"))
    found = provoked(path, by_size, (X, 7), {**DIMS, "k": "k"}, 5)
    assert len(found.checks) == 2
    assert found.notes == ()


def test_what_many_values_are_computed_from_is_one_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    x = ir.val("x", ir.DataType.FLOAT, [3])
    nodes = [ir.node("Neg", [x])]
    for _ in range(50):
        nodes.append(ir.node("Neg", [nodes[-1].outputs[0]]))
    ir.Graph([x], [nodes[-1].outputs[0]], nodes=nodes)
    walked: list[ir.Value] = []
    producer = ir.Value.producer
    monkeypatch.setattr(ir.Value, "producer", lambda value: (walked.append(value), producer(value))[1])
    assert computed_from(*(node.outputs[0] for node in nodes), None) == {"x"}
    assert len(walked) == 52


def test_conditions_are_computed_with_weights_that_lie_beside_the_file(tmp_path: Path) -> None:
    weight = torch.rand(4, 600)
    nodes = "wide = MatMul (x, weight)\n" + POSITIVE.replace("(x)", "(wide)")
    text = nodes + branch("positive", "Add (x, x)", "Neg (x)")
    model = ir.load(write(tmp_path / "plain.onnx", f"{INPUT}, float[4, 600] weight", text))
    value = model.graph.inputs.pop()
    value.const_value = ir.tensor(weight.numpy(), name="weight")
    model.graph.register_initializer(value)
    path = tmp_path / "model.onnx"
    write_model(model, path, external_data=True)
    assert list(tmp_path.glob("model.onnx.*.data"))
    found = provoked(path, lambda x: x + x if (x @ weight).sum() > 0 else -x, (X,), DIMS, 5)
    assert found.is_right
    assert found.notes == ()
    assert len(found.checks) == 4


# ---- in an export


def test_a_file_that_is_wrong_for_other_values_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "made.onnx", INPUT, POSITIVE + branch("positive", "Add (x, x)", "Identity (x)"))
    made = Candidate(ir.load(path), 20), Attempt("by hand", "converted")
    by_hand = Strategy("by hand", "always", "a file that stands ready", lambda _: made)
    monkeypatch.setattr("anyshape.stages.strategy_walk.STRATEGIES", [by_hand])
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.export(DoubleOrNegate(), X, dims=DIMS, quick=True)
    (finding,) = refused.value.findings
    assert finding.rule == "wrong-values"
    assert finding.message.startswith("`output` differs by ")
    assert finding.message.endswith(" with `x` negated at n = 3")


class Never(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.nan_to_num(0.0).square().sum() >= 0:
            return x + x
        return -x


def test_the_side_that_an_export_could_not_reach_is_in_its_notes() -> None:
    line = inspect.getsourcelines(Never.forward)[1] + 1
    result = anyshape.export(Never(), X, dims=DIMS, quick=True)
    (note,) = result.notes
    assert re.fullmatch(
        rf"the side of the branch at \S*test_branches_taken\.py:{line} that is taken where its condition is false "
        "was reached by no values that were tried: it is not checked",
        note,
    )
