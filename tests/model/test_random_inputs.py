"""Every draw is an input with a shape of its own, and one sentence says why where it cannot be."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import anyshape
from anyshape.errors import DeclarationError
from anyshape.model.random_inputs import depends_on_draws, with_plain_draws, with_random_inputs
from anyshape.model.request import understand
from anyshape.model.survey import make_reference


class Autoencoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mean, self.spread, self.decoder = nn.Linear(4, 6), nn.Linear(4, 6), nn.Linear(6, 4)

    def forward(self, x: Tensor, noise: float = 1.0) -> tuple[Tensor, Tensor]:
        mean, std = self.mean(x), (0.5 * self.spread(x)).exp()
        eps = torch.randn_like(std)
        return F.dropout(self.decoder(mean + noise * eps * std), 0.25, training=True), mean


def shapes_of(function: Callable[[Tensor], Tensor], *shape: int, dims: str, **options: object) -> dict[str, str]:
    request = understand(function, torch.ones(shape), None, dims={"x": dims}, **options)  # type: ignore[arg-type]
    spec = with_random_inputs(request, 0).spec
    values = {name: spec.axes[name] for name in spec.draws}
    return {name: " ".join("_" if one is None else one.text for one in row) for name, row in values.items()}


def test_shapes_are_formulas_and_names_are_the_users() -> None:
    def several(x: Tensor) -> Tensor:
        eps = torch.randn(x.shape[0], 3).to(x.device)
        mask = torch.bernoulli(torch.full((x.shape[1] * 2,), 0.5))
        first, second = torch.rand(x.shape[0] * x.shape[1]), torch.rand((x.shape[1] + 1) // 2)
        x = x + torch.randn_like(x) * torch.empty(x.shape[1] - 1).normal_(2, 3).sum() + torch.randn(1)
        return x * eps.sum() + mask.sum() + first.sum() + second.sum()

    assert shapes_of(several, 4, 6, dims="n m") == {
        "eps": "n _",
        "mask_noise": "2 * m",
        "noise": "n * m",
        "noise_2": "(m + 1) // 2",
        "noise_3": "n m",
        "normal_noise": "m - 1",
        "noise_4": "_",
    }


def test_sizes_that_the_model_cannot_do_are_not_asked() -> None:
    def halves(x: Tensor) -> Tensor:
        return x.view(-1, 4) + torch.randn(x.shape[0] // 4, 4)

    def patches(x: Tensor) -> Tensor:
        noise = torch.rand(x.shape[0] // 4 * (x.shape[1] // 4))
        return x.unfold(0, 4, 4).unfold(1, 4, 4).reshape(-1, 16) * noise.view(-1, 1) + x.view(-1, 4, 4).sum()

    assert shapes_of(halves, 8, dims="n") == {"noise": "n // 4 _"}
    assert shapes_of(patches, 8, 12, dims="n m") == {"noise": "n // 4 * (m // 4)"}


def refusal(function: Callable[[Tensor], Tensor], **options: object) -> str:
    with pytest.raises(DeclarationError) as refused:
        shapes_of(function, 3, 4, dims="n m", **options)
    return str(refused.value)


_INSTEAD = "draw outside of the model, and pass the numbers as an input"


def line_of(function: Callable[[Tensor], Tensor], offset: int = 1) -> str:
    return f"(tests/model/test_random_inputs.py:{function.__code__.co_firstlineno + offset})"


def test_a_number_of_draws_that_depends_on_a_size_is_refused_with_its_line() -> None:
    def rows(x: Tensor) -> Tensor:
        return torch.stack([row + torch.randn(4)[: row.shape[0]].sum() for row in x])

    drawn = "the model draws 3 times at n = 3, m = 4 and 4 times at n = 4, m = 4"
    what = f"how often `randn` {line_of(rows)} draws depends on sizes or values, of which no input can be made"
    assert refusal(rows) == f"{what}: {drawn}: {_INSTEAD}"


def test_a_draw_that_values_decide_is_no_matter_of_sizes_alone() -> None:
    def loud(x: Tensor) -> Tensor:
        return x + torch.randn_like(x) if x[0, 0] < 3.5 else x

    def call(n: int) -> Tensor:
        return torch.full((n, 4), float(n))

    request = understand(loud, call(3), None, make_inputs=call, dims={"x": "n 4"})
    with pytest.raises(DeclarationError) as refused:
        with_random_inputs(request, 0)
    drawn = "the model draws once at n = 3 and nothing at n = 4"
    what = f"how often `randn_like` {line_of(loud)} draws depends on sizes or values, of which no input can be made"
    assert str(refused.value) == f"{what}: {drawn}: {_INSTEAD}"


def test_shapes_without_a_formula_are_refused() -> None:
    def odd(x: Tensor) -> Tensor:
        return x + torch.randn(x.shape[0] ** 3 % 7 + 1).sum()

    what = f"`randn` {line_of(odd)} draws numbers in a shape that no formula of the dims gives"
    assert refusal(odd) == f"{what}: {_INSTEAD}"


@pytest.mark.parametrize(
    ("by", "draw"),
    [
        ("poisson", lambda x: torch.poisson(x)),
        ("random", lambda x: x * random.random()),
        ("numpy.random", lambda x: x * float(np.random.rand())),
    ],
)
def test_what_no_input_can_stand_for_is_refused_with_its_line(by: str, draw: Callable[[Tensor], Tensor]) -> None:
    def drawing(x: Tensor) -> Tensor:
        return draw(x) + torch.randn_like(x)

    assert refusal(drawing) == f"`{by}` {line_of(draw, 0)} draws where no input can take its place: {_INSTEAD}"


def test_draws_that_values_decide_are_refused() -> None:
    def sometimes(x: Tensor) -> Tensor:
        return x + torch.randn_like(x) if float(x.sum()) > 0 else x

    request = with_random_inputs(understand(sometimes, torch.ones(3, 4), None, dims={"x": "n 4"}), 0)
    with pytest.raises(DeclarationError) as refused:
        request.target.call(-torch.ones(3, 4), noise=torch.zeros(3, 4))
    what = f"`randn_like` {line_of(sometimes)} draws at some sizes or values, and not at others"
    assert str(refused.value) == f"{what}: {_INSTEAD}"
    assert request.target.call(torch.ones(3, 4), noise=torch.zeros(3, 4)).equal(torch.ones(3, 4))


def test_a_draw_before_a_branch_stands_in_both_of_its_sides() -> None:
    def parting(x: Tensor) -> Tensor:
        eps = torch.randn_like(x)
        return x + eps if x.shape[0] > 3 else x - eps * torch.rand(1)

    def parted(x: Tensor) -> Tensor:
        x = x + torch.randn_like(x) * torch.rand(1)
        return x * 2 if x.shape[0] > 3 else x - 1

    assert "rand" in refusal(parting)
    result = anyshape.export(parted, torch.ones(3, 4), dims={"x": "n m"}, random="inputs", quick=True)
    assert list(result.draws) == ["noise", "noise_2"]
    x, noise, factor = torch.ones(5, 2), torch.randn(5, 2), torch.rand(1)
    assert torch.allclose(result(x, noise, factor)[0], 2 * (x + noise * factor))


def test_a_model_that_draws_nothing_is_as_it_was() -> None:
    request = understand(lambda x: x * 2, torch.ones(3, 4), None, dims={"x": "n 4"})
    plain = with_random_inputs(request, 0)
    assert plain.target is request.target
    assert plain.notes == ("random=inputs: the model draws no random numbers",)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Autoencoder]:
    path = tmp_path_factory.mktemp("random") / "model.onnx"
    torch.manual_seed(0)
    model = Autoencoder()
    anyshape.export(model, torch.randn(3, 4), path, dims={"x": "batch 4"}, random="inputs", quick=True)
    return path, model


def test_the_file_gives_what_the_model_gives_for_the_same_noise(file: tuple[Path, Autoencoder]) -> None:
    path, model = file
    loaded = anyshape.load(path)
    assert [str(port) for port in loaded.inputs[1:]] == ["eps: float32[batch, 6]", "dropout_noise: float32[batch, 4]"]
    assert loaded.contract is not None
    assert loaded.contract.draws == {"eps": "normal", "dropout_noise": "uniform"}
    x, eps, kept = torch.randn(7, 4), torch.randn(7, 6), torch.rand(7, 4)
    with torch.no_grad():
        mean, std = model.mean(x), (0.5 * model.spread(x)).exp()
        wanted = model.decoder(mean + eps * std) * (kept >= 0.25) / 0.75
    got = loaded(x, eps=eps, dropout_noise=kept)
    assert torch.allclose(got[0], wanted, atol=1e-5)
    assert torch.allclose(got[1], mean, atol=1e-5)


def test_noise_that_is_not_given_is_drawn_from_the_seed(file: tuple[Path, Autoencoder]) -> None:
    x = torch.randn(5, 4)
    one, two = anyshape.load(file[0], seed=1), anyshape.load(file[0], seed=1)
    first = one(x)[0]
    assert torch.equal(first, two(x)[0])
    assert not torch.equal(first, one(x)[0])
    kept = np.full((5, 4), 0.5, np.float32)
    assert not torch.equal(one(x, dropout_noise=kept)[0], one(x, dropout_noise=kept)[0])
    many = one.run({"x": np.zeros((5000, 4), np.float32)})
    assert abs((many["output.0"] == 0).mean() - 0.25) < 0.02
    with pytest.raises(DeclarationError, match="axis 1 of `x` is 3, but takes 4"):
        one(torch.randn(5, 3))
    with pytest.raises(DeclarationError, match="`x` is missing: the file takes `x`"):
        one(eps=torch.zeros(5, 6))


def test_a_file_is_checked_with_draws_of_its_own(file: tuple[Path, Autoencoder]) -> None:
    path, model = file
    assert anyshape.check(path, model, torch.randn(3, 4), quick=True).verdict == "checked"
    other = Autoencoder()
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.check(path, other, torch.randn(3, 4), quick=True)
    assert [finding.rule for finding in refused.value.findings] == ["other-weights"]


def test_calls_that_the_user_makes_get_noise_of_their_sizes() -> None:
    def make_inputs(batch: int) -> Tensor:
        return torch.randn(batch, 4)

    result = anyshape.export(Autoencoder(), make_inputs=make_inputs, dims={"x": "batch 4"}, random="inputs", quick=True)
    assert result.draws == {"eps": "normal", "dropout_noise": "uniform"}


def test_random_values_are_checked_by_shapes_and_types_alone(tmp_path: Path) -> None:
    path, model, x = tmp_path / "model.onnx", Autoencoder(), torch.randn(3, 4)
    result = anyshape.export(model, x, path, dims={"x": "batch 4"}, random="shapes", quick=True)
    sizes = len(result.verification.sizes_run) if result.verification else 0
    runtime = result.verification.runtime if result.verification else ""
    told = f"checked: model.onnx, shapes and types at {sizes} sizes in {runtime} against PyTorch; values are random"
    assert result.headline == told
    assert anyshape.check(path, model, x, quick=True).headline == told
    contract = anyshape.inspect(path).contract
    assert contract is not None
    assert contract.random
    assert str(contract.evidence).endswith("against PyTorch, shapes and types alone: values are random")
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.check(path, lambda x: (torch.randn_like(x), x), x, quick=True)
    assert [finding.rule for finding in refused.value.findings] == ["wrong-shape"]


@pytest.mark.parametrize(
    "draw",
    [
        lambda x: x.new_empty(x.shape[0], 1).uniform_(-1, 1),
        lambda x: x[torch.randperm(x.shape[0])],
        lambda x: torch.normal(x, 1.0),
        lambda x: torch.randn(x.shape, generator=torch.Generator()),
        lambda x: torch.distributions.Laplace(x, 1.0).sample(),
    ],
)
def test_whatever_is_drawn_is_made_of_what_a_file_draws(draw: Callable[[Tensor], Tensor]) -> None:
    result = anyshape.export(draw, torch.ones(3, 4), dims={"x": "n 4"}, random="shapes", quick=True)
    assert result.headline.endswith("values are random")


def test_what_no_noise_expresses_is_drawn_as_ever() -> None:
    request = with_plain_draws(understand(lambda x: torch.randint(2**40, (3,)) + x, torch.ones(3), None, dims={}))
    assert int(request.target.call(torch.zeros(3)).max()) > 2**20


def seeded(x: Tensor) -> Tensor:
    torch.manual_seed(0)
    return x + torch.randn(x.shape)


def with_own_generator(x: Tensor) -> Tensor:
    return x + torch.randn(x.shape, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(("model", "offset"), [(seeded, 2), (with_own_generator, 1)])
def test_a_seed_of_the_models_own_is_told_at_the_draw(model: Callable[[Tensor], Tensor], offset: int) -> None:
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.export(model, torch.ones(3, 4), dims={"x": "n 4"}, quick=True)
    (finding,) = refused.value.findings
    assert (finding.rule, finding.span.line) == ("random-output", model.__code__.co_firstlineno + offset)
    assert finding.message == (
        "`output` holds random numbers of a seed that the model sets itself, and no file draws these numbers"
    )
    assert finding.helps == (
        'random="inputs" makes each draw an input of the file, which is then checked as any other',
    )
    result = anyshape.export(model, torch.ones(3, 4), dims={"x": "n 4"}, random="inputs", quick=True)
    assert list(result.draws) == ["noise"]


def test_draws_that_are_thrown_away_are_not_blamed() -> None:
    def wasteful(x: Tensor) -> Tensor:
        torch.manual_seed(0)
        torch.randn(3)
        return x * 2

    request = understand(wasteful, torch.ones(3, 4), None, dims={"x": "n 4"})
    reference = make_reference(request, 0)
    assert not depends_on_draws(reference, reference.run({"n": 3}))
    request = understand(seeded, torch.ones(3, 4), None, dims={"x": "n 4"})
    reference = make_reference(request, 0)
    assert depends_on_draws(reference, reference.run({"n": 3}))


class Drifting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.chance = torch.Generator().manual_seed(3)

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.randn(x.shape, generator=self.chance)


def test_a_generator_of_the_models_own_is_found_at_its_draw() -> None:
    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.export(Drifting(), torch.ones(3, 4), dims={"x": "n 4"}, quick=True)
    (finding,) = refused.value.findings
    assert finding.span.line == Drifting.forward.__code__.co_firstlineno + 1
    assert finding.notes == ("in eval mode, the same inputs gave other results in the next call",)
    assert finding.helps[0].startswith('random="inputs" makes each draw an input')


def test_what_is_not_random_is_compared_whatever_was_allowed() -> None:
    result = anyshape.export(lambda x: x * 2, torch.ones(3, 4), dims={"x": "n 4"}, random="shapes", quick=True)
    assert " right at " in result.headline
