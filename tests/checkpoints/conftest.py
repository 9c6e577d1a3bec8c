"""Checkpoints are saved and exported once for all tests."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from anyshape.checkpoints import export_checkpoint
from anyshape.checkpoints.export_parts import Exported
from tests.checkpoints import tiny


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a tiny checkpoint, by its name in `tiny`."""

    @cache
    def save(name: str) -> Path:
        return tiny.saved(getattr(tiny, name), tmp_path_factory.mktemp("checkpoints") / name)

    return save


@pytest.fixture(scope="session")
def exported(checkpoint: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Exported]:
    """A tiny checkpoint exported with the default options."""

    @cache
    def export(name: str) -> Exported:
        return export_checkpoint(checkpoint(name), tmp_path_factory.mktemp("exported") / name, quick=True)

    return export


@pytest.fixture
def bert(checkpoint: Callable[[str], Path], tmp_path: Path) -> Path:
    """A copy of its own, to spoil."""
    return shutil.copytree(checkpoint("bert"), tmp_path / "bert")


@pytest.fixture
def vit(checkpoint: Callable[[str], Path], tmp_path: Path) -> Path:
    """A copy of its own, to spoil."""
    return shutil.copytree(checkpoint("vit"), tmp_path / "vit")
