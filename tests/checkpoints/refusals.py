"""Checkpoints with other settings, and what is said about those that are refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from anyshape import AnyshapeError
from anyshape.checkpoints import export_checkpoint


def set_config(folder: Path, **settings: Any) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))
    return folder


def refusal_of(folder: Path, **options: Any) -> str:
    with pytest.raises(AnyshapeError) as refusal:
        export_checkpoint(folder, folder.parent / "out", **options)
    assert not (folder.parent / "out").exists()
    return str(refusal.value).replace(str(folder.parent), "/home")
