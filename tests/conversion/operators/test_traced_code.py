"""Functions with gradients of their own are traced through their forward; what is kept under a size is built anew."""

from __future__ import annotations

import functools
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import Function
from torch.fx.experimental.symbolic_shapes import ShapeEnv

import anyshape
from anyshape.conversion.operators.repair import applied
from anyshape.conversion.operators.traced_code import AUTOGRAD_FUNCTIONS, GRADIENTS, SIZE_KEYS
from anyshape.garbage import uncollected
from tests.running import is_right


class Exponential(Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, scale: float = 1.0) -> Tensor:  # type: ignore[override]
        return (x * scale).exp()

    @staticmethod
    def setup_context(context: Any, _inputs: Any, output: Tensor) -> None:
        context.save_for_backward(output)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Any:
        return gradient * context.saved_tensors[0], None


class InPlace(Function):
    @staticmethod
    def forward(context: Any, x: Tensor, weight: Tensor, options: dict[str, float]) -> Any:
        x.add_(options["shift"])
        context.mark_dirty(x)
        context.set_materialize_grads(False)
        return x, x @ weight, len(options)

    @staticmethod
    def backward(_context: Any, *gradients: Tensor) -> Any:
        return gradients[0], None, None


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 2))

    def forward(self, x: Tensor) -> Tensor:
        shifted, product, count = InPlace.apply(x.clone(), self.weight, {"shift": 0.5})
        return Exponential.apply(shifted, 0.5).sum(-1, keepdim=True) + product * count


class Mapped(Plain):
    def forward(self, x: Tensor) -> Tensor:
        return torch.vmap(torch.vmap(Exponential.apply))(x) @ self.weight + Exponential.apply(x[..., :1])


