"""Loops of the model's own code over a varying size come out as loops, and compute what Python does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from anyshape.conversion.control_flow.collected import LoopError
from tests.conversion.control_flow.keeping import is_right_at, kept, traced
from tests.conversion.control_flow.lowering import all_operators, is_right

SIZES = [(1, 1), (3, 2), (2, 9)]


class First(nn.Module):
    """Asks for the first step."""

    def forward(self, t: Any, x: Tensor) -> Tensor:
        return x if t == 0 else -x


class Model(nn.Module):
    """Runs one function with a cell and a layer."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.cell, self.layer = nn.GRUCell(4, 4), nn.Linear(4, 4)
        self.first = First()
        self.memory: Any = None
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(self, x)


def signals() -> list[tuple[Tensor]]:
    return [(torch.randn(batch, steps, 4),) for batch, steps in SIZES]


# ---- what is gone over


def over_range(m, x):
    h, outs = x.new_zeros(x.size(0), 4), []
    for t in range(x.size(1)):
        h = m.cell(x[:, t], h)
        outs.append(h)
    return torch.stack(outs, dim=1), h


def backwards(m, x):
    h, outs = x.new_zeros(x.size(0), 4), []
    for t in range(x.size(1) - 1, -1, -1):
        h = m.cell(x[:, t], h)
        outs.insert(0, h)
    return torch.stack(outs, 1)


def every_second(m, x):
    total = x.new_zeros(x.size(0), 4)
    for t in range(0, x.shape[1], 2):
        total = total * 0.5 + x[:, t]
    return total


def from_the_second(m, x):
    h = x[:, 0]
    for t in range(1, x.shape[1]):
        h = m.cell(x[:, t] - x[:, t - 1], h)
    return h


def over_a_tensor(m, x):
    outs = []
    for one in x:
        outs.append(m.layer(one).mean(0))
    return torch.stack(outs)


def over_unbound(m, x):
    h, outs = torch.zeros(x.shape[0], 4), []
    for frame in x.unbind(1):
        h = m.cell(frame, h)
        outs += [h.unsqueeze(1)]
    return torch.cat(outs, dim=1)


def over_split(m, x):
    outs = []
    for piece in x.split(1, dim=1):
        outs.append(m.layer(piece))
    return torch.cat(outs, 1)


def over_chunks(m, x):
    outs = [m.layer(piece) for piece in x.chunk(x.shape[1], dim=1)]
    return torch.cat(outs, 1)


def numbered(m, x):
    outs = []
    for i, (left, right) in enumerate(zip(x.unbind(1), (x * 2).unbind(1)), start=1):
        outs.append(m.layer(left) * i + right)
    return torch.stack(outs, 1)


def reversed_twice(m, x):
    h, outs = torch.zeros(x.shape[0], 4), []
    for frame in reversed(list(x.unbind(1))):
        h = m.cell(frame, h)
        outs.append(h)
    outs.reverse()
    return torch.stack(outs, 1)


def over_collected(m, x):
    first = [m.layer(frame) for frame in x.unbind(1)]
    outs = []
    for one, other in zip(first, x.unbind(1)):
        outs.append(one + other)
    return torch.stack(outs[::-1], 1), first[0], first[-1]


def comprehended(m, x):
    return torch.stack([m.layer(x[:, t]) * 2 for t in range(x.shape[1])], 1)


def generated(m, x):
    return sum(m.layer(frame) for frame in x.unbind(1)), torch.stack(tuple(x[:, t] * t for t in range(x.shape[1])), 1)


# ---- what is carried


def written(m, x):
    h, out = x.new_zeros(x.size(0), 4), torch.zeros_like(x)
    view = out[:, 0]
    for t in range(x.size(1)):
        h = m.cell(x[:, t], h)
        out[:, t] = h
    return out, view


def added_in_place(m, x):
    total = torch.zeros_like(x[:, 0])
    for frame in x.unbind(1):
        total += m.layer(frame)
    return total


def growing(m, x):
    out = x[:, :1]
    for t in range(1, x.size(1)):
        out = torch.cat([out, m.layer(out[:, -1:]) + x[:, t : t + 1]], 1)
    return out + x


def from_none(m, x):
    h = None
    for frame in x.unbind(1):
        h = m.cell(frame, h)
    return h


def from_a_number(m, x):
    total = 0
    for frame in x.unbind(1):
        total = total + m.layer(frame)
    return total


def broadcast_up(m, x):
    h, outs = torch.zeros(1, 4), []
    for frame in x.unbind(1):
        h = torch.tanh(h + m.layer(frame))
        outs.append(h)
    return torch.stack(outs, 1)


def first_is_special(m, x):
    outs = []
    for t in range(x.size(1)):
        if t == 0:
            h = m.layer(x[:, t])
            outs.append(h)
        else:
            h = m.cell(x[:, t] - x[:, t - 1], h)
            outs.append(h * 2)
    return torch.stack(outs, 1)


def first_in_a_submodule(m, x):
    outs = []
    for t in range(x.size(1)):
        outs.append(m.first(t, m.layer(x[:, t])))
    return torch.stack(outs, 1)


