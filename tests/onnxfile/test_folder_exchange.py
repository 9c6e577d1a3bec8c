"""A folder takes another one's place in one step, and what is not replaced stays in it."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from anyshape.errors import SavingError
from anyshape.onnxfile import folder_exchange
from anyshape.onnxfile.folder_exchange import staged_folder
from anyshape.onnxfile.saving import write_model
from tests.onnxfile.test_placement import at_every_move
from tests.onnxfile.test_saving import data_of, model_of


def texts(folder):
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.relative_to(folder).as_posix(): path.read_text() for path in files}


def write(destination, **files):
    with staged_folder(destination) as stage:
        for name, text in files.items():
            place = stage.path / name.replace("__", "/")
            place.parent.mkdir(exist_ok=True)
            place.write_text(text)
        stage.commit()
    return stage


def without_exchange(monkeypatch):
    monkeypatch.setattr(folder_exchange, "_is_exchanged", lambda *_: False)


@pytest.fixture(params=["in one step", "in two"])
def way(request, monkeypatch):
    if request.param == "in two":
        without_exchange(monkeypatch)
    return request.param


def test_a_folder_appears_with_all_its_files(tmp_path, way):
    write(tmp_path / "out", model="1", onnx__decoder="2")
    assert texts(tmp_path) == {"out/model": "1", "out/onnx/decoder": "2"}


def test_what_is_not_replaced_stays_the_same_file(tmp_path, way):
    out = tmp_path / "out"
    write(out, model="old", notes="mine", onnx__mine="mine")
    (out / "empty" / "deep").mkdir(parents=True)
    (out / "empty").chmod(0o750)
    (out / "link").symlink_to("notes")
    os.mkfifo(out / "pipe")
    before = {name: (out / name).lstat().st_ino for name in ("notes", "onnx/mine", "link", "pipe")}
    write(out, model="new", onnx__decoder="new")
    assert {name: (out / name).lstat().st_ino for name in before} == before
    assert (out / "empty" / "deep").is_dir()
    assert stat.S_IMODE((out / "empty").stat().st_mode) == 0o750
    assert texts(out) == {
        "model": "new", "notes": "mine", "onnx/mine": "mine", "onnx/decoder": "new", "link": "mine",
    }  # fmt: skip
    assert {path.name for path in tmp_path.iterdir()} == {"out"}


def test_every_moment_shows_all_of_the_old_or_all_of_the_new(tmp_path, monkeypatch):
    out, seen = tmp_path / "out", []
    write(out, a="old", b="old", onnx__c="old", notes="mine")
    with monkeypatch.context() as patch:
        at_every_move(patch, lambda: seen.append(texts(out)))
        write(out, a="new", b="new", onnx__c="new")
    whole = [{"a": word, "b": word, "onnx/c": word, "notes": "mine"} for word in ("old", "new")]
    assert [one for one in seen if one not in whole] == []
    assert seen[0] == whole[0]
    assert seen[-1] == texts(out) == whole[1]


def test_what_comes_while_files_are_carried_over_stays(tmp_path, monkeypatch, way):
    out = tmp_path / "out"
    write(out, model="old", notes="before")
    swap = folder_exchange._swap

    def late(new, destination):
        (out / "late").write_text("mine")
        (out / "draft").write_text("after")
        (out / "draft").replace(out / "notes")
        return swap(new, destination)

    monkeypatch.setattr(folder_exchange, "_swap", late)
    write(out, model="new")
    assert texts(out) == {"model": "new", "notes": "after", "late": "mine"}


def test_modes_and_owners_survive(tmp_path, way):
    out = tmp_path / "out"
    write(out, model="old")
    (out / "model").chmod(0o604)
    out.chmod(0o750)
    if os.geteuid() == 0:
        os.chown(out, 12345, 23456)
    write(out, model="new", other="new")
    assert stat.S_IMODE((out / "model").stat().st_mode) == 0o604
    assert stat.S_IMODE(out.stat().st_mode) == 0o750
    assert os.geteuid() != 0 or (out.stat().st_uid, out.stat().st_gid) == (12345, 23456)


def test_a_link_to_a_folder_stays_a_link(tmp_path):
    write(tmp_path / "real", model="old")
    (tmp_path / "link").symlink_to("real")
    write(tmp_path / "link", model="new")
    assert (tmp_path / "link").is_symlink()
    assert texts(tmp_path / "real") == {"model": "new"}


# ---- only ordinary files, and weights of ours


def test_weights_go_with_the_model_that_lists_them(tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    write_model(model_of(), out / "m.onnx", external_data=True)
    shutil.copy(out / "m.onnx", tmp_path / "kept.onnx")
    old = data_of(out / "m.onnx").name
    (out / "m.onnx.data").write_text("mine")
    with staged_folder(out) as stage:
        write_model(model_of(2.0), stage.path / "m.onnx", external_data=False)
        stage.commit()
    assert {path.name for path in out.iterdir()} == {"m.onnx", "m.onnx.data"}
    write_model(model_of(), out / "m.onnx", external_data=True)
    shutil.copy(out / "m.onnx", out / "copy.onnx")
    with staged_folder(out) as stage:
        write_model(model_of(2.0), stage.path / "m.onnx", external_data=False)
        stage.commit()
    assert {path.name for path in out.iterdir()} == {"m.onnx", "m.onnx.data", "copy.onnx", old}


STRANGER = "`{}/m.onnx_data` is somebody else's file, and has the name of the model's weights"


@pytest.mark.parametrize(
    ("name", "make", "said"),
    [
        ("model", Path.mkdir, "`{}/model` is a folder: only ordinary files are replaced"),
        ("model", os.mkfifo, "`{}/model` is a named pipe: only ordinary files are replaced"),
        ("model", lambda path: path.symlink_to("x"), "`{}/model` is a link: only ordinary files are replaced"),
        ("onnx", Path.touch, "`{}/onnx` is a file, and has the name of a folder that is to be written"),
        (
            "m.onnx_data",
            Path.touch,
            "`{}/m.onnx_data` is somebody else's file, and has the name of the model's weights",
        ),
    ],
)
def test_what_is_not_ours_is_refused_and_stays(tmp_path, name, make, said):
    out = tmp_path / "out"
    out.mkdir()
    make(out / name)
    before = (out / name).lstat()
    with pytest.raises(SavingError) as caught:
        write(out, **{"model": "new", "onnx__part": "new", "m.onnx_data": "new"})
    assert str(caught.value) == said.format(out)
    assert [path.name for path in out.iterdir()] == [name]
    assert (out / name).lstat().st_ino == before.st_ino
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


# ---- failures and kills


@pytest.mark.parametrize("fails_at", range(1, 5))
@pytest.mark.parametrize("move", ["rename", "link"])
def test_a_failure_in_between_leaves_what_was_there(tmp_path, monkeypatch, way, move, fails_at):
    out = tmp_path / "out"
    write(out, a="old", b="old", notes="mine", more="mine")
    real, calls, said = getattr(os, move), [], None

    def failing(*args, **kwargs):
        calls.append(args)
        if len(calls) == fails_at or (move == "link" and len(calls) > fails_at):
            raise OSError(28, "No space left on device")
        return real(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(os, move, failing)
        if move == "link":
            patch.setattr(shutil, "copy2", failing)
        try:
            write(out, a="new", onnx__c="new")
        except SavingError as error:
            said = str(error)
    is_met = len(calls) >= fails_at
    assert said == (f"`{out}` cannot be written: No space left on device" if is_met else None)
    old, new = {"a": "old"}, {"a": "new", "onnx/c": "new"}
    assert texts(out) == {"b": "old", "notes": "mine", "more": "mine", **(old if is_met else new)}
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert is_met or fails_at > (3 if move == "link" else 0)


def test_without_a_commit_nothing_is_left(tmp_path):
    with pytest.raises(KeyError), staged_folder(tmp_path / "out") as stage:
        (stage.path / "model").write_text("1")
        raise KeyError
    assert list(tmp_path.iterdir()) == []


KILLED = """
import sys
from pathlib import Path
from anyshape.onnxfile import folder_exchange
from tests.onnxfile.kills import kill_at
from tests.onnxfile.test_folder_exchange import write
if sys.argv[3] == "in two":
    folder_exchange._is_exchanged = lambda *_: False
