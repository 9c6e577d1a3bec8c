"""A project with a model, one real export of it, and `export` stopped before the library."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import Result

from anyshape.cli import console
from tests.cli.project import MODEL, TOKENS, run


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("project")
    (place / "model.py").write_text(MODEL)
    return place


@pytest.fixture(scope="session")
def exported(folder) -> tuple[Path, Result]:
    """One real export, which all who need a file share."""
    path = folder / "net.onnx"
    return path, run("export", f"{folder}/model.py:Net", "-o", path, "--input", TOKENS, "--size", "seq=1..6")


class Recorded(Exception):
    """Raised instead of an export: what it would have been given."""

    def __init__(self, model, arguments) -> None:
        super().__init__()
        self.model, self.arguments = model, arguments


@pytest.fixture
def asked(monkeypatch):
    """Runs `export` up to the library, and returns what the library would be asked for."""

    def record(model, **arguments):
        raise Recorded(model, arguments)

    monkeypatch.setattr("anyshape.verbs.export.export", record)

    def ask(*arguments: object) -> Recorded:
        from anyshape.cli import endings

        seen = []
        original = endings.ending_of
        monkeypatch.setattr(console, "ending_of", lambda error, **rest: seen.append(error) or original(error, **rest))
        result = run("export", *arguments, "-o", "m.onnx")
        assert isinstance(seen[0], Recorded), result.output
        return seen[0]

    return ask
