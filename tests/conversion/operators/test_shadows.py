"""What is kept under a size is built for every size, and nothing of a trace stays in a cache."""

from __future__ import annotations

import functools
import weakref
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.fx.experimental.symbolic_shapes import ShapeEnv

import anyshape
from anyshape.conversion.operators.repair import applied
from anyshape.conversion.operators.shadows import SIZE_KEYS
from anyshape.garbage import uncollected
from tests.running import is_right

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
