"""Marks as nodes: what their inputs and outputs are, whichever side of the translation looks at them."""

from __future__ import annotations

from typing import Any

import torch

from anyshape.conversion.control_flow.marks import (
    CHOOSE,
    LOOP_BEGIN,
    LOOP_END,
    count_of,
    group_of,
    growing_of,
    initial_of,
    is_mark,
    loop_of,
    marks_of,
    results_of,
    sequences_of,
    sides,
)
from tests.conversion.control_flow.lowering import Marked, ops, translated

EXAMPLE = (torch.randn(2, 5, 4),)


def test_a_choice_has_two_sides() -> None:
    made = translated(Marked(lambda x: ops.choose(torch.sym_ite(x.size(1) > 3, 1, 0), x.sin(), x.cos(), 7)), EXAMPLE)
    (choice,) = marks_of(made.graph, CHOOSE)
    _, (first,), (second,) = sides(choice)
    assert [value.producer().op_type for value in (first, second)] == ["Sin", "Cos"]
    assert group_of(choice) == 7
    assert not any(is_mark(node) for node in made.graph if node is not choice)


def test_both_ends_of_a_loop_know_what_goes_round() -> None:
    def marked(x: Any) -> Any:
        state = x[:, 0]
        _, carried, row = ops.loop_begin(x.size(1), [state], [x.transpose(0, 1)], [], 3)
        after = (carried + row).tanh()
        last, every = ops.loop_end(x.size(1), [state], [after], [after.exp()], 3)
        return last + every.sum(0)

    made = translated(Marked(marked), EXAMPLE)
    (begin,), (end,) = marks_of(made.graph, LOOP_BEGIN), marks_of(made.graph, LOOP_END)
    assert loop_of(begin) == loop_of(end) == 3
    assert initial_of(begin) == initial_of(end)
    assert (len(sequences_of(begin)), list(growing_of(begin))) == (1, [])
    (carried,), (collected,) = results_of(end)
    assert (carried.producer().op_type, collected.producer().op_type) == ("Tanh", "Exp")
    assert count_of(begin).producer().op_type in ("Shape", "Squeeze", "Gather")


def test_an_axis_that_grows_has_a_size_of_its_own() -> None:
    made = translated(Marked(lambda x: ops.named(x, [1]) + 0), EXAMPLE)
    sizes = made.graph.outputs[0].shape
    assert sizes[1] != made.graph.inputs[0].shape[1]
    assert sizes[0] == made.graph.inputs[0].shape[0]
