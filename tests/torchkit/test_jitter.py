"""What is rounded moves, by about as much as was rounded; what is exact stays put."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from anyshape.torchkit.jitter import LowestFirst, jitter

EPSILON = torch.finfo(torch.float32).eps


def _drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def _runs(function: Callable[[Tensor], Tensor], value: Tensor, count: int = 8, strength: float = 8.0) -> Tensor:
    found = []
    for seed in range(count):
        given = value.clone()
        with jitter(seed, strength):
            found.append(function(given))
    return torch.stack(found)


def _padded_to_frames(x: Tensor) -> Tensor:
    """To whole frames of three, counted in tensors."""
    frames = torch.ceil(torch.tensor(x.shape[-1]) / 3)
    return F.pad(x, (0, int(frames * 3) - x.shape[-1])) / 7


def test_sizes_counted_in_tensors_do_not_move_but_values_do() -> None:
    x = _drawn(2, 12)
    assert bool((_runs(_padded_to_frames, x, strength=1.0) != _padded_to_frames(x)).any())


def test_a_part_of_a_complex_product_moves_by_what_cancels_in_it() -> None:
    x = torch.tensor([[1.1, 1.1], [1.1, 3.0]])
    moved = (_runs(lambda x: torch.view_as_real(torch.view_as_complex(x) ** 2), x)[:, 0, 0]).abs().max()
    assert float(moved) > 0


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.clone(),
        lambda x: x * 0.5,
        lambda x: torch.cat([x, -x]),
        lambda x: x.relu().sort(stable=True).values,
        lambda x: torch.floor(x.round() * 0.5),
        lambda x: (x > 0).float().sum(-1),
        lambda x: x.round().mean(-1, keepdim=True) * 0 + x.amax(-1, keepdim=True),
        lambda x: F.one_hot(x.relu().argmax(-1), 16).float(),
        lambda x: F.max_pool1d(x, 2),
        lambda x: x.masked_fill(x > 0, -1e4),
        lambda x: x.round().cumsum(-1),
        lambda x: x.mul_(2).neg_(),
        lambda x: x.where(x > 0, 0.0) @ x.new_zeros(16, 3),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_what_is_exact_stays_put(function: Callable[[Tensor], Tensor], dtype: torch.dtype) -> None:
    x = _drawn(4, 16).to(dtype)
    assert bool((_runs(function, x) == function(x.clone())).all())


def test_numbers_that_only_pass_through_stay_put_in_float64_too() -> None:
    x = _drawn(4, 16).double()
    assert bool((_runs(lambda x: torch.cat([x, x]).clone().amax(0), x) == torch.cat([x, x]).amax(0)).all())
    assert bool((_runs(lambda x: x / 3, x) != x / 3).any())


@pytest.mark.parametrize(
    ("function", "least", "most"),
    [
        (lambda x: x / 3, 1, 9),
        (lambda x: x.clone().div_(3), 1, 9),
        (lambda x: torch.exp(x), 1, 9),
        (lambda x: x.softmax(-1), 1, 60),
        (lambda x: F.layer_norm(x, (16,)), 1, 60),
    ],
)
def test_what_is_rounded_moves_by_a_few_roundings(
    function: Callable[[Tensor], Tensor], least: float, most: float
) -> None:
    x = _drawn(4, 16) + 0.1
    plain = function(x)
    moved = ((_runs(function, x) - plain).abs().amax(0) / plain.abs() / EPSILON).median()
    assert least < float(moved) < most


def test_a_sum_that_cancels_moves_by_what_it_is_summed_of() -> None:
    x = torch.tensor([[1000.0, -1000.0, 1e-3], [0.0, 0.0, 0.0]])
    moved = (_runs(lambda x: x @ torch.full((3, 2), 0.3), x) - x @ torch.full((3, 2), 0.3)).abs().amax(0)
    assert float(moved[0].min()) > 100 * EPSILON
    assert float(moved[1].max()) == 0.0


@pytest.mark.parametrize(
    "function",
    [
        lambda x: F.adaptive_avg_pool2d(x, 1), lambda x: F.avg_pool2d(x, (256, 257)), lambda x: x.mean((2, 3)),
        lambda x: x.flatten(2).cumsum(-1)[..., -1] / 65792, lambda x: x.sum() / x.numel(),
    ],
)  # fmt: skip
def test_a_long_sum_moves_as_far_as_one_that_is_summed_in_another_order(function: Callable[[Tensor], Tensor]) -> None:
    """Of more numbers than are moved beside a product, and so many that single moves would hide each other."""
    x = _drawn(1, 1, 256, 257)
    moved = (_runs(function, x, 4) - function(x)).abs().amax(0)
    assert 0.4 * EPSILON < float(moved / x.abs().mean()) < 8 * EPSILON
    assert float(_runs(function, x * 0, 1).abs().max()) == 0.0


def test_a_sum_that_is_exact_by_chance_moves_as_any_other() -> None:
    """About one of eight sums of few numbers is, in the order in which PyTorch adds them."""
    drawn = [torch.randn(6, generator=torch.Generator().manual_seed(seed)) for seed in range(200)]
    lucky = [x for x in drawn if float(x.sum()) == float(x.double().sum())]
    moved = [x for x in lucky if bool((_runs(torch.sum, x, 4) != x.sum()).any())]
    assert len(lucky) > 10
    assert len(moved) >= 0.9 * len(lucky)
    assert bool((_runs(torch.sum, lucky[0].round(), 4) == lucky[0].round().sum()).all())


@pytest.mark.parametrize("value", [0.1, -2.3])
def test_a_running_sum_of_equal_steps_moves_as_far_as_one_that_rounds_each_step(value: float) -> None:
    """Each step is rounded to the same side, so that the loss grows with the length; of one that is exact, none."""
    x = torch.full((4096,), value)
    in_steps = torch.from_numpy(np.cumsum(x.numpy(), dtype=np.float32))
    lost = (in_steps - x.cumsum(0)).abs()
    moved = (_runs(lambda x: x.cumsum(0), x, 4) - x.cumsum(0)).abs().amax(0)
    assert float(lost[-1] / x.cumsum(0)[-1].abs()) > 50 * EPSILON
    assert float(lost[-1]) <= float(moved[-1]) < 4 * float(lost[-1])
    assert float(_runs(lambda x: x.cumsum(0), torch.tensor(value), 1).max()) == pytest.approx(value)


@pytest.mark.parametrize("left", [torch.full((9, 13, 1024), 1 / 1024), _drawn(9, 13, 1024)], ids=["one sign", "both"])
def test_a_product_of_few_columns_moves_as_far_as_one_that_is_added_up_step_by_step(left: Tensor) -> None:
    right = _drawn(9, 1024, 16).abs() if (left > 0).all() else _drawn(9, 1024, 16)
    stepwise = torch.zeros(9, 13, 16)
    for k in range(1024):
        stepwise = torch.addcmul(stepwise, left[..., k, None], right[:, None, k])
    lost = (stepwise - left.double() @ right.double()).abs()
    moved = (_runs(lambda x: x @ right, left) - left @ right).abs().amax(0)
    assert 0.9 * lost.max() < moved.max() < 10 * lost.max()


def test_a_product_of_many_columns_or_few_terms_moves_by_its_roundings_alone() -> None:
    for left, right in ((torch.full((3, 1024), 1 / 1024), torch.ones(1024, 128)), (torch.ones(3, 100), _drawn(100, 8))):
        product = left @ right
        moved = (_runs(lambda x, right=right: x @ right, left) - product).abs()
        assert (moved <= 20 * EPSILON * product.abs().max()).all()


def test_a_zero_that_roundings_made_moves_and_one_that_none_made_does_not() -> None:
    x = torch.full((1, 7), 0.1)
    assert bool((_runs(lambda x: x - x.mean(-1, keepdim=True), x) != 0).any())
    assert bool((_runs(lambda x: x - x.amax(-1, keepdim=True), x) == 0).all())


def test_a_kernel_that_approximates_moves_by_its_own_error() -> None:
    x = torch.full((5,), -17.0)
    moved = (_runs(torch.sigmoid, x) - torch.sigmoid(x)).abs().amax(0)
    assert bool((moved > 1.2e-7).all())
    assert bool((moved < 1e-6).all())
    assert bool(((_runs(lambda x: x.sigmoid_(), x) - torch.sigmoid(x)).abs().amax(0) > 1.2e-7).all())


@pytest.mark.parametrize("shape", [(2, 6, 8), (2, 6)])
def test_a_norm_of_a_large_mean_loses_what_the_mean_does(shape: tuple[int, ...]) -> None:
    x = 300 + _drawn(*shape)
    for norm in (nn.LayerNorm(shape[-1]), nn.GroupNorm(3, 6)):
        with torch.no_grad():
            plain = norm(x)
            moved = (_runs(norm, x) - plain).abs().amax(0)
        assert 1e-4 < float(moved.median()) < 1e-2


def test_the_order_of_equal_values_is_open_where_pytorch_leaves_it_so() -> None:
    x = torch.tensor([1.0, 3.0, 1.0, 3.0, 0.0])
    assert _runs(lambda x: x.topk(2).indices, x)[:2].tolist() == [[1, 3], [3, 1]]
    assert _runs(lambda x: x.sort().indices, x)[:2].tolist() == [[4, 0, 2, 1, 3], [4, 2, 0, 3, 1]]
    assert bool((_runs(lambda x: x.sort(stable=True).indices, x) == torch.tensor([4, 0, 2, 1, 3])).all())
    assert bool((_runs(lambda x: x.argmax(), x) == 1).all())
    assert _runs(lambda x: x.kthvalue(2).indices, x)[:2].tolist() == [0, 2]
    assert _runs(lambda x: x.kthvalue(2, keepdim=True).values, x)[:2].tolist() == [[1.0], [1.0]]


def test_an_approximation_of_whole_numbers_has_the_kernel_s_error() -> None:
    whole = torch.arange(-8, 8)
    moved = (_runs(torch.sigmoid, whole) - torch.sigmoid(whole)).abs().amax(0)
    assert 0 < float(moved.max()) < 1e-6


def test_attention_moves_by_what_it_is_summed_of_where_it_drops_nothing() -> None:
    queries, keys, values = torch.randn(3, 1, 2, 5, 8, generator=torch.Generator().manual_seed(0))
    plain = F.scaled_dot_product_attention(queries, keys, values)
    with jitter(0):
        moved = F.scaled_dot_product_attention(queries, keys, values)
    assert 0 < float((moved - plain).abs().max()) < 1e-5
    with jitter(0):
        torch.manual_seed(0)
        dropped = F.scaled_dot_product_attention(queries, keys, values, dropout_p=0.5)
    torch.manual_seed(0)
    torch.testing.assert_close(dropped, F.scaled_dot_product_attention(queries, keys, values, dropout_p=0.5))


def test_equal_values_stay_equal_where_only_their_order_is_asked_for() -> None:
    x = torch.arange(40.0) * 0.1
    with LowestFirst() as mode:
        assert not mode.has_met_any
        assert (x * 0 + 1.1).topk(3).indices.tolist() == [0, 1, 2]
        assert mode.has_met_any
        assert (x * 0 + 1.1).sort(descending=True).indices.tolist() == list(range(40))
        assert torch.equal(x * 0.7, torch.mul(x, 0.7))
    with LowestFirst() as mode:
        x.sort(stable=True)
    assert not mode.has_met_any


def test_random_numbers_and_unwritten_memory_are_left_alone() -> None:
    with jitter(0):
        drawn = torch.rand(3, generator=torch.Generator().manual_seed(1))
        assert torch.empty(3).shape == (3,)
    assert torch.equal(drawn, torch.rand(3, generator=torch.Generator().manual_seed(1)))


def test_a_row_that_is_masked_as_a_whole_stays_where_it_is() -> None:
    scores = torch.randn(3, 5, generator=torch.Generator().manual_seed(0))
    scores[1] = torch.finfo(torch.float32).min
    plain = scores.softmax(-1)
    for seed in range(4):
        with jitter(seed, 8.0):
            moved = scores.softmax(-1)
        assert torch.allclose(moved, plain, rtol=2e-6, atol=0)
        assert not torch.equal(moved[0], plain[0])


def test_copies_beside_nan_stay_put() -> None:
    values = torch.randn(4, generator=torch.Generator().manual_seed(0))
    with jitter(0, 8.0):
        joined = torch.cat([values, torch.tensor([torch.nan])])
    assert torch.equal(joined[:4], values)


def test_the_largest_number_does_not_become_infinite() -> None:
    largest = torch.full((64,), torch.finfo(torch.float32).max / 2)
    with jitter(0, 8.0):
        assert bool((largest.reshape(32, 2).sum(1)).isfinite().all())
