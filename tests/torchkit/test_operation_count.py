"""Operations are counted while the module does what it always does."""

from __future__ import annotations

import torch
from torch import nn

from anyshape.sizes import budgets
from anyshape.torchkit.operation_count import counted_effort


def work_of(call):
    found = counted_effort(call)
    return found.work - found.calls * budgets.WORK_OF_A_CALL


def test_views_cost_their_call_alone():
    x = torch.randn(6, 4)
    assert work_of(lambda: x.view(4, 6).T[1:]) == 0
    assert work_of(lambda: x + 1) == 24


def test_products_are_counted_through_layers():
    layer, x = nn.Linear(64, 8), torch.randn(4, 64)
    with torch.no_grad():
        assert work_of(lambda: layer(x)) == 32 + 4 * 64 * 8 / 32


def test_attention_grows_with_the_square_of_its_length():
    def work(length):
        x = torch.randn(1, 2, length, 8)
        return work_of(lambda: nn.functional.scaled_dot_product_attention(x, x, x))

    assert work(4000) > 3.5 * work(2000)


def test_a_recurrent_layer_costs_its_weights_at_every_step():
    layer = nn.LSTM(64, 64).eval()
    with torch.no_grad():
        assert work_of(lambda: layer(torch.zeros(10, 2, 64))) > 20 * 2 * 4 * 64 * 64 / 32


def test_the_largest_result_is_told_in_bytes():
    assert (
        counted_effort(lambda: torch.zeros(3, dtype=torch.float64) + torch.zeros(5, 3, dtype=torch.float64)).largest
        == 120
    )


def test_a_call_that_fails_has_no_effort():
    assert counted_effort(lambda: torch.zeros(2) + torch.zeros(3)) is None
