"""What is made of given noise is distributed as what torch draws, and every draw is found at its expression."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from anyshape.errors import DeclarationError
from anyshape.torchkit.draws import GivenDraws, Noise, WantedNoise, drawing_places, standard_noise

N = 40_000
ONES, RAMP = torch.ones(N), torch.linspace(-1, 1, N)

DRAWS: dict[str, Callable[[], Tensor]] = {
    "randn": lambda: torch.randn(N, dtype=torch.float64),
    "randn_like": lambda: torch.randn_like(ONES),
    "rand": lambda: torch.rand(size=(N,)),
    "rand_like": lambda: torch.rand_like(ONES),
    "rand out": lambda: torch.rand(N, out=torch.empty(N)),
    "normal": lambda: torch.normal(RAMP, 0.5),
    "normal of numbers": lambda: torch.normal(3.0, 0.5, (N,)),
    "normal_": lambda: torch.empty(N).normal_(1.0, std=3.0),
    "log_normal_": lambda: torch.empty(N).log_normal_(0.0, 0.25),
    "uniform_": lambda: torch.empty(N).uniform_(-1, 3),
    "uniform_ by name": lambda: torch.empty(N).uniform_(to=3),
    "exponential_": lambda: torch.empty(N).exponential_(2.0),
    "cauchy_": lambda: torch.empty(N).cauchy_().atan(),
    "geometric_": lambda: torch.empty(N).geometric_(0.3),
    "bernoulli": lambda: torch.bernoulli(ONES * 0.3),
    "bernoulli of a number": lambda: ONES.bernoulli(0.7),
    "bernoulli_": lambda: torch.empty(N).bernoulli_(0.2),
    "randint": lambda: torch.randint(7, (N,)).float(),
    "randint from": lambda: torch.randint(-2, 5, (N,)).float(),
    "randint by name": lambda: torch.randint(low=3, high=5, size=(N,)).float(),
    "randint_like": lambda: torch.randint_like(ONES, 2, 6),
    "random_": lambda: torch.empty(N).random_(1, 4),
    "randperm": lambda: torch.randperm(N)[: N // 2].float() / N,
    "multinomial": lambda: torch.multinomial(torch.tensor([1.0, 0.0, 3.0, 2.0]), N, replacement=True).float(),
    "multinomial once": lambda: torch.multinomial(torch.tensor([1.0, 0.0, 3.0]).expand(N, 3), 1).float(),
    "multinomial without": lambda: torch.multinomial(torch.tensor([1.0, 2.0, 3.0]).expand(N, 3), 2).float()[:, 1],
    "dropout": lambda: F.dropout(ONES, 0.3, True),
    "dropout in place": lambda: F.dropout(ONES.clone(), 0.3, inplace=True),
    "dropout_": lambda: torch.dropout_(ONES.clone(), 0.3, True),
    "dropout1d": lambda: F.dropout1d(torch.ones(N // 10, 10, 2), 0.3)[:, :, 0],
    "dropout2d": lambda: F.dropout2d(torch.ones(N // 10, 10, 1, 2), 0.3)[..., 0],
    "dropout3d": lambda: F.dropout3d(torch.ones(N, 1, 1, 1), 0.3),
    "alpha_dropout": lambda: F.alpha_dropout(RAMP, 0.3, training=True),
    "feature_alpha_dropout": lambda: F.feature_alpha_dropout(torch.ones(N // 10, 10, 2), 0.3, training=True),
    "rrelu": lambda: F.rrelu(RAMP, training=True),
    "gumbel_softmax": lambda: F.gumbel_softmax(torch.tensor([0.0, 1.0, 2.0]).expand(N, 3), 0.5)[:, 2],
    "gumbel_softmax hard": lambda: F.gumbel_softmax(torch.tensor([0.0, 1.0]).expand(N, 2), hard=True)[:, 1],
    "attention": lambda: F.scaled_dot_product_attention(
        torch.ones(N // 10, 2, 3, 4), torch.ones(N // 10, 1, 3, 4), torch.ones(N // 10, 1, 3, 4), dropout_p=0.3,
        is_causal=True, enable_gqa=True,
    ),
}  # fmt: skip


def given(run: Callable[[], Tensor]) -> tuple[Tensor, list[Noise]]:
    chance, asked = torch.Generator().manual_seed(0), list[Noise]()

    def give(wanted: WantedNoise) -> Tensor:
        asked.append(wanted.noise)
        return standard_noise(wanted.noise, wanted.shape, wanted.dtype, chance)

    with GivenDraws(give):
        return run(), asked


@pytest.mark.parametrize("name", DRAWS)
def test_given_noise_is_distributed_as_what_torch_draws(name: str) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        drawn = DRAWS[name]()
        state = torch.get_rng_state()
        made, asked = given(DRAWS[name])
        assert torch.equal(state, torch.get_rng_state())
    assert len(asked) == 1
    assert (made.shape, made.dtype) == (drawn.shape, drawn.dtype)
    spread = float(drawn.std())
    assert abs(float(made.mean() - drawn.mean())) < 0.03 * spread
    assert abs(float(made.std()) - spread) < 0.05 * spread
    quantiles = torch.tensor([0.06, 0.27, 0.71, 0.93], dtype=drawn.dtype)
    flat = drawn.flatten()[:N], made.flatten()[:N]
    assert torch.allclose(flat[0].quantile(quantiles), flat[1].quantile(quantiles), atol=0.05 * spread, rtol=0.05)


def test_the_ends_of_uniform_noise_stay_inside() -> None:
    ends = iter([0.0, 1 - 2**-24] * 10)

    def give(wanted: WantedNoise) -> Tensor:
        return torch.full(wanted.shape, next(ends), dtype=wanted.dtype)

    with GivenDraws(give):
        assert [int(torch.randint(3, ())) for _ in range(2)] == [0, 2]
        assert all(bool(torch.empty(1).exponential_().isfinite()) for _ in range(2))
        assert all(bool(F.gumbel_softmax(torch.zeros(3)).isfinite().all()) for _ in range(2))
        assert [int(torch.multinomial(torch.tensor([0.0, 1.0, 0.0]), 1)) for _ in range(2)] == [1, 1]


@pytest.mark.parametrize(
    "run",
    [
        lambda: F.dropout(ONES, 0.5, training=False),
        lambda: F.dropout(ONES, 0.0),
        lambda: F.rrelu(RAMP),
        lambda: F.alpha_dropout(RAMP),
        lambda: F.scaled_dot_product_attention(*[RAMP.view(10, 4000)] * 3),
    ],
)
def test_nothing_is_given_where_nothing_is_drawn(run: Callable[[], Tensor]) -> None:
    made, asked = given(run)
    assert asked == []
    assert torch.allclose(made, run())


@pytest.mark.parametrize(
    ("run", "function", "what"),
    [
        (lambda: torch.randn(2, dtype=torch.complex64), "randn", "numbers of type complex64"),
        (lambda: torch.randint(2**40, (2,)), "randint", "one of 1099511627776 integers"),
        (lambda: torch.empty(2).random_(), "random_", "any number of its type"),
    ],
)
def test_what_noise_does_not_express_is_told(run: Callable[[], Tensor], function: str, what: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        given(run)
    told = rf"`{function}` \(tests/torchkit/test_draws.py:\d+\) draws {what}, which standard noise does not express"
    assert re.fullmatch(told, str(refused.value))


class Places:
    def torchs(self, x: Tensor) -> Tensor:
        y = x + 1
        F.rrelu(y)
        F.dropout(y, training=False)
        return y * torch.randn_like(y) + F.dropout(x)

    def pythons(self, x: Tensor) -> Tensor:
        scale = random.random()
        return x * scale

    def numpys(self, x: Tensor) -> Tensor:
        return self._scaled(x) + 1

    def _scaled(self, x: Tensor) -> Tensor:
        z = x + 1
        return z * float(np.random.rand())


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("torchs", [("randn_like", "torch.randn_like(y)"), ("bernoulli_", "F.dropout(x)")]),
        ("pythons", [("random", "scale = random.random()")]),
        ("numpys", [("numpy.random", "return z * float(np.random.rand())")]),
    ],
)
def test_draws_are_found_at_their_expressions(name: str, found: list[tuple[str, str]]) -> None:
    lines = Path(__file__).read_text(encoding="utf8").splitlines()
    run = getattr(Places(), name)
    places = drawing_places(lambda: run(torch.ones(3)))
    spans = [(by, span.line - 1, span.column - 1, span.end_column or 999) for span, by in places.items() if span]
    assert [(by, lines[line][start : end - 1]) for by, line, start, end in spans] == found
