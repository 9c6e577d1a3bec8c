"""Every case exports right at every size, or is refused; none is written wrong.

Each case is declared in one way here, in turn; all ways are left to `make test-all`.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from torch.export import Dim

import anyshape
from tests import cases
from tests.running import is_right

NAMES = cases.names()
WAYS = ("dims", "make_inputs", "dynamic_axes", "dynamic_shapes")


def _sizes(case: ModuleType) -> dict[str, str]:
    """Size 0 has to be asked for."""
    return {dim: "0.." for dim, (size, others) in case.sizes.items() if 0 in (size, *others)}


def _axes(case: ModuleType) -> dict[str, dict[int, str]] | None:
    """The declaration as torch writes it; None where torch has no way to say it."""
    rows = {}
    for leaf, text in case.dims.items():
        parts = text.split()
        if "..." in parts or "*" in leaf or not parts:
            return None
        rows[leaf] = {axis: name for axis, name in enumerate(parts) if not name.isdecimal() and name != "_"}
    return rows


def _ways(case: ModuleType) -> dict[str, dict[str, Any]]:
    args, kwargs = cases.example(case)
    example = {"args": args, "kwargs": kwargs}
    ways = {"dims": {**example, "dims": case.dims}, "make_inputs": {"make_inputs": case.inputs, "dims": case.dims}}
    axes = _axes(case)
    if axes is not None:
        ways["dynamic_axes"] = {**example, "dynamic_axes": axes}
        named = {leaf: {axis: _dim(name) for axis, name in row.items()} for leaf, row in axes.items()}
        if all("." not in leaf for leaf in axes):
            ways["dynamic_shapes"] = {**example, "dynamic_shapes": named}
    return ways


def _dim(name: str) -> Any:
    return Dim(name) if name.isidentifier() else name


def _export(case: ModuleType, way: dict[str, Any], path: Path) -> anyshape.Result:
    return anyshape.export(case.model(), f=path, sizes=_sizes(case), **way)


def _check(name: str, way: dict[str, Any], path: Path) -> None:
    case = cases.load(name)
    if not case.exports:
        with pytest.raises(anyshape.ExportError) as refused:
            _export(case, way, path)
        assert refused.value.findings
        assert not path.exists()
        return
    result = _export(case, way, path)
    assert result.verdict == "checked"
    assert anyshape.inspect(path).lies == ()
    wrong = [sizes for sizes in cases.grid(case) if not is_right(path, case.model(), *cases.call(case, sizes))]
    assert wrong == []


SLOW = {
    "affine_sampling", "anchors_of_two_levels", "antialiased_resize", "attention_with_flat_cache", "detection_head",
    "encoder_of_prefixes", "grid_turned", "places_of_maxima", "pooled_like_another", "translator_time_first",
    "two_tower", "vit_interpolated_positions",
}  # fmt: skip
"""The costly ones of kinds that others show as well."""


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.slow if name in SLOW else ()) for name in NAMES])
def test_exports_right_or_is_refused(name: str, tmp_path: Path) -> None:
    ways = list(_ways(cases.load(name)).values())
    _check(name, ways[NAMES.index(name) % len(ways)], tmp_path / "model.onnx")


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NAMES)
def test_exports_right_in_every_way_of_declaring(name: str, way: str, tmp_path: Path) -> None:
    ways = _ways(cases.load(name))
    if way not in ways:
        pytest.skip(f"{way} cannot declare this case")
    _check(name, ways[way], tmp_path / "model.onnx")