def counted(m, x):
    place, weight, outs = 0, 1.0, []
    for frame in x.unbind(1):
        weight = weight * 0.5
        outs.append(frame * weight + x[:, place])
        place += 1
    return torch.stack(outs, 1) * place


def fibonacci(m, x):
    before, now = 1, 1
    for frame in x.unbind(1):
        before, now = now, before + now
    return x * now


def last_of_the_list(m, x):
    outs = [m.layer(x[:, 0])]
    for t in range(x.shape[1]):
        outs.append(m.cell(x[:, t], outs[-1]))
    return torch.stack(outs, 1)


def whole_list(m, x):
    states = []
    for frame in x.unbind(1):
        if not states:
            states.append(frame)
        states.append(m.cell(frame, torch.stack(states).mean(0)))
    return torch.stack(states[1:], 1)


def layers_within(m, x):
    states, outs = [x.new_zeros(x.size(0), 4) for _ in range(2)], []
    for frame in x.unbind(1):
        for level, state in enumerate(states):
            frame = states[level] = m.cell(frame, state)  # noqa: PLW2901
        outs.append(frame)
    return torch.stack(outs, 1), states[0]


def on_self(m, x):
    m.memory = x.new_zeros(x.size(0), 4)
    for frame in x.unbind(1):
        m.memory = m.cell(frame, m.memory)
    result, m.memory = m.memory, None
    return result


def bound_inside(m, x):
    for t in range(x.shape[1]):
        last = m.layer(x[:, t])
    return last * t


def bound_inside_from_none(m, x):
    h = None
    for t in range(x.shape[1]):
        h = m.cell(x[:, t], h)
        last = torch.tanh(h) * (t + 1)
    return last * t


def skipping(m, x):
    outs = []
    for t in range(x.shape[1]):
        outs.append(x[:, t] * 2)
        continue
    outs.append(x[:, 0])
    return torch.stack(outs, 1)


def twice(m, x):
    for _ in range(2):
        outs = []
        for frame in x.unbind(1):
            y = m.layer(frame)
            outs.append(y)
        x = torch.stack(outs, 1)
    return x


def rows_and_columns(m, x):
    cells = []
    for row in x:
        for cell in row:
            cells.append(m.layer(cell))
    return torch.stack(cells)


ALL = [
    over_range, backwards, every_second, from_the_second, over_a_tensor, over_unbound, over_split,
    over_chunks, numbered, reversed_twice, over_collected, comprehended, generated, written, added_in_place,
    growing, from_none, from_a_number, broadcast_up, first_is_special, first_in_a_submodule, counted,
    fibonacci, last_of_the_list, whole_list, layers_within, on_self, bound_inside,
    bound_inside_from_none, skipping, twice,
    rows_and_columns,
]  # fmt: skip


@pytest.mark.parametrize("function", ALL, ids=lambda function: function.__name__)
def test_a_loop_computes_what_python_does_at_every_size(function: Callable[..., Any]) -> None:
    assert is_right_at(Model(function), (torch.randn(2, 5, 4),), signals())


def test_a_loop_over_an_axis_becomes_one_scan_and_is_told() -> None:
    made, said = kept(Model(over_range), torch.randn(2, 5, 4))
    line = over_range.__code__.co_firstlineno + 2
    assert said == [
        f"loop over `range(x.size(1))` kept as Scan: tests/conversion/control_flow/test_loop_passes.py:{line}"
    ]
    assert all_operators(made.graph)["Scan"] == 1


def test_a_first_step_that_differs_is_taken_before_the_loop() -> None:
    made, _ = kept(Model(from_none), torch.randn(2, 5, 4))
    assert all_operators(made.graph)["Tanh"] == 2  # of the cell
    assert is_right(made, Model(from_none), [(torch.randn(2, 1, 4),)])


# ---- what cannot be kept


def left_by_break(m, x):
    for frame in x.unbind(1):
        x = x + frame.unsqueeze(1)
        break
    return x


def test_a_loop_that_is_left_by_break_takes_no_other_step() -> None:
    assert is_right_at(Model(left_by_break), (torch.randn(2, 5, 4),), signals())


def left_by_return(m, x):
    for frame in x.unbind(1):
        return frame
    return x


def left_by_exception(m, x):
    try:
        for frame in x.unbind(1):
            raise KeyError  # noqa: TRY301
    except KeyError:
        pass
    return x


def test_a_loop_that_is_left_early_is_refused() -> None:
    line = left_by_return.__code__.co_firstlineno + 1
    with pytest.raises(LoopError) as refused:
        traced(Model(left_by_return), torch.randn(2, 5, 4))
    place = f"tests/conversion/control_flow/test_loop_passes.py:{line}"
    assert str(refused.value).splitlines()[0] == f"a loop over `x.unbind(1)` is left early: {place}"


def test_a_loop_that_an_exception_leaves_unseen_is_refused() -> None:
    with pytest.raises((LoopError, KeyError)):
        traced(Model(left_by_exception), torch.randn(2, 5, 4))
