"""All marks of a model become control flow, and names differ over all of its graphs."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import pytest
import torch
from torch import nn

from anyshape.conversion.control_flow.lowering import lower_regions
from anyshape.conversion.control_flow.marks import RegionError
from tests.conversion.control_flow.lowering import (
    Marked,
    all_operators,
    body,
    is_right,
    lowered,
    number_of_step,
    operators,
    ops,
    translated,
)
from tests.conversion.control_flow.test_scans import sequences

EXAMPLE = sequences(5, batch=2)[0]


def which(condition: Any) -> Any:
    return torch.sym_ite(condition, 1, 0)


def test_a_model_without_marks_is_left_as_it_is() -> None:
    made = translated(Marked(lambda x: torch.exp(x) + 1), EXAMPLE)
    before = [(node.name, node.op_type) for node in made.graph]
    lower_regions(made)
    assert [(node.name, node.op_type) for node in made.graph] == before


def test_names_are_unique_over_all_graphs() -> None:
    def marked(x: Any) -> Any:
        shared = torch.exp(x)
        first = ops.choose(which(x.size(1) > 6), shared.sum(1), torch.cos(x).sum(1), 1)
        second = ops.choose(which(x.size(1) > 3), shared.amax(1), torch.sin(x).amax(1), 2)
        return ops.choose(which(x.size(0) > 2), first, second, 0)

    made = lowered(Marked(marked), EXAMPLE)
    assert all_operators(made.graph)["Exp"] == 2
    nodes = list(ir.traversal.RecursiveGraphIterator(made.graph))
    names = [value.name for node in nodes for value in node.outputs]
    assert len(set(names)) == len(names)
    assert len({node.name for node in nodes}) == len(nodes)
    assert "anyshape" not in made.opset_imports


def test_a_mark_that_is_left_over_is_an_error() -> None:
    made = translated(Marked(lambda x: ops.loop_begin(x.size(1), [x], [], [], 0)[1] + 1), EXAMPLE)
    with pytest.raises(RegionError, match="LoopBegin is left"):
        lower_regions(made)


# ---- choices made into Ifs

OTHERS = sequences(1, 3, 4, 6, 8, 9, 12)


@pytest.mark.parametrize("opset", [20, 23])
def test_a_branch_on_a_size_becomes_if(opset: int) -> None:
    def marked(x: Any) -> Any:
        return ops.choose(which(x.size(1) > 4), torch.sin(x).sum(1), torch.exp(x[:, 0]), 0)

    def plain(x: Any) -> Any:
        return torch.sin(x).sum(1) if x.size(1) > 4 else torch.exp(x[:, 0])

    made = lowered(Marked(marked), EXAMPLE, opset)
    assert is_right(made, plain, OTHERS)
    assert operators(body(made.graph, "If", "then_branch")) == {"Sin": 1, "ReduceSum": 1}
    assert set(operators(body(made.graph, "If", "else_branch"))) == {"Gather", "Exp"}
    assert not {"Where", "Cast"} & set(all_operators(made.graph))  # the condition is used as it is


def test_a_branch_on_a_value_becomes_if() -> None:
    def marked(x: Any) -> Any:
        return ops.choose(which((x.sum() > 0).item()), torch.sin(x), torch.exp(x), 0)

    def plain(x: Any) -> Any:
        return torch.sin(x) if x.sum() > 0 else torch.exp(x)

    assert is_right(lowered(Marked(marked), EXAMPLE), plain, [*OTHERS, *((-x,) for (x,) in OTHERS)])


def test_choices_of_one_group_become_one_if_also_where_a_side_hands_on_what_it_was_given() -> None:
    def marked(x: Any) -> Any:
        decided = which(x.size(1) > 4)
        a = torch.sin(x)
        pairs = [(a, x), (a.sum(1), x[:, 0]), (x, x * 2)]
        return tuple(ops.choose(decided, first, second, 7) for first, second in pairs)

    def plain(x: Any) -> Any:
        a = torch.sin(x)
        return (a, a.sum(1), x) if x.size(1) > 4 else (x, x[:, 0], x * 2)

    made = lowered(Marked(marked), EXAMPLE)
    assert is_right(made, plain, OTHERS)
    assert all_operators(made.graph)["If"] == 1
    assert all_operators(made.graph)["Sin"] == 1


def test_sides_of_different_lengths_meet() -> None:
    def marked(x: Any) -> Any:
        cut = ops.choose(which(x.size(1) > 4), x[:, :4], x, 0)
        return torch.softmax(cut, 1)

    assert is_right(lowered(Marked(marked), EXAMPLE), lambda x: torch.softmax(x[:, :4], 1), OTHERS)


def test_what_both_sides_begin_and_end_with_is_computed_once_outside() -> None:
    torch.manual_seed(0)
    parts = nn.Linear(4, 16), nn.Linear(16, 16), nn.Linear(16, 4)

    def path(parts: Any, x: Any, *, long: bool) -> Any:
        before, inner, after = parts
        y = torch.relu(before(x))
        y = torch.sin(inner(y)) if long else y
        return torch.softmax(after(y), -1)

    def marked(*values: Any) -> Any:
        *parts, x = values
        return ops.choose(which(x.size(1) > 4), path(parts, x, long=True), path(parts, x, long=False), 0)

    made = lowered(Marked(marked, *parts), EXAMPLE)
    assert is_right(made, lambda x: path(parts, x, long=x.size(1) > 4), OTHERS)
    assert operators(made.graph)["MatMul"] == 2
    assert operators(made.graph)["Softmax"] == operators(made.graph)["Relu"] == 1
    assert operators(body(made.graph, "If", "then_branch"))["MatMul"] == 1
    assert operators(body(made.graph, "If", "else_branch")) == {"Identity": 1}
    floats = sum(v.const_value.nbytes for v in made.graph.initializers.values() if v.dtype == ir.DataType.FLOAT)
    assert floats == sum(p.numel() * 4 for part in parts for p in part.parameters())


def test_sides_that_are_the_same_need_no_branch() -> None:
    def marked(x: Any) -> Any:
        return ops.choose(which(x.size(1) > 4), torch.sin(x) + 1, torch.sin(x) + 1, 0), x + 2

    made = lowered(Marked(marked), EXAMPLE)
    assert is_right(made, lambda x: (torch.sin(x) + 1, x + 2), OTHERS)
    assert "If" not in all_operators(made.graph)


def test_different_weights_are_not_chosen_from() -> None:
    torch.manual_seed(0)
    parts = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)

    def marked(first: Any, second: Any, x: Any) -> Any:
        return ops.choose(which(x.size(1) > 4), first(x), second(x), 0)

    made = lowered(Marked(marked, *parts), EXAMPLE)
    assert is_right(made, lambda x: parts[x.size(1) <= 4](x), OTHERS)
    assert operators(body(made.graph, "If", "then_branch"))["MatMul"] == 1


def test_branches_inside_branches() -> None:
    def marked(x: Any) -> Any:
        n = x.size(1)
        inner = ops.choose(which(n > 8), torch.cos(x).sum(1), torch.tanh(x).amax(1), 1)
        other = ops.choose(which(n > 2), torch.exp(x).mean(1), torch.sigmoid(x)[:, 0], 2)
        return ops.choose(which(n > 4), inner, other, 0)

    def plain(x: Any) -> Any:
        n = x.size(1)
        if n > 4:
            return torch.cos(x).sum(1) if n > 8 else torch.tanh(x).amax(1)
        return torch.exp(x).mean(1) if n > 2 else torch.sigmoid(x)[:, 0]

    made = lowered(Marked(marked), EXAMPLE)
    assert is_right(made, plain, OTHERS)
    assert operators(made.graph)["If"] == 1
    for name in ("then_branch", "else_branch"):
        assert operators(body(made.graph, "If", name))["If"] == 1


def test_what_only_some_ways_need_is_never_computed_on_the_others() -> None:
    """Both inner branches read element 6, which shorter inputs do not have."""

    def marked(x: Any) -> Any:
        n = x.size(1)
        far = torch.exp(torch.cat([x, x], 1)[:, 12])
        first = ops.choose(which(n > 6), far + torch.sin(x).sum(1), torch.cos(x).sum(1), 1)
        second = ops.choose(which(n > 6), far * torch.cos(x).amax(1), torch.sin(x).amax(1), 2)
        return ops.choose(which(x.size(0) > 2), first, second, 0)

    def plain(x: Any) -> Any:
        far = torch.exp(torch.cat([x, x], 1)[:, 12]) if x.size(1) > 6 else None
        if x.size(0) > 2:
            return far + torch.sin(x).sum(1) if x.size(1) > 6 else torch.cos(x).sum(1)
        return far * torch.cos(x).amax(1) if x.size(1) > 6 else torch.sin(x).amax(1)

    made = lowered(Marked(marked), (torch.randn(2, 10, 4),))
    assert is_right(made, plain, [*OTHERS, *sequences(1, 5, 9, batch=1)])


def test_a_branch_may_depend_on_another() -> None:
    def marked(x: Any) -> Any:
        y = ops.choose(which(x.size(1) > 4), torch.sin(x), torch.exp(x) + 1, 0)
        return ops.choose(which((y.sum() > 9).item()), y.sum(1), torch.tanh(y).amax(1), 1), y

    def plain(x: Any) -> Any:
        y = torch.sin(x) if x.size(1) > 4 else torch.exp(x) + 1
        return (y.sum(1) if y.sum() > 9 else torch.tanh(y).amax(1)), y

    assert is_right(lowered(Marked(marked), EXAMPLE), plain, OTHERS)


def running(x: Any, start: Any, loop: int, function: Any) -> Any:
    """A loop over the axis 1 with a state, marked."""
    index, before = ops.loop_begin(x.size(1), [start], [], [], loop)
    after = function(before, x[:, number_of_step(index, x.size(1))])
    return ops.loop_end(x.size(1), [start], [after], [after], loop)


def run_plainly(x: Any, start: Any, function: Any) -> Any:
    states = [start]
    for t in range(x.size(1)):
        states.append(function(states[-1], x[:, t]))
    return states[-1], torch.stack(states[1:])


def add(h: Any, part: Any) -> Any:
    return torch.tanh(h + part)


def multiply(h: Any, part: Any) -> Any:
    return torch.sigmoid(h * part)


def test_loops_inside_branches() -> None:
    def marked(x: Any) -> Any:
        last, states = running(x, x[:, 0], 0, add)
        other, others = running(x, x[:, 0], 1, multiply)
        decided = which(x.size(1) > 4)
        return ops.choose(decided, last, other, 0), ops.choose(decided, states, others, 0)

    def plain(x: Any) -> Any:
        return run_plainly(x, x[:, 0], add if x.size(1) > 4 else multiply)

    made = lowered(Marked(marked), EXAMPLE)
    assert is_right(made, plain, OTHERS)
    assert "Scan" not in operators(made.graph)
    for name in ("then_branch", "else_branch"):
        assert operators(body(made.graph, "If", name))["Scan"] == 1


def test_a_loop_before_a_branch_is_traced_on_each_side_and_run_once() -> None:
    def marked(x: Any) -> Any:
        first, _ = running(x, x[:, 0], 0, add)
        second, _ = running(x, x[:, 0], 1, add)
        return ops.choose(which(x.size(1) > 4), torch.sin(first), torch.exp(second), 0)

    def plain(x: Any) -> Any:
        last, _ = run_plainly(x, x[:, 0], add)
        return torch.sin(last) if x.size(1) > 4 else torch.exp(last)

    made = lowered(Marked(marked), EXAMPLE)
    assert is_right(made, plain, OTHERS)
    assert all_operators(made.graph)["Scan"] == operators(made.graph)["Scan"] == 1


@pytest.mark.parametrize("opset", [20, 23])
def test_branches_inside_loops_leave_outside_what_was_computed_before_the_loop(opset: int) -> None:
    def marked(x: Any) -> Any:
        n, memory = x.size(1), torch.exp(x).sum(1)
        index, h = ops.loop_begin(n, [x[:, 0]], [], [], 0)
        t = number_of_step(index, n)
        part = x[:, t]
        far = torch.cat([x, x], 1)[:, n + 3]  # there for n > 3 only
        first = torch.tanh(h + memory + part)
        chosen = ops.choose(which(t % 2 == 0), first, torch.sin(part), 0)
        after = ops.choose(which(n > 3), chosen + torch.cos(far), chosen, 1)
        (last,) = ops.loop_end(n, [x[:, 0]], [after], [], 0)
        return last

    def plain(x: Any) -> Any:
        n, memory, h = x.size(1), torch.exp(x).sum(1), x[:, 0]
        for t in range(n):
            h = torch.tanh(h + memory + x[:, t]) if t % 2 == 0 else torch.sin(x[:, t])
            h = h + torch.cos(x[:, 3]) if n > 3 else h
        return h

    made = lowered(Marked(marked), EXAMPLE, opset)
    assert is_right(made, plain, OTHERS)
    assert operators(made.graph)["Exp"] == 1
    step = body(made.graph, "Scan")
    assert operators(step)["If"] == 2
    assert "Cos" not in operators(made.graph)


def test_a_loop_in_a_branch_in_a_loop_in_a_branch() -> None:
    def marked(x: Any) -> Any:
        n = x.size(1)
        index, h = ops.loop_begin(n, [x[:, 0]], [], [], 0)
        t = number_of_step(index, n)
        inner, _ = running(x, h, 1, add)
        after = ops.choose(which(t > 1), inner, torch.sin(h) + x[:, t], 0)
        last, hs = ops.loop_end(n, [x[:, 0]], [after], [h], 0)
        return ops.choose(which(n > 4), last + hs.sum(0), torch.exp(x[:, -1]), 1)

    def plain(x: Any) -> Any:
        h, hs = x[:, 0], []
        if x.size(1) <= 4:
            return torch.exp(x[:, -1])
        for t in range(x.size(1)):
            hs.append(h)
            h = run_plainly(x, h, add)[0] if t > 1 else torch.sin(h) + x[:, t]
        return h + torch.stack(hs).sum(0)

    made = lowered(Marked(marked), EXAMPLE)
    assert is_right(made, plain, OTHERS)
    outer = body(body(made.graph, "If", "then_branch"), "Scan")
    assert operators(body(outer, "If", "then_branch"))["Scan"] == 1
