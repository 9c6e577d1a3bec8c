"""The roles of values in a loop, found by comparing what a pass was given with what it left."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from anyshape.conversion.control_flow.carried import (
    Gathered,
    Kept,
    LeafRole,
    LoopScope,
    Peel,
    State,
    found_role,
    merged,
)
from anyshape.conversion.control_flow.collected import LoopError
from tests.conversion.control_flow.keeping import kept, traced
from tests.conversion.control_flow.lowering import all_operators


def _role(before: object, after: object) -> object:
    return found_role(Kept.of(before), Kept.of(after))


def test_what_a_pass_leaves_alone_has_no_role() -> None:
    x = torch.ones(2)
    assert _role(x, x) is None
    assert _role("text", "text") is None


def test_a_list_that_grows_at_either_end_is_gathered() -> None:
    x, y = torch.ones(2), torch.zeros(2)
    assert _role([x], [x, y]) == Gathered(1)
    assert _role([x], [y, y, x]) == Gathered(2)
    assert _role([x], [y]) == State((LeafRole("tensor"),))


def test_numbers_that_grow_evenly_are_counted_and_others_carried() -> None:
    assert _role(1, 4) == State((LeafRole("counted", step=3),))
    assert _role(1.0, 4.0) == State((LeafRole("number"),))


def test_a_tensor_that_is_written_to_is_told_from_one_that_is_replaced() -> None:
    x = torch.ones(2)
    before = Kept.of(x)
    x.add_(1)
    assert found_role(before, Kept.of(x)) == State((LeafRole("tensor", is_written=True),))
    assert _role(torch.ones(3, 2), torch.ones(4, 2)) == State((LeafRole("tensor", axes=frozenset({0})),))


def test_a_value_of_another_kind_asks_for_the_first_step_alone() -> None:
    assert _role(None, torch.ones(2, 3)) == Peel("None in one step and a tensor of 2x3 (float32) in the next")


def test_what_one_path_changes_is_carried_on_all() -> None:
    fixed, changed = State((LeafRole(), LeafRole("number"))), State((LeafRole("tensor"), LeafRole("counted", step=1)))
    assert merged([{"h": fixed}, {"h": changed}]) == {"h": State((LeafRole("tensor"), LeafRole("number")))}


def test_a_scope_reads_names_and_attributes_and_sets_the_attributes_back() -> None:
    module = nn.Module()
    module.register_buffer("memory", torch.zeros(1))
    module.count = 1  # type: ignore[assignment]
    local = 5
    scope = LoopScope(lambda: {"local": local}, ["local"], [module])
    before = scope.read()
    assert before["local"].value == local
    module.count, module.other = 2, 3  # type: ignore[assignment]
    scope.write({key: kept.value for key, kept in before.items()})
    assert scope.given == {"local": 5}
    assert module.count == 1
    assert not hasattr(module, "other")


class Model(nn.Module):
    """Its loops are in functions of this file."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(self, x)


def widening(m, x):
    state = x[:, 0]
    for frame in x.unbind(1):
        state = state.unsqueeze(0)
    return state


def test_a_state_that_never_settles_is_named() -> None:
    with pytest.raises(LoopError) as refused:
        traced(Model(widening), torch.randn(2, 5, 4))
    told = (
        "a loop carries `state`, which is a tensor of 1x1x1x1x?x4 (float32) in one step "
        "and a tensor of 1x1x1x1x1x?x4 (float32)"
    )
    assert str(refused.value).startswith(told)


# ---- laid out as tensors


def growing(m, x):
    out = x[:, :1]
    for t in range(1, x.size(1)):
        out = torch.cat([out, out[:, -1:].sin() + x[:, t : t + 1]], 1)
    return out + x


def test_a_tensor_that_grows_becomes_a_loop() -> None:
    made, said = kept(Model(growing), torch.randn(2, 5, 4))
    assert all_operators(made.graph)["Loop"] == 1
    assert " kept as Loop: " in said[0]


def two_names(m, x):
    out = torch.zeros_like(x)
    view = out[:, 0]
    for t in range(x.shape[1]):
        out[:, t] = x[:, t]
        view += 1
    return out


def test_views_of_one_memory_are_refused() -> None:
    with pytest.raises(LoopError, match="a loop writes to a tensor that goes by two names, `out` and `view`"):
        traced(Model(two_names), torch.randn(2, 5, 4))
