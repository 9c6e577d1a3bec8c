"""The module in eager at any size: what it gives, what it keeps, and what it makes of other values."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import anyshape
from anyshape.model import oracle
from anyshape.model.oracle import Reference
from anyshape.model.request import understand


def _reference(model: Any, *args: Any, dims: Any, make_inputs: Any = None) -> Reference:
    request = understand(model, args, None, dims=dims, make_inputs=make_inputs)
    made = (request.target, request.signature, request.spec)
    if make_inputs is None:
        return oracle.from_example(*made, seed=0)
    return oracle.from_make_inputs(*made, make_inputs, seed=0)


class Counting(nn.Module):
    """Counts its calls, and keeps the last input's length."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0
        self.register_buffer("seen", torch.zeros(1))
        self.lengths: dict[int, int] = {}

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.seen += 1
        self.lengths[x.shape[0]] = 1
        return x * self.seen


ROWS = {"x": "n 3"}


def test_every_run_starts_from_the_state_at_the_beginning() -> None:
    model = Counting()
    reference = _reference(model, torch.randn(2, 3), dims=ROWS)
    first, second = reference.run({"n": 2}), reference.run({"n": 4})
    assert [tuple(one.outputs[0].shape) for one in (first, second)] == [(2, 3), (4, 3)]
    assert torch.equal(second.outputs[0], second.leaves["x"])
    assert (model.calls, float(model.seen), model.lengths) == (0, 0.0, {})


def test_a_run_is_remembered_and_forgotten_by_a_twin() -> None:
    reference = _reference(Counting(), torch.randn(2, 3), dims=ROWS)
    assert reference.run({"n": 4}) is reference.run({"n": 4})
    assert reference.run({"n": 4}, 1) is not reference.run({"n": 4})
    assert reference.forgetful().run({"n": 4}) is not reference.run({"n": 4})


def test_what_a_call_changes_is_told_and_put_back() -> None:
    model = Counting()
    reference = _reference(model, torch.randn(2, 3), dims=ROWS)
    assert reference.changes(reference.run({"n": 2}))
    assert model.lengths == {}
    model.calls = 7  # by somebody else: it is theirs
    reference.run({"n": 4})
    assert model.calls == 7


