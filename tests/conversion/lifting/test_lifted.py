"""Models that only lifting serves: right at sizes that no export has seen, or refused with the reason."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
import torch
from torch import nn

import anyshape
from anyshape.conversion.candidates import Job
from anyshape.conversion.lifting.lifted import calls, free_axes, largest_call, observe
from anyshape.conversion.strategies import LIFTED
from anyshape.declaration.calls import Adapter, bind_call
from anyshape.declaration.spec import declare
from anyshape.declaration.targets import resolve_target
from anyshape.sizes import budgets
from anyshape.sizes.expressions import dim_symbol
from tests import cases
from tests.running import is_right

ONLY_LIFTED = (
    "length_as_text", "numpy_ramp", "numpy_scalars_of_sizes", "owners_in_a_list", "reference_points",
    "weights_in_a_list",
)  # fmt: skip


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == ONLY_LIFTED[0] else pytest.mark.slow) for name in ONLY_LIFTED]
)
def test_no_other_strategy_serves_the_case(name):
    case = cases.load(name)
    args, kwargs = cases.example(case)
    result = anyshape.export(case.model(), args, kwargs=kwargs, dims=case.dims, quick=True, budget=3)
    assert [attempt.outcome for attempt in result.attempts[:-1]].count("checked") == 0
    assert result.attempts[-1].strategy == LIFTED
    assert "computed from the sizes, found by static exports" in result.repairs[0]


class Numbered(nn.Module):
    """A table that numpy computes, entry by entry the same at every length."""

    def forward(self, x):
        steps = np.arange(x.shape[1])[:, None] / np.power(100.0, np.arange(3) / 3)
        return x + torch.from_numpy(np.concatenate([np.sin(steps), np.cos(steps)], 1)).to(x.dtype)


def test_a_table_is_taken_from_an_export_at_the_largest_size(tmp_path):
    x = torch.randn(2, 5, 6)
    result = anyshape.export(
        Numbered(), x, tmp_path / "m.onnx", dims={"x": "batch seq 6"}, sizes={"seq": "1..48"}, quick=True, budget=3
    )
    assert result.attempts[-1].strategy == LIFTED
    for batch, seq in ((1, 1), (3, 20), (2, 48)):
        assert is_right(tmp_path / "m.onnx", Numbered(), (torch.randn(batch, seq, 6),))


def refusal(model, x, **options):
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.export(model, x, dims={"x": "batch seq 6"}, quick=True, budget=3, **options)
    return refused.value.result


def test_a_table_without_an_end_is_refused():
    result = refusal(Numbered(), torch.randn(2, 5, 6))
    assert result.attempts[-1].strategy == LIFTED
    assert "is a table, and nothing tells its entries beyond those that were seen" in result.attempts[-1].reason


class Windowed(nn.Module):
    """A window of numpy: neither a ramp nor a table."""

    def forward(self, x):
        return x * torch.from_numpy(np.hanning(x.shape[1])).float()[:, None]


def test_numbers_without_a_pattern_are_refused():
    result = refusal(Windowed(), torch.randn(2, 5, 6))
    assert result.attempts[-1].outcome == "failed"
    assert "follows no pattern that is known" in result.attempts[-1].reason


class Unrolled(nn.Module):
    """As many nodes as there are steps."""

    def forward(self, x):
        state = torch.zeros(x.shape[0], 6)
        for step in range(int(str(x.shape[1]))):
            state = torch.tanh(state + x[:, step])
        return state


def test_a_graph_that_grows_with_a_size_is_refused():
    result = refusal(Unrolled(), torch.randn(2, 5, 6))
    assert result.attempts[-1].strategy == LIFTED
    assert "the nodes differ from size to size" in result.attempts[-1].reason


class Parted(nn.Module):
    """Another law for long sequences, beyond all sizes that are exported."""

    def forward(self, x):
        length = int(str(x.shape[1]))
        ramp = torch.tensor([1.0 / length if length <= 200 else 2.0 for _ in range(length)])
        return x * ramp[:, None]


def test_a_law_that_ends_is_noticed_by_the_check():
    result = refusal(Parted(), torch.randn(2, 5, 6))
    assert (result.attempts[-1].strategy, result.attempts[-1].outcome) == (LIFTED, "wrong")


class Decides(nn.Module):
    """A decision on values, which every static export freezes."""

    def forward(self, x):
        ramp = torch.tensor(np.linspace(0.0, 1.0, x.shape[1]), dtype=torch.float32)
        return x * ramp[:, None] if float(x.sum()) > 0 else -x


def test_a_decision_on_values_is_never_lifted():
    result = refusal(Decides(), torch.ones(2, 5, 6))
    assert LIFTED not in [attempt.strategy for attempt in result.attempts]


def test_a_healthy_model_is_not_lifted():
    result = anyshape.export(nn.Linear(6, 2), torch.randn(2, 6), dims={"input": "batch 6"}, quick=True)
    assert [attempt.strategy for attempt in result.attempts] == ["torch.export"]


def test_weights_are_held_once(monkeypatch):
    held = []

    def watched(job, observations):
        for one in observations:
            held.append({id(v.const_value) for v in one.model.graph.initializers.values() if "weight" in v.name})
        return lift(job, observations)

    from anyshape.conversion.lifting.lifted import lift

    monkeypatch.setattr("anyshape.conversion.lifting.lifted.lift", watched)
    case = cases.load("numpy_ramp")
    args, _ = cases.example(case)
    anyshape.export(case.model(), args, dims=case.dims, quick=True, budget=3)
    assert len(held) == 5
    assert all(len(row) == 1 and row == held[0] for row in held)


# ---- Sizes that tell most: every dim another size each time, small primes, odd and even in turn


def job(dims: dict[str, Any], sizes: dict[str, Any] | None = None, *, most: int = 20) -> Job:
    target = resolve_target(nn.Linear(4, 3))
    signature = bind_call(target, (torch.randn(2, 5, 4),))
    spec = declare(signature, dims, sizes)
    rows = [dict(zip(spec.dims, row, strict=True)) for row in itertools.product(range(1, most), repeat=len(spec.dims))]
    leaves = tuple((leaf.name, leaf.value) for leaf in signature.leaves)
    return Job(
        Adapter(target, signature, ("input",)),
        leaves,
        spec,
        18,
        spread=lambda: [row for row in rows if all(row[dim] in spec.ranges[dim] for dim in row)],
        values_at=lambda at: (torch.zeros(spec.shape("input", at, (2, 5, 4))),),
    )


def test_an_expression_counts_as_one_size():
    assert free_axes(job({"input": "batch seq 4"})) == {dim_symbol("batch"): (0, 0), dim_symbol("seq"): (0, 1)}
    assert list(free_axes(job({"input": "n 2*n+1 4"}))) == [dim_symbol("n"), dim_symbol("size_1")]


def test_the_first_calls_have_no_size_twice():
    first = [sizes for sizes, _ in itertools.islice(calls(job({"input": "batch seq 4"})), budgets.STATIC_EXPORTS)]
    seen = [size for sizes in first for size in sizes.values()]
    assert len(seen) == len(set(seen)) == 2 * budgets.STATIC_EXPORTS
    assert min(seen) >= 3
    assert {size % 2 for sizes in first for size in (sizes["batch"],)} == {0, 1}


def test_few_sizes_are_used_as_far_as_they_go():
    found = [sizes for sizes, _ in calls(job({"input": "batch seq 4"}, {"seq": [5, 7]}))]
    assert {sizes["seq"] for sizes in found[:2]} == {5, 7}
    assert all(sizes["seq"] in (5, 7) for sizes in found)


def test_the_largest_call_needs_an_end_and_room():
    assert largest_call(job({"input": "batch seq 4"})) is None
    sizes, (value,) = largest_call(job({"input": "batch seq 4"}, {"seq": "1..16"}))
    assert (sizes["seq"], value.shape[1]) == (16, 16)
    assert largest_call(job({"input": "batch seq 4"}, {"seq": "1..100000000"})) is None


def test_all_constants_of_an_export_are_initializers():
    def export(one: Job) -> ir.Model:
        entry = ir.Value(name="x", shape=ir.Shape(one.leaves[0][1].shape), type=ir.TensorType(ir.DataType.FLOAT))
        two = ir.node("Constant", [], attributes={"value_float": 2.0})
        product = ir.node("Mul", [entry, two.outputs[0]])
        unused = ir.node("Neg", [entry])
        graph = ir.Graph([entry], product.outputs, nodes=[two, product, unused], opset_imports={"": 18}, name="main")
        return ir.Model(graph, ir_version=9)

    seen = observe(job({"input": "batch seq 4"}), {"batch": 3, "seq": 7}, (torch.zeros(3, 7, 4),), export)
    assert [node.op_type for node in seen.model.graph] == ["Mul"]
    assert len(seen.model.graph.initializers) == 1
    assert seen.at == {dim_symbol("batch"): 3, dim_symbol("seq"): 7}