kill_at(int(sys.argv[2]), "rename", "unlink", "link")
write(Path(sys.argv[1]), a="new", b="new")
"""


@pytest.mark.parametrize("how", ["in one step", "in two"])
def test_after_a_kill_the_next_run_finds_all_of_the_old_or_all_of_the_new(tmp_path, how):
    for at in range(1, 5):
        out = tmp_path / str(at) / "out"
        out.parent.mkdir()
        write(out, a="old", b="old", notes="mine")
        killed = subprocess.run([sys.executable, "-c", KILLED, out, str(at), how], check=False).returncode
        assert killed == -signal.SIGKILL
        with staged_folder(out) as stage:
            pass
        assert stage.notes[-1].endswith("which a process that was killed had left")
        found = texts(out)
        assert found in [{"a": word, "b": word, "notes": "mine"} for word in ("old", "new")]
        assert [path.name for path in out.parent.iterdir()] == ["out"]


def test_a_folder_that_was_moved_aside_comes_back_unless_its_place_is_taken(tmp_path, monkeypatch):
    out = tmp_path / "out"
    write(out, a="old")
    code = KILLED.replace(', "unlink", "link"', "")
    subprocess.run([sys.executable, "-c", code, out, "2", "in two"], check=False)
    assert not out.exists()
    out.mkdir()
    (out / "a").write_text("somebody else's")
    with staged_folder(out) as stage:
        pass
    assert stage.notes == []
    shutil.rmtree(out)
    with staged_folder(out) as stage:
        pass
    assert stage.notes[0] == f"put `{out}` back, which a process that was killed had moved aside"
    assert texts(tmp_path) == {"out/a": "old"}