@pytest.mark.parametrize(("kind", "strategy"), [(Plain, "torch.export"), (Mapped, "torch.export with repairs")])
def test_exports_right_at_sizes_never_traced(kind: type[nn.Module], strategy: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    inner = kind().eval()
    model = nn.Sequential(nn.Sequential(nn.Sequential(inner), nn.Tanh()))
    path = tmp_path / "model.onnx"
    result = anyshape.export(model, torch.randn(3, 5, 4), path, dims={"input": "batch n 4"}, quick=True)
    assert result.attempts[-1].strategy == strategy
    for batch, n in ((1, 1), (3, 5), (7, 11)):
        assert is_right(path, model, (torch.randn(batch, n, 4),))


def test_the_forward_sees_which_inputs_need_a_gradient() -> None:
    class Asks(Function):
        @staticmethod
        def forward(context: Any, x: Tensor, _number: int, weight: Tensor) -> Any:
            return x * weight, context.needs_input_grad

        @staticmethod
        def backward(_context: Any, *_gradients: Tensor) -> Any:
            return None, None, None

    weight = nn.Parameter(torch.ones(2))
    with applied([AUTOGRAD_FUNCTIONS]) as acted, torch.no_grad():
        _, needs = Asks.apply(torch.ones(2), 3, weight)
    assert (needs, acted.sentences) == ((False, False, True), ["Asks: traced through its forward"])


def test_gradients_are_as_before_afterwards() -> None:
    class Straight(Function):
        @staticmethod
        def forward(_context: Any, x: Tensor) -> Tensor:
            return x.round()

        @staticmethod
        def backward(_context: Any, gradient: Tensor) -> Tensor:
            return gradient * 3

    with pytest.raises(KeyError), applied([AUTOGRAD_FUNCTIONS]):
        raise KeyError
    x = torch.ones(2, requires_grad=True)
    Straight.apply(x).sum().backward()
    assert torch.equal(x.grad, torch.full((2,), 3.0))  # type: ignore[arg-type]


# ---- gradients switched on


class Enabling(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.full((1,), 2.0))

    def forward(self, x: Tensor) -> Tensor:
        with torch.enable_grad():
            y = x * self.scale
        with torch.no_grad(), torch.set_grad_enabled(True):
            return y.cumsum(1) - self.scale


@pytest.mark.parametrize(
    ("switch", "strategy", "repairs"),
    [("1", "torch.export", ()), ("0", "torch.export with repairs", ("torch.enable_grad: traced without gradients",))],
)
def test_a_part_with_gradients_exports_right_at_sizes_never_traced(
    switch: str, strategy: str, repairs: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an inner program that is put in; where that is switched off, by a repair."""
    monkeypatch.setenv("ANYSHAPE_SHORTCUTS", switch)
    model = nn.Sequential(nn.Sequential(Enabling(), nn.Tanh()), Enabling()).eval()
    result = anyshape.export(model, torch.randn(3, 5), dims={"input": "batch n"}, quick=True)
    assert (result.attempts[-1].strategy, result.repairs) == (strategy, repairs)
    assert torch.is_grad_enabled()
    for shape in ((1, 1), (3, 5), (7, 11)):
        x = torch.randn(*shape)
        torch.testing.assert_close(result(x)[0], model(x).detach())


def test_switching_off_is_not_noticed_and_what_was_on_is_on_again() -> None:
    with pytest.raises(KeyError), applied([GRADIENTS]) as acted:
        with torch.no_grad():
            assert not torch.is_grad_enabled()
        assert acted.sentences == []
        with torch.enable_grad():
            assert not torch.is_grad_enabled()
        assert acted.beyond_the_plain_way
        raise KeyError
    assert torch.is_grad_enabled()
    with torch.no_grad(), torch.enable_grad():
        assert torch.is_grad_enabled()


def test_a_forward_that_takes_a_gradient_is_not_written_wrong() -> None:
    class Slope(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            with torch.enable_grad():
                x = x.detach().requires_grad_()
                return torch.autograd.grad((x**3).sum(), x)[0]

    try:
        result = anyshape.export(Slope().eval(), torch.randn(3, 5), dims={"x": "batch n"}, quick=True)
    except anyshape.ExportError:
        return
    x = torch.randn(2, 7)
    torch.testing.assert_close(result(x)[0], 3 * x**2)


# ---- what is kept under a size is built for every size, and nothing of a trace stays in a cache


SIZES = [(1, 1), (3, 5), (2, 8), (1, 13)]
OF_THE_FILE: dict[int, Tensor] = {}


@functools.lru_cache(maxsize=None)  # noqa: UP033  the older spelling
def ramp(length: int, *, start: float = 0.0) -> Tensor:
    return torch.arange(length) + start


class Helper:
    """No module: its cache is below a plain attribute."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[int, Tensor]] = {"squares": {}}

    @staticmethod
    @functools.cache
    def halves(length: int) -> Tensor:
        return torch.arange(length) / 2

    def squares(self, length: int) -> Tensor:
        return self.tables["squares"].setdefault(length, torch.arange(length) ** 2.0)


class Layer(nn.Module):
    of_the_class: dict[tuple[int, str], Tensor] = {}

    def __init__(self) -> None:
        super().__init__()
        self.helper = Helper()

    @functools.lru_cache(maxsize=2)
    def thirds(self, length: int) -> Tensor:
        return torch.arange(length) / 3

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[1]
        if n not in OF_THE_FILE:
            OF_THE_FILE[n] = torch.arange(n).cos()
        if (n, "sine") not in self.of_the_class:
            self.of_the_class[n, "sine"] = torch.arange(n).sin()
        tables = (OF_THE_FILE[n], self.of_the_class[n, "sine"], ramp(n, start=0.5), self.thirds(n))
        return x + sum(tables) + self.helper.squares(n) + self.helper.halves(n)


class Deep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Sequential(Layer()), nn.Sequential(nn.Sequential(Layer())))

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.body(x)
        return result


def test_caches_of_every_kind_export_and_are_left_alone(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, path = Deep().eval(), tmp_path / "model.onnx"
    with torch.no_grad():
        model(torch.zeros(1, 5))
    kept = OF_THE_FILE[5]
    result = anyshape.export(model, torch.randn(3, 5), path, dims={"x": "batch seq"}, quick=True)
    assert [attempt.outcome for attempt in result.attempts] == ["failed", "checked"]
    assert set(result.repairs) == {
        "what is kept under a size is built for every size",
        "ramp: called without its cache",
        "Layer.thirds: called without its cache",
        "Helper.halves: called without its cache",
    }
    assert {5: kept} == OF_THE_FILE
    assert list(Layer.of_the_class) == [(5, "sine")]
    assert list(model.body[0][0].helper.tables["squares"]) == [5]
    assert all(is_right(path, model, (torch.randn(*sizes),)) for sizes in SIZES)


FACTORS = {2: 0.5, 4: 0.25, 9: 3.0}


class Tables(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.shifts = {3: 1, 4: 2}

    def forward(self, x: Tensor) -> Tensor:
        n, half = x.shape[0], x.shape[0] // 2
        if n not in {1, 4, 8}:
            x = x + 1
        x = x * FACTORS.get(n, 1.5) + {(2, 1): 3.0}.get((n, half), 4.0)
        return x + self.shifts[n] if n in self.shifts else x


def test_sizes_in_tables_of_numbers_are_decided_in_the_file() -> None:
    result = anyshape.export(Tables(), torch.randn(4, 5), dims={"x": "n m"}, quick=True)
    assert not any("built for every size" in repair for repair in result.repairs)
    for shape in ((1, 1), (2, 2), (3, 1), (4, 3), (8, 4), (9, 2), (5, 5)):
        x = torch.randn(shape)
        assert torch.allclose(result(x)[0], Tables()(x)), shape


class InSet(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2 if x.shape[0] in {2, 4, 8} else x + 1


def test_a_size_in_a_set_is_decided_where_nothing_else_varies() -> None:
    result = anyshape.export(InSet(), torch.randn(4, 3), dims={"x": "n 3"})
    assert [one.expression for one in result.assumptions if one.end == "open"] == []
    for n in range(1, 12):
        x = torch.randn(n, 3)
        assert torch.allclose(result(x)[0], InSet()(x)), n


def test_names_and_hashes_are_as_before_also_after_an_exception() -> None:
    before = (globals()["ramp"], vars(Layer)["thirds"], vars(Helper)["halves"], torch.SymInt.__hash__)
    with pytest.raises(ZeroDivisionError), applied([SIZE_KEYS]):
        assert globals()["ramp"] is not before[0]
        raise ZeroDivisionError
    assert before == (globals()["ramp"], vars(Layer)["thirds"], vars(Helper)["halves"], torch.SymInt.__hash__)


class Thing:
    pass


def test_the_hash_of_a_size_keeps_no_local_of_its_callers() -> None:
    size = ShapeEnv().create_unbacked_symint()

    def call() -> weakref.ref[Thing]:
        thing = Thing()
        hash(size)
        return weakref.ref(thing)

    with applied([SIZE_KEYS]) as acted, uncollected():
        assert call()() is None
    assert acted.sentences == ["what is kept under a size is built for every size"]


def test_a_cache_still_serves_plain_numbers() -> None:
    ramp.cache_clear()
    with applied([SIZE_KEYS]) as acted:
        assert ramp(4) is ramp(4)
        assert ramp.cache_info().hits == 1
    assert acted.sentences == []
