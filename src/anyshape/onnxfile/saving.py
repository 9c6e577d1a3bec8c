"""Writing a file so that a failure, an exception or Ctrl-C leaves what was there before, and nothing else.

A model is written into a temporary folder beside its target and checked there. On success the data gets its final name
first and the model is replaced last; until then the old files can be put back.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import onnx_ir as ir

from anyshape.errors import DeclarationError
from anyshape.onnxfile import saving_inline_weights
from anyshape.onnxfile.saving_external_weights import ExternalWeights

EXTERNAL_FROM_BYTES = 128 * 2**20
"""Weights beyond this go to `model.onnx.data`: inline, they end at 2 GB."""


@dataclass(frozen=True)
class Stage:
    """A temporary folder that holds the model under its final name."""

    path: Path
    destination: Path | None
    _weights: list[ExternalWeights] = field(default_factory=list)
    """What an earlier `write` put beside the model."""

    def write(self, model: ir.Model, *, external_data: bool | None = None) -> None:
        """Write a model here; the weights that it shares with the one before are not written again."""
        known = self._weights.pop() if self._weights else ExternalWeights(_beside(self.path))
        if _goes_outside(model, external_data):
            known.save(model, self.path)
            self._weights.append(known)
        else:
            write_model(model, self.path, external_data=False)

    def commit(self) -> None:
        """Put the files in their final place; the old ones come back if anything goes wrong."""
        if self.destination is not None:
            _replace(self.path, self.destination)


def write_model(model: ir.Model, path: Path, *, external_data: bool | None = None) -> None:
    """Write a model; weights go beside it when asked for, or by themselves when they are large."""
    beside = _beside(path)
    beside.unlink(missing_ok=True)
    if _goes_outside(model, external_data):
        ExternalWeights(beside).save(model, path)
    else:
        saving_inline_weights.save(model, path)


def _goes_outside(model: ir.Model, external_data: bool | None) -> bool:
    weights = sum(v.const_value.nbytes for v in model.graph.initializers.values() if v.const_value is not None)
    return bool(weights) and (external_data if external_data is not None else weights > EXTERNAL_FROM_BYTES)


@contextlib.contextmanager
def staged(destination: Path | None) -> Iterator[Stage]:
    """A temporary folder beside the destination, gone afterwards whatever happens."""
    parent = None if destination is None else destination.parent
    with tempfile.TemporaryDirectory(prefix=".anyshape-", dir=parent) as folder:
        name = "model.onnx" if destination is None else destination.name
        yield Stage(Path(folder) / name, destination)


def check_destination(f: str | os.PathLike[str] | None) -> Path | None:
    """The path to write to, or one sentence about why not."""
    if f is None:
        return None
    if not isinstance(f, (str, os.PathLike)):
        raise DeclarationError(f"`f` is a {type(f).__name__}: pass a path, or None to write nothing")
    path = Path(f)
    if path.is_dir():
        raise DeclarationError(f"`{path}` is a folder: name a file in it, such as `{path / 'model.onnx'}`")
    if not path.parent.is_dir():
        raise DeclarationError(f"the folder `{path.parent}` does not exist")
    if not os.access(path.parent, os.W_OK):
        raise DeclarationError(f"the folder `{path.parent}` cannot be written to")
    return path.resolve()


def _replace(staged_model: Path, destination: Path) -> None:
    new_data, data = _beside(staged_model), _beside(destination)
    aside = staged_model.with_name(staged_model.name + ".previous")
    has_data = new_data.exists()
    replaces_data = data.exists() and (has_data or destination.exists())
    try:
        if replaces_data:
            data.replace(aside)
        if has_data:
            new_data.replace(data)
        staged_model.replace(destination)
    except BaseException:
        if staged_model.exists():  # else all was done when the signal came
            if has_data and not new_data.exists():
                data.unlink(missing_ok=True)
            if aside.exists():
                aside.replace(data)
        raise


def _beside(path: Path) -> Path:
    return path.with_name(path.name + ".data")
