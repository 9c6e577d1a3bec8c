"""Resizing as torch's CPU kernel computes it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from anyshape.conversion.operators.resize import mark_layouts
from tests.conversion.functions import Make, Of, exported, image, operators, wrong_results, wrong_sizes, wrong_sizes_of
from tests.running import load

FUNCTIONS = {
    "antialiased": lambda x: F.interpolate(x, scale_factor=(0.7, 0.6), mode="bicubic", antialias=True),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_resizing_by_factors(name: str, tmp_path: Path) -> None:
    assert wrong_sizes_of(FUNCTIONS[name], image, tmp_path / "m.onnx") == []


SIGNALS = {
    "by a factor": lambda x: F.interpolate(x, scale_factor=1.7, mode="linear"),
    "to a size": lambda x: F.interpolate(x, size=5, mode="linear", align_corners=True),
}


@pytest.mark.parametrize("name", SIGNALS)
def test_linear_resizing_of_one_axis(name: str, tmp_path: Path) -> None:
    signal = lambda b, t: (torch.randn(b, 2, t),)  # noqa: E731
    path = tmp_path / "m.onnx"
    exported(SIGNALS[name], signal, ["b 2 t"], {"b": 2, "t": 6}, path)
    assert wrong_sizes(SIGNALS[name], signal, [{"b": 1, "t": 2}, {"b": 3, "t": 11}], path) == []


# ---- every pair of sizes, to the last bit

LAYOUTS = {
    "first": lambda x: x,
    "last": lambda x: x.contiguous(memory_format=torch.channels_last if x.dim() == 4 else torch.channels_last_3d),
}


def differing_pairs(
    function: Callable[..., torch.Tensor], x: Make, dims: str, pairs: Sequence[tuple[int, int]], path: Path
) -> list[tuple[int, int]]:
    """Exported once; the pairs (n, m) at which the file does not give the very numbers of PyTorch."""
    make = lambda n, m: (*x(n, m), torch.zeros(m))  # noqa: E731
    exported(function, make, [dims, "m"], {"n": 10, "m": 13}, path)
    session = load(path)
    names = [given.name for given in session.get_inputs()]
    torch.manual_seed(0)
    wrong = []
    for pair in pairs:
        values = make(*pair)
        (got,) = session.run(None, dict(zip(names, (value.numpy() for value in values), strict=False)))
        if not np.array_equal(got, function(*values).numpy()):
            wrong.append(pair)
    return wrong


ALL_PAIRS = [*itertools.product(range(1, 201), repeat=2)]
SOME_PAIRS = [(14, 16), (20, 24), (21, 3), (26, 22), (6, 37), *ALL_PAIRS[:: 200 + 37]]


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@pytest.mark.parametrize("pairs", [SOME_PAIRS, pytest.param(ALL_PAIRS, marks=pytest.mark.slow)], ids=["some", "all"])
def test_the_nearest_of_one_axis_is_torchs(mode: str, pairs: list[tuple[int, int]], tmp_path: Path) -> None:
    def resized(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.interpolate(x, size=y.shape[0], mode=mode)

    signal = lambda n, _: (torch.randn(1, 2, n),)  # noqa: E731
    assert differing_pairs(resized, signal, "1 2 n", pairs, tmp_path / "m.onnx") == []


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.uint8])
def test_the_nearest_of_two_axes_is_torchs(mode: str, layout: str, kind: torch.dtype, tmp_path: Path) -> None:
    def resized(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.interpolate(LAYOUTS[layout](x), size=(y.shape[0], x.shape[2]), mode=mode)

    picture = lambda n, m: ((100 * torch.rand(1, 5, n, m)).to(kind),)  # noqa: E731
    assert differing_pairs(resized, picture, "1 5 n m", SOME_PAIRS, tmp_path / "m.onnx") == []


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_nearest_of_three_axes_is_torchs(layout: str, tmp_path: Path) -> None:
    def resized(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.interpolate(LAYOUTS[layout](x), size=(y.shape[0], 4, x.shape[2]), mode="nearest-exact")

    volume = lambda n, m: (torch.randn(1, 5, n, 3, m),)  # noqa: E731
    assert differing_pairs(resized, volume, "1 5 n 3 m", SOME_PAIRS, tmp_path / "m.onnx") == []


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact"])
@pytest.mark.parametrize("factors", [(1.3, 0.3), (2.0, 0.5), (3.0, 1 / 3), (2.00001, 1.0)])
@pytest.mark.parametrize("recomputed", [None, True])
def test_the_nearest_by_factors_is_torchs(
    mode: str, factors: tuple[float, float], recomputed: bool | None, tmp_path: Path
) -> None:
    def resized(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.interpolate(x, scale_factor=factors, mode=mode, recompute_scale_factor=recomputed) + 0 * y.sum()

    # sizes that a factor leaves as they are, and more than torch's faster kernel takes, are among them
    pairs = [(n, m) for n, m in SOME_PAIRS if m > 3] + [(2, 5), (3, 4), (150, 90)]
    picture = lambda n, m: (torch.randn(1, 2, n, m),)  # noqa: E731
    assert differing_pairs(resized, picture, "1 2 n m", pairs, tmp_path / "m.onnx") == []


BLENDS = {
    "bilinear": {"mode": "bilinear"},
    "bilinear, aligned": {"mode": "bilinear", "align_corners": True},
    "bicubic, aligned": {"mode": "bicubic", "align_corners": True},
}


@pytest.mark.parametrize("name", BLENDS)
@pytest.mark.parametrize("factors", [None, (1.3, 0.7)])
def test_blended_pixels_are_torchs_up_to_a_rounding(
    name: str, factors: tuple[float, float] | None, tmp_path: Path
) -> None:
    def resized(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if factors is not None:
            return F.interpolate(x, scale_factor=factors, **BLENDS[name]) + 0 * y.sum()
        return F.interpolate(x, size=(y.shape[0], x.shape[2]), **BLENDS[name])

    make = lambda n, m: (torch.randn(1, 2, n, m), torch.zeros(m))  # noqa: E731
    path = tmp_path / "m.onnx"
    exported(resized, make, ["1 2 n m", "m"], {"n": 10, "m": 13}, path)
    session = load(path)
    torch.manual_seed(0)
    names = [given.name for given in session.get_inputs()]
    for n, m in [(2, 2), (3, 2), (63, 64), (64, 63), (90, 5), (33, 150)]:
        values = make(n, m)
        (got,) = session.run(None, dict(zip(names, (value.numpy() for value in values), strict=False)))
        want = resized(*values).numpy()
        assert got.shape == want.shape
        assert np.abs(got - want).max() <= 1e-5 * max(1, np.abs(want).max())


def test_a_factor_of_two_stays_onnxs_own_operator(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    assert wrong_sizes_of(lambda x: F.interpolate(x, scale_factor=2), image, path) == []
    assert operators(path) == ["Resize"]


def test_channels_that_lie_last_are_marked() -> None:
    def resized(x: torch.Tensor) -> torch.Tensor:
        return F.interpolate(x.to(memory_format=torch.channels_last), size=(3, 1), mode="bilinear", antialias=True)

    program = torch.export.export(Of(resized), (torch.randn(2, 3, 6, 6),)).run_decompositions({})
    mark_layouts(program.graph_module)
    marked = [node for node in program.graph.nodes if node.kwargs.get("from_channels_last")]
    assert [node.target.name() for node in marked] == ["aten::_upsample_bilinear2d_aa.vec"]


@pytest.mark.parametrize("align_corners", [False, True])
def test_a_grid_of_any_size(align_corners: bool, tmp_path: Path) -> None:
    def grid(theta: torch.Tensor, image: torch.Tensor) -> torch.Tensor:
        return F.affine_grid(theta, list(image.shape), align_corners=align_corners)

    make = lambda b, h, w: (torch.randn(b, 2, 3), torch.zeros(b, 1, h, w))  # noqa: E731
    path = tmp_path / "m.onnx"
    exported(grid, make, ["b 2 3", "b 1 h w"], {"b": 2, "h": 4, "w": 5}, path)
    assert wrong_sizes(grid, make, [{"b": 1, "h": 2, "w": 9}, {"b": 3, "h": 7, "w": 2}], path) == []


@pytest.mark.parametrize("padding", ["zeros", "border"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
def test_places_far_outside_give_what_is_beyond_the_border(padding: str, mode: str) -> None:
    grid = torch.tensor([[1e30, 0.1], [-1e30, -3e9], [0.2, 2.0**31], [5.0, 5.0], [-1.5, 1.2], [0.3, -0.6]])
    functions = {
        "2d": lambda x, places: F.grid_sample(x, places[None, None], mode, padding, align_corners=False),
        "3d": lambda x, places: F.grid_sample(
            x[:, :, None], F.pad(places, (0, 1))[None, None, None], mode, padding, align_corners=False
        ),
    }
    assert wrong_results(functions, torch.arange(12.0).reshape(1, 1, 3, 4) + 1, grid) == []


def test_a_place_is_mirrored_before_it_is_rounded() -> None:
    grid = torch.tensor([[-1.0, 1.0], [1.25, -1.75], [2.5, -3.0], [3.5, 4.5], [-5.25, 0.5], [0.0, -0.75]])
    functions = {
        f"{mode}, {align_corners}, {dims}": lambda x, places, m=mode, a=align_corners, d=dims: F.grid_sample(
            x if d == 2 else x[:, :, None],
            places[None, None] if d == 2 else F.pad(places, (0, 1))[None, None, None],
            m,
            "reflection",
            align_corners=a,
        )
        for mode in ("bilinear", "nearest")
        for align_corners in (False, True)
        for dims in (2, 3)
    }
    assert wrong_results(functions, torch.arange(12.0).reshape(1, 1, 3, 4) + 1, grid) == []
