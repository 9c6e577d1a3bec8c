"""Sizes that tell most: every dim another size each time, small primes, odd and even in turn."""

from __future__ import annotations

import itertools
from typing import Any

import onnx_ir as ir
import torch
from torch import nn

from anyshape.conversion.candidates import Job
from anyshape.conversion.lifting.static_exports import calls, free_axes, largest_call, observe
from anyshape.declaration.calls import Adapter, bind_call
from anyshape.declaration.spec import declare
from anyshape.declaration.targets import resolve_target
from anyshape.sizes import budgets
from anyshape.sizes.expressions import dim_symbol


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
