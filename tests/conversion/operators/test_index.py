"""A write to a place that a value names gives what PyTorch gives, for every place; so do scattered values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import anyshape
from tests.conversion.functions import image, table, wrong_results, wrong_sizes_of
from tests.running import is_right

SENTENCE = "x[place] = value: the place by its value at run time"


def one(x: Tensor, place: Tensor) -> None:
    x[:, place] = x[:, 0] * 2


def one_from_the_end(x: Tensor, place: Tensor) -> None:
    x[..., place - 4, 1:3] = x[:, 1, :2]


def a_number(x: Tensor, place: Tensor) -> None:
    x[0, place] = 7


def along_the_first_axis(x: Tensor, place: Tensor) -> None:
    x[place.clamp(max=0)] = x[-1] + 1


def a_range(x: Tensor, place: Tensor) -> None:
    x[:, place - 2 : place] = x[:, -2:].clone()


def up_to(x: Tensor, place: Tensor) -> None:
    x[:, :place] = 0.5


def the_rest(x: Tensor, place: Tensor) -> None:
    x[:, place:] += 3


WRITES: list[Callable[[Tensor, Tensor], None]] = [
    one, one_from_the_end, a_number, along_the_first_axis, a_range, up_to, the_rest,
]  # fmt: skip


class Writes(nn.Module):
    """All of them, three submodules deep."""

    def __init__(self, write: Callable[[Tensor, Tensor], None]) -> None:
        super().__init__()
        self.write = write

    def forward(self, x: Tensor, place: Tensor) -> Tensor:
        x = x.clone()
        self.write(x, place)
        return x


class Deep(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList([nn.ModuleList([Writes(write)]) for write in WRITES])

    def forward(self, x: Tensor, place: Tensor) -> tuple[Tensor, ...]:
        return tuple(part[0](x, place) for part in self.parts)  # type: ignore[index]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Deep, Path, anyshape.Result]:
    torch.manual_seed(0)
    model, path = Deep().eval(), tmp_path_factory.mktemp("written") / "model.onnx"
    example = (torch.randn(3, 6, 5), torch.tensor(3))
    result = anyshape.export(
        model, example, path, dims={"x": "batch seq 5", "place": ""}, sizes={"seq": "4.."}, quick=True
    )
    return model, path, result


def test_the_repair_wins_and_says_so(written: tuple[Deep, Path, anyshape.Result]) -> None:
    _, _, result = written
    assert [(a.strategy, a.outcome) for a in result.attempts] == [
        ("torch.export", "failed"), ("torch.export with repairs", "checked"),
    ]  # fmt: skip
    assert SENTENCE in result.repairs


@pytest.mark.parametrize("place", [2, 3])
@pytest.mark.parametrize("sizes", [(1, 4), (3, 6), (2, 9)])
def test_right_at_other_sizes_and_places(
    sizes: tuple[int, int], place: int, written: tuple[Deep, Path, anyshape.Result]
) -> None:
    model, path, _ = written
    assert is_right(path, model, (torch.randn(*sizes, 5), torch.tensor(place)))


# ---- values written to places, at sizes never traced


OF_TABLES = {
    "diagonal": lambda x: (x.clone().diagonal().fill_(2), x.diagonal_scatter(x.diagonal() * 3)),
    "scatter beyond": lambda x: torch.zeros_like(x).scatter_add(1, x[:1].argsort(1), x),
    "scatter a size": lambda x: x.scatter(1, x.argsort(1)[:, :1], x.shape[1]),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_TABLES)
def test_writes_into_tables(name: str, tmp_path: Path) -> None:
    assert wrong_sizes_of(OF_TABLES[name], table, tmp_path / "m.onnx") == []


OF_IMAGES = {
    "unfolded and back": lambda x: F.fold(F.unfold(x, 2, padding=1), x.shape[-2:], 2, padding=1),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_IMAGES)
def test_frames_added_where_they_were_cut_out(name: str, tmp_path: Path) -> None:
    assert wrong_sizes_of(OF_IMAGES[name], image, tmp_path / "m.onnx") == []


REDUCTIONS = {
    reduce: lambda x, reduce=reduce: x.scatter_reduce(1, x.argsort(1) // 2, x, reduce, include_self=False)
    for reduce in ("sum", "mean", "amax", "prod")
}


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_what_falls_on_one_place_is_reduced(reduce: str, tmp_path: Path) -> None:
    assert wrong_sizes_of(REDUCTIONS[reduce], table, tmp_path / "m.onnx") == []


def test_diagonals_take_nothing_from_beside_them() -> None:
    x = torch.arange(60.0).reshape(3, 4, 5)
    x[1, 2, 3], x[0, 0, 0] = torch.nan, torch.inf
    functions = {
        "diagonal": lambda x: (x.diagonal(), x.diagonal(1, 1, 2), x.diagonal(-2, 0, 1), x.diagonal(9, 2, 0)),
        "put": lambda x: (x.put(torch.tensor([[0, -1]]), x[0, 0, :2]), x.put(torch.tensor([5, 5]), x[1, 1, :2], True)),
    }
    assert wrong_results(functions, x) == []


def test_means_of_whole_numbers_are_rounded_down() -> None:
    index = torch.tensor([0, 0, 1])
    functions = {"mean": lambda x: x.scatter_reduce(0, index, x - 1, "mean")}
    assert wrong_results(functions, torch.tensor([-4, -3, 4])) == []
