"""Operations are counted while the module does what it always does."""

from __future__ import annotations

import torch
from torch import nn

from anyshape.torchkit.operation_count import counted_effort


def work_of(call):
    return counted_effort(call).computed


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


def test_fast_paths_hide_nothing():
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).eval()
    found = []
    for length in (100, 1000):
        with torch.no_grad():
            found.append(counted_effort(lambda length=length: layer(torch.zeros(2, length, 32))))
    assert [max(one.largest.values()) for one in found] == [2 * 4 * 100**2 * 4, 2 * 4 * 1000**2 * 4]
    assert torch.backends.mha.get_fastpath_enabled()


def test_a_recurrent_layer_costs_its_weights_at_every_step():
    layer = nn.LSTM(64, 64).eval()
    with torch.no_grad():
        assert work_of(lambda: layer(torch.zeros(10, 2, 64))) > 20 * 2 * 4 * 64 * 64 / 32


def test_the_largest_result_is_told_in_bytes():
    one, other = torch.zeros(3, dtype=torch.float64), torch.zeros(5, 3, dtype=torch.float64)
    assert counted_effort(lambda: one + other).largest == {"add.tensor": 120}


def test_a_call_that_fails_has_no_effort():
    assert counted_effort(lambda: torch.zeros(2) + torch.zeros(3)) is None