def turned(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x.t_().unsqueeze_(0) + y.mul_(2)


def test_inputs_that_a_call_gives_another_shape_are_known_and_the_contract_has_their_own() -> None:
    call = torch.randn(2, 3), torch.randn(3, 2)
    reference = _reference(turned, *call, dims={"x": "n m", "y": "m n"})
    reference.run({"n": 2, "m": 3})
    assert reference.module.reshaped == {"x"}
    result = anyshape.export(turned, call, dims={"x": "n m", "y": "m n"}, quick=True)
    assert [port.axes for port in (*result.inputs, *result.outputs)] == [("n", "m"), ("m", "n"), (1, "m", "n")]
    assert tuple(call[0].shape) == (2, 3)


def taken_over(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    x.set_(y)
    return x * 2


def test_an_input_that_takes_over_another_of_its_shape_is_known() -> None:
    call = torch.randn(2, 3), torch.randn(2, 3)
    result = anyshape.export(taken_over, call, dims={"x": "n 3", "y": "n 3"}, quick=True)
    assert torch.equal(result(torch.ones(5, 3), torch.zeros(5, 3))[0], torch.zeros(5, 3))


def test_a_size_that_fails_is_an_outcome() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        return x + torch.zeros(2, 3)

    outcome = _reference(forward, torch.randn(2, 3), dims=ROWS).run({"n": 5})
    assert not outcome.runs
    assert isinstance(outcome.error, RuntimeError)


def test_a_call_that_was_refused_is_not_made_again_on_a_lower_rung() -> None:
    seen: list[list[int]] = []

    def forward(ids: torch.Tensor) -> torch.Tensor:
        seen.append(ids.tolist())
        return ids + torch.zeros(2)

    reference = _reference(forward, torch.tensor([1, 1]), dims={"ids": "n"})
    seen.clear()
    assert not reference.run({"n": 5}).runs
    assert sorted(seen) == [[0] * 5, [1] * 5]


class Scaled(nn.Module):
    """Scales its own weight in every call."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1), requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.weight.mul_(1.5)


def test_wide_copies_are_those_of_the_parameters_as_they_are() -> None:
    model = Scaled()
    reference = _reference(model, torch.ones(2, 3), dims=ROWS)
    outcome = reference.run({"n": 2})
    with torch.no_grad():
        model.weight.fill_(1.0)
    for value in (1.0, 1.0, 4.0):
        with torch.no_grad():
            model.weight.fill_(value)
        assert [float(one.max()) for one in reference.exact(outcome) or ()] == [1.5 * value]
        assert model.weight.dtype == torch.float32


def test_other_arithmetic_and_roundings() -> None:
    reference = _reference(lambda x: x / 3, torch.randn(2, 3), dims=ROWS)
    outcome = reference.run({"n": 4})
    exact = reference.exact(outcome)
    assert exact is not None
    assert torch.allclose(exact[0].double(), outcome.leaves["x"].double() / 3, rtol=1e-12, atol=0)
    jittered = [reference.jittered(outcome, seed) for seed in range(2)]
    assert all(one is not None and torch.allclose(one[0], outcome.outputs[0], rtol=1e-4) for one in jittered)


def test_a_matrix_that_is_singular_in_float64_alone_has_no_exact_inverse() -> None:
    reference = _reference(
        lambda x: torch.linalg.inv(torch.ones(2, 2).to(x) + (x.dtype == torch.float32) * x), torch.eye(2), dims={}
    )
    exact = reference.exact(reference.run({}))
    assert exact is not None
    assert torch.isnan(exact[0]).all()


def test_randomness_and_inputs_that_matter() -> None:
    noisy = _reference(lambda x: x + torch.rand(()), torch.randn(2, 3), dims=ROWS)
    assert noisy.is_random(noisy.run({"n": 2}))
    model = _reference(lambda x, y: x * 2 + y.shape[0], torch.randn(2, 3), torch.randn(2), dims={**ROWS, "y": "n"})
    outcome = model.run({"n": 2})
    assert not model.is_random(outcome)
    assert (model.depends_on("x", outcome), model.depends_on("y", outcome)) == (True, False)
    assert model.with_leaves(outcome, {"x": torch.zeros(2, 3)}).outputs[0].eq(2).all()


@pytest.mark.parametrize(
    ("draw", "draws"),
    [
        (lambda: torch.rand(()), True),
        (lambda: random.random(), True),
        (lambda: float(np.random.rand()), True),
        (lambda: float(OWN.random()), False),
        (lambda: time.perf_counter_ns() % 1000, False),
    ],
)
def test_what_changes_from_call_to_call_is_random_whoever_draws(draw: Callable[[], Any], draws: bool) -> None:
    model = _reference(lambda x: x * draw() if x.shape[0] > 2 else x, torch.randn(2, 3), dims=ROWS)
    few, many = model.run({"n": 2}), model.run({"n": 3})
    assert (few.draws, many.draws) == (False, draws)
    assert not model.is_random(few)
    assert model.is_random(many)


OWN = np.random.default_rng(0)


def test_what_is_drawn_without_effect_or_from_a_seed_is_not_random() -> None:
    def seeded(x: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(0)
        return x * torch.rand(3)

    for model in (lambda x: x + 0 * torch.rand(3), seeded):
        reference = _reference(model, torch.randn(2, 3), dims=ROWS)
        outcome = reference.run({"n": 2})
        assert outcome.draws
        assert not reference.is_random(outcome)


def test_an_embedding_that_scales_its_rows_is_not_random() -> None:
    torch.manual_seed(0)
    reference = _reference(nn.Embedding(50, 7, max_norm=0.3), torch.arange(40), dims={"input": "n"})
    outcome = reference.run({"n": 40})
    assert not outcome.draws
    assert not reference.is_random(outcome)


def test_the_user_s_own_function_draws_the_same_numbers_every_time() -> None:
    def made(n: int) -> torch.Tensor:
        return torch.from_numpy(np.random.rand(n, 3)) * random.random()

    before = random.getstate()
    runs = [_reference(lambda x: x + 1, made(2), dims=ROWS, make_inputs=made).run({"n": 5}) for _ in range(2)]
    assert torch.equal(runs[0].leaves["x"], runs[1].leaves["x"])
    assert random.getstate() != before  # by `made(2)` alone


def test_places_that_look_into_tensors_are_noted_at_every_size() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.shape[0] > 2 and x.sum() > 0 else x

    reference = _reference(forward, torch.rand(2, 3), dims=ROWS)
    assert reference.reads_at({"n": 2}) == frozenset()
    (((code, (line, *_)), *_),) = reference.reads_at({"n": 3})
    assert (code, line) == (forward.__code__, forward.__code__.co_firstlineno + 1)


def test_a_loop_that_values_never_end_is_a_size_that_pytorch_cannot_do() -> None:
    def settled(x: torch.Tensor) -> torch.Tensor:
        while x.norm() > 2:
            x = torch.tanh(x) * 0.1 + 1
        return x

    reference = _reference(settled, torch.ones(1, 3), dims=ROWS)
    assert reference.run({"n": 1}).runs
    said = "stopped by anyshape after 20,000 looks into tensors, as a loop without end"
    assert str(reference.run({"n": 9}).error) == said


def test_torchscript_that_values_would_keep_going_for_ever_is_stopped() -> None:
    @torch.jit.script
    def halved(x: torch.Tensor) -> torch.Tensor:
        while bool(x.abs().max() > 1):
            x = x / 2
        return x

    reference = _reference(halved, torch.randn(2, 3), dims=ROWS)
    outcome = reference.run({"n": 2})
    assert reference.with_leaves(outcome, {"x": torch.full((2, 3), 1e20)}).runs
    assert not reference.with_leaves(outcome, {"x": torch.full((2, 3), torch.inf)}).runs


def test_values_in_other_strides_reach_the_module() -> None:
    seen = []
    reference = _reference(lambda x: seen.append(x.stride()) or x * 1, torch.randn(2, 3), dims=ROWS)
    outcome = reference.run({"n": 2})
    for other in (torch.randn(3, 2).t(), torch.randn(1, 3).expand(2, 3)):
        reference.with_leaves(outcome, {"x": other})
        assert seen[-1] == other.stride()


def test_values_that_decide_are_seen() -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        return x if x.sum() > 0 else -x

    reference = _reference(forward, torch.randn(2, 3), dims=ROWS)
    (decisions,) = reference.value_decisions(reference.run({"n": 2})).values()
    assert decisions <= {True, False}


def test_the_user_s_own_function_makes_the_calls() -> None:
    reference = _reference(lambda x: x + 1, torch.ones(2, 3), dims=ROWS, make_inputs=lambda n: torch.full((n, 3), 7.0))
    assert reference.run({"n": 5}).leaves["x"].eq(7).all()


def test_a_function_that_makes_other_shapes_is_named() -> None:
    reference = _reference(lambda x: x + 1, torch.ones(2, 3), dims=ROWS, make_inputs=lambda n: torch.ones(n + 1, 3))
    with pytest.raises(anyshape.DeclarationError, match=r"make_inputs\(n = 5\) returns `x` with shape \(6, 3\)"):
        reference.run({"n": 5})


def test_what_is_returned_is_seen_before_the_state_is_put_back() -> None:
    class Cached(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cache: dict[str, torch.Tensor] = {}

        def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
            self.cache["y"] = x
            return self.cache

    reference = _reference(Cached(), torch.randn(2, 3), dims=ROWS)
    seen: list[list[str]] = []
    reference.module.call(reference.run({"n": 2}).leaves, look=lambda result: seen.append(list(result)))
    assert seen == [["y"]]


def test_sizes_read_as_a_sentence() -> None:
    assert oracle.describe({"batch": 1, "seq": 7}) == "batch = 1, seq = 7"
