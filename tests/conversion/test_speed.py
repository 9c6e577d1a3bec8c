"""With shortcuts off, torch and onnxscript go their own way, and files are as right as with them."""

from __future__ import annotations

import contextlib
from pathlib import Path

import onnx
import pytest

from anyshape.conversion import speed
from anyshape.conversion.speed import stages_left_out
from anyshape.conversion.speed.alike_parts import repeated_parts
from anyshape.conversion.speed.known_results import known_results
from anyshape.torchkit.private_names import NAMES, lookup
from tests.torchkit import small_models

SAME_BYTES = ("mlp", "lstm", "several results", "root of a size")
OTHER_NAMES = (
    "convolution and norm", "blocks alike", "transformer", "other types", "operator in Python",
    "operator of a library", "operator with a translation", "pooled",
)  # fmt: skip
"""The same nodes: torch runs the program again to take it apart, gives its values other names, and may assume more."""
OTHER_NODES = (
    "writes",
    "written through a view",
    "no translation",
    "number in a buffer",
    "branch",
    "loop",
    "gradients",
)
"""torch writes in place, or takes apart, by other operators than those that stand in for them here."""
QUICK = ("mlp", "convolution and norm", "writes", "no translation")


def _marked(*names: str) -> list[object]:
    return [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in names]


def _files(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """With shortcuts and without."""
    paths = folder / "with.onnx", folder / "without.onnx"
    for path, value in zip(paths, ("1", "0"), strict=True):
        monkeypatch.setenv(speed.VARIABLE, value)
        assert small_models.export(name, path).verdict == "checked"
    return paths


def _operators(path: Path) -> list[str]:
    return sorted(node.op_type for node in onnx.load(path).graph.node)


@pytest.mark.parametrize("name", _marked(*SAME_BYTES))
def test_the_bytes_are_the_same(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick, plain = _files(name, tmp_path, monkeypatch)
    assert quick.read_bytes() == plain.read_bytes()
    assert small_models.is_right_elsewhere(name, plain)


@pytest.mark.parametrize("name", _marked(*OTHER_NAMES, *OTHER_NODES))
def test_the_results_are_the_same(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick, plain = _files(name, tmp_path, monkeypatch)
    assert name in OTHER_NODES or _operators(quick) == _operators(plain)
    assert small_models.is_right_elsewhere(name, quick)
    assert small_models.is_right_elsewhere(name, plain)


REPLACED = [
    "torch.fx.experimental.proxy_tensor._ModuleStackTracer.call_module",
    "torch.onnx._internal.exporter._fx_passes.decompose_with_registry",
    "torch.onnx._internal.exporter._fx_passes.insert_type_promotion_nodes",
    "torch.onnx._internal.exporter._fx_passes._decomp.create_onnx_friendly_decomposition_table",
    "onnxscript.rewriter._rewrite_rule.RewriteRule.try_rewrite",
    "torch._dynamo.config.fake_tensor_cache_enabled",
]


@contextlib.contextmanager
def _all_shortcuts():
    with repeated_parts(wanted=True), known_results(), stages_left_out.stages_left_out():
        yield


def test_no_shortcut_touches_torch_while_they_are_off(monkeypatch: pytest.MonkeyPatch) -> None:
    table = lookup("torch._subclasses.fake_impls.get_fast_op_impls")()
    before = [lookup(name) for name in REPLACED], set(table)
    monkeypatch.setenv(speed.VARIABLE, "0")
    with _all_shortcuts():
        assert ([lookup(name) for name in REPLACED], set(table)) == before
    monkeypatch.setenv(speed.VARIABLE, "1")
    with _all_shortcuts():
        now = [lookup(name) for name in REPLACED]
        assert all(one is not other for one, other in zip(now, before[0], strict=True))
        assert set(table) > before[1]
    assert ([lookup(name) for name in REPLACED], set(table)) == before


def test_they_are_on_unless_the_variable_is_nought(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(speed.VARIABLE, raising=False)
    assert speed.are_on()
    for value, is_on in (("", True), ("1", True), ("0", False)):
        monkeypatch.setenv(speed.VARIABLE, value)
        assert speed.are_on() is is_on


def test_names_of_shortcuts_alone_say_that_without_them_it_is_slower() -> None:
    assert all(NAMES[name].without == "the export is slower" for name in REPLACED)
