from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from anyshape import DeclarationError
from anyshape.checkpoints.written_folder import check_folder, staged_folder


def _texts(folder: Path) -> dict[str, str]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_text() for path in files}


def _write(destination: Path, **files: str) -> None:
    with staged_folder(destination) as stage:
        for name, text in files.items():
            place = stage.path / name.replace("__", "/")
            place.parent.mkdir(exist_ok=True)
            place.write_text(text)
        stage.commit()


def test_a_folder_appears_with_all_its_files(tmp_path: Path) -> None:
    _write(tmp_path / "out", model="1", onnx__decoder="2")
    assert _texts(tmp_path) == {"out/model": "1", "out/onnx/decoder": "2"}


def test_files_of_the_same_name_are_replaced_and_others_stay(tmp_path: Path) -> None:
    _write(tmp_path / "out", model="old", notes="mine")
    _write(tmp_path / "out", model="new")
    assert _texts(tmp_path) == {"out/model": "new", "out/notes": "mine"}


def test_weights_beside_a_model_go_with_it(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    for name in ("model.onnx", "model.onnx.data", "other.onnx.data"):
        (tmp_path / "out" / name).write_text("old")
    with staged_folder(tmp_path / "out") as stage:
        (stage.path / "model.onnx").write_text("new")
        stage.commit()
    assert _texts(tmp_path) == {"out/model.onnx": "new", "out/other.onnx.data": "old"}


def test_without_a_commit_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(KeyError), staged_folder(tmp_path / "out") as stage:
        (stage.path / "model").write_text("1")
        raise KeyError
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("fails_at", [1, 2, 3, 4])
def test_a_failure_in_between_leaves_what_was_there(
    fails_at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(tmp_path / "out", a="old", b="old")
    replace, calls = os.replace, []

    def failing(*args: Any, **kwargs: Any) -> None:
        calls.append(args)
        if len(calls) == fails_at:
            raise OSError("disk full")
        replace(*args, **kwargs)

    monkeypatch.setattr(os, "replace", failing)
    monkeypatch.setattr(Path, "replace", lambda self, target: failing(self, target))
    with pytest.raises(OSError, match="disk full"):
        _write(tmp_path / "out", a="new", b="new", onnx__c="new")
    assert _texts(tmp_path) == {"out/a": "old", "out/b": "old"}
    assert not (tmp_path / "out/onnx").exists()


def test_a_new_folder_vanishes_again_after_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(Path, "replace", failing)
    with pytest.raises(OSError, match="disk full"):
        _write(tmp_path / "out", onnx__c="new")
    assert list(tmp_path.iterdir()) == []


def test_places_that_cannot_be_written_to_get_one_sentence(tmp_path: Path) -> None:
    source = tmp_path / "checkpoint"
    source.mkdir()
    (tmp_path / "file").touch()

    def refusal(out: Path) -> str:
        with pytest.raises(DeclarationError) as refused:
            check_folder(out, source)
        return str(refused.value).replace(str(tmp_path), "/home")

    assert refusal(tmp_path / "file") == "`/home/file` is a file: a checkpoint is exported to a folder"
    assert refusal(source) == "`/home/checkpoint` is the checkpoint itself: name another folder"
    assert refusal(tmp_path / "no/where") == "the folder `/home/no` does not exist"
