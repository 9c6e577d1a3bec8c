"""From the line where two sizes meet to the one that wrote the number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from anyshape.diagnosis.causes import Want, frozen, function_name, is_trivial, numbers_of, wanted
from anyshape.sizes.notation import Expression, parse_condition, parse_expression
from anyshape.torchkit.recorder import track_calls
from tests.diagnosis.traced import seen_in, the_text_of


class Literal(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        zeros = torch.zeros(3, 4)
        doubled = zeros * 2
        return x + doubled


class Table(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.positions = nn.Parameter(torch.randn(3, 4))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.positions


class Weight(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(x.transpose(0, 1))


class Asserted(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        assert x.shape[0] == 3
        return x * 2


ROWS = (torch.randn(3, 4),), {"x": "n 4"}


def test_the_call_that_was_given_the_number_is_blamed_and_not_the_one_that_met_it() -> None:
    (cause,), _ = seen_in(Literal(), *ROWS)
    assert (cause.kind, the_text_of(cause)) == ("number", "torch.zeros(3, 4)")
    assert [(str(want.expression), want.size) for want in cause.wants] == [("n", 3)]
    assert cause.seen is not None
    assert cause.seen.line == cause.site.line + 2
    assert cause.dims == ("n",)


def test_a_table_is_named_as_the_module_names_it() -> None:
    (cause,), _ = seen_in(Table(), *ROWS)
    assert (cause.kind, cause.table, cause.layer) == ("table", "positions", "")


def test_the_weight_of_a_layer_is_the_architecture_s() -> None:
    (cause,), _ = seen_in(Weight(), *ROWS)
    assert (cause.kind, cause.table, cause.layer) == ("table", "head.weight", "head")


def test_an_axis_that_was_not_declared_is_an_input_s() -> None:
    class Added(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return x + y

    (cause,), _ = seen_in(Added(), (torch.randn(3, 4), torch.randn(3, 4)), {"x": "n 4"})
    assert (cause.kind, cause.name) == ("input", "y")


def test_python_s_own_comparison_is_a_decision() -> None:
    (cause,), _ = seen_in(Asserted(), *ROWS)
    assert (cause.kind, [str(one) for one in cause.conditions]) == ("decision", ["n == 3"])


def test_a_healthy_model_has_no_cause() -> None:
    assert seen_in(nn.Linear(4, 4), (torch.randn(3, 4),), {"input": "n 4"})[0] == []


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("2 * n == 6", [("n", 3), ("2 * n", 6)]),
        ("6 == n", [("n", 6)]),
        ("n == m", []),
        ("n <= 6", []),
    ],
)
def test_what_a_condition_wants_to_be_a_size(condition: str, found: list[tuple[str, int]]) -> None:
    assert wanted(parse_condition(condition)) == [Want(parse_expression(text), size) for text, size in found]


def test_the_same_dim_on_two_inputs_tells_nothing() -> None:
    assert is_trivial(parse_condition("n == n"))
    assert is_trivial(parse_condition("n != 3"))
    assert not is_trivial(parse_condition("n == 3"))


def test_plain_numbers_of_a_call_are_found_at_any_depth() -> None:
    x = torch.zeros(6)
    view, cut = track_calls(lambda: x.view((2, 3))[0:1, True]).calls
    assert (function_name(view.function), numbers_of(view)) == ("view", [2, 3])
    assert numbers_of(cut) == [0, 1]


# ---- sizes that were written as numbers where nothing fails


EXAMPLE = {"n": 5, "m": 3}
SIZES = {5: parse_expression("n"), 3: parse_expression("m")}


def _in_dims(size: Any) -> Expression | None:
    return SIZES.get(size)


def _found(run: Callable[[Tensor], object]) -> list[tuple[str, str, int]]:
    track = track_calls(lambda: run(torch.randn(5, 3, 4)))
    causes = frozen(track, _in_dims, EXAMPLE)
    return [(cause.kind, str(want.expression), want.size) for cause in causes for want in cause.wants]


@pytest.mark.parametrize(
    ("run", "expression", "size"),
    [
        (lambda x: x.sum(dim=0) / 5, "n", 5),
        (lambda x: x.sum(1) * (1 / 3), "m", 3),
        (lambda x: x.sum(dim=(0, 1)) / 15.0, "(n) * (m)", 15),
        (lambda x: x.sum(dim=0, keepdim=True).squeeze(0).div(5), "n", 5),
    ],
)
def test_a_sum_divided_by_the_number_of_its_terms_is_a_mean(
    run: Callable[[Tensor], object], expression: str, size: int
) -> None:
    ((kind, found, number),) = _found(run)
    assert (kind, number) == ("mean", size)
    assert parse_expression(found).value(EXAMPLE) == parse_expression(expression).value(EXAMPLE)


def _looped(x: Tensor) -> Tensor:
    total = x[0]
    for i in range(5):
        total = total + x[i]
    return total


def test_a_loop_that_reads_every_entry_counts_to_the_size() -> None:
    assert _found(_looped) == [("loop", "n", 5)]
    assert _found(lambda x: [x.select(1, i) for i in range(3)]) == [("loop", "m", 3)]


@pytest.mark.parametrize(
    "run",
    [
        lambda x: x.sum(dim=0) / 4,
        lambda x: x.sum(dim=2) / 4,
        lambda x: x.exp() / 5,
        lambda x: [x[i] for i in range(4)],
        lambda x: [x[i] for i in (1, 0, 2, 3, 4)],
        lambda x: x.mean(dim=0),
    ],
    ids=["another number", "a static axis", "no sum", "too few", "another order", "a mean"],
)
def test_other_numbers_are_left_alone(run: Callable[[Tensor], object]) -> None:
    assert _found(run) == []
