"""Only ordinary files are replaced, every moment shows the old or the new, and refusals are one sentence."""

from __future__ import annotations

import os
import resource
import signal
import socket
import stat
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import onnx
import pytest

from anyshape.errors import AnyshapeError, SavingError
from anyshape.onnxfile import placement
from anyshape.onnxfile.destination import check_destination
from anyshape.onnxfile.placement import in_units, listed_data, require_room, uninterrupted
from tests.onnxfile.test_saving import data_of, files, model_of, save, weight_of

MOVES = ("replace", "rename", "unlink", "remove", "rmdir", "link", "symlink")


def at_every_move(monkeypatch, look):
    """Look before and after every change of a folder's entries."""
    for name in MOVES:
        real = getattr(os, name)

        def move(*args, real=real, **kwargs):
            look()
            result = real(*args, **kwargs)
            look()
            return result

        monkeypatch.setattr(os, name, move)


@pytest.mark.parametrize("old", [True, False, None])
@pytest.mark.parametrize("new", [True, False])
def test_every_moment_shows_the_old_model_or_the_new(tmp_path, monkeypatch, old, new):
    path, seen = tmp_path / "m.onnx", []
    if old is not None:
        save(path, model_of(1.0), external_data=old)
    with monkeypatch.context() as patch:
        at_every_move(patch, lambda: seen.append(weight_of(path) if path.exists() else None))
        save(path, model_of(2.0), external_data=new)
    first = None if old is None else 1.0
    changed = seen.index(2.0)
    assert seen == [first] * changed + [2.0] * (len(seen) - changed)
    assert weight_of(path) == 2.0
    assert set(files(tmp_path)) == {"m.onnx", *listed_data(path)}


# ---- what may be replaced


def nodes(folder):
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "socket"))
    found = {"pipe": "a named pipe", "socket": "a socket"}
    if os.geteuid() == 0:
        os.mknod(folder / "device", stat.S_IFCHR | 0o600, os.makedev(1, 3))
        found["device"] = "a device"
    return found


def test_only_ordinary_files_are_replaced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a socket's path is short
    for name, kind in nodes(Path()).items():
        before = Path(name).lstat()
        with pytest.raises(AnyshapeError) as early:
            check_destination(name)
        with pytest.raises(SavingError) as late:
            save(tmp_path / name, model_of())
        assert str(early.value) == f"`{name}` is {kind}: only ordinary files are replaced"
        assert str(late.value) == f"`{tmp_path / name}` is {kind}: only ordinary files are replaced"
        assert Path(name).lstat() == before
    assert not list(tmp_path.glob(".any*"))


def test_strangers_beside_the_model_stay(tmp_path):
    (tmp_path / "m.onnx.data").mkdir()
    (tmp_path / "m.onnx.data" / "kept").write_bytes(b"mine")
    (tmp_path / "m.onnx_data").write_bytes(b"mine")
    (tmp_path / "m.onnx.0123456789abcdef.data").write_bytes(b"mine")
    for value in (1.0, 2.0):
        save(tmp_path / "m.onnx", model_of(value), external_data=True)
    assert (tmp_path / "m.onnx.data" / "kept").read_bytes() == b"mine"
    assert (tmp_path / "m.onnx_data").read_bytes() == b"mine"
    assert (tmp_path / "m.onnx.0123456789abcdef.data").read_bytes() == b"mine"


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_stranger_with_the_name_of_the_weights_is_refused(tmp_path, kind):
    (tmp_path / "other").mkdir()
    save(tmp_path / "other" / "m.onnx", model_of(), external_data=True)
    name = data_of(tmp_path / "other" / "m.onnx").name
    stranger = tmp_path / name
    stranger.mkdir() if kind == "folder" else stranger.write_bytes(b"mine")
    with pytest.raises(SavingError) as caught:
        save(tmp_path / "m.onnx", model_of(), external_data=True)
    said = {
        "file": "is somebody else's file, and has the name of the model's weights",
        "folder": "is a folder: only ordinary files are replaced",
    }
    assert str(caught.value) == f"`{stranger}` {said[kind]}"
    assert set(files(tmp_path / "other")) == {"m.onnx", name}
    assert {path.name for path in tmp_path.iterdir()} == {"other", name}


def test_data_of_other_exporters_goes_with_the_model_that_lists_it(tmp_path):
    save(tmp_path / "m.onnx", model_of(1.0), external_data=True)
    proto = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    data_of(tmp_path / "m.onnx").rename(tmp_path / "m.onnx.data")
    for entry in proto.graph.initializer[0].external_data:
        if entry.key == "location":
            entry.value = "m.onnx.data"
    onnx.save(proto, tmp_path / "m.onnx")
    assert weight_of(tmp_path / "m.onnx") == 1.0
    save(tmp_path / "m.onnx", model_of(2.0), external_data=True)
    assert set(files(tmp_path)) == {"m.onnx", data_of(tmp_path / "m.onnx").name}


def test_a_link_to_itself_in_the_folder_disturbs_nobody(tmp_path):
    (tmp_path / "loop.onnx").symlink_to("loop.onnx")
    for value in (1.0, 2.0):
        save(tmp_path / "m.onnx", model_of(value), external_data=True)
    assert weight_of(tmp_path / "m.onnx") == 2.0
    assert len(list(tmp_path.glob("m.onnx.*.data"))) == 1


def test_weights_that_a_copy_of_the_model_uses_stay_and_that_is_said(tmp_path):
    path = tmp_path / "m.onnx"
    save(path, model_of(1.0), external_data=True)
    (tmp_path / "copy.onnx").write_bytes(path.read_bytes())
    used = data_of(path).name
    with placed(path, model_of(2.0)) as stage:
        pass
    assert stage.notes == [f"`{used}` stays: `copy.onnx` uses it, too"]
    assert (weight_of(path), weight_of(tmp_path / "copy.onnx")) == (2.0, 1.0)


def placed(path, model):
    from anyshape.onnxfile.saving import staged

    class _Saved:
        def __enter__(self):
            with staged(path) as stage:
                stage.write(model, external_data=True)
                stage.commit()
            return stage

        def __exit__(self, *_):
            return None

    return _Saved()


def test_a_link_to_itself_and_one_to_nowhere_get_one_sentence(tmp_path):
    (tmp_path / "loop.onnx").symlink_to("loop.onnx")
    (tmp_path / "nowhere.onnx").symlink_to(tmp_path / "no" / "m.onnx")
    with pytest.raises(SavingError) as loop:
        check_destination(tmp_path / "loop.onnx")
    with pytest.raises(AnyshapeError) as nowhere:
        check_destination(tmp_path / "nowhere.onnx")
    assert str(loop.value) == f"`{tmp_path}/loop.onnx` cannot be written: Too many levels of symbolic links"
    assert str(nowhere.value) == (
        f"`{tmp_path}/nowhere.onnx` is a link to `{tmp_path}/no/m.onnx`, whose folder does not exist"
    )


@pytest.mark.parametrize("external_data", [True, False])
def test_mode_and_owner_survive_and_new_files_obey_the_mask(tmp_path, external_data):
    path = tmp_path / "m.onnx"
    before = os.umask(0o027)
    try:
        save(path, model_of(1.0), external_data=external_data)
    finally:
        os.umask(before)
    assert {stat.S_IMODE(one.stat().st_mode) for one in tmp_path.iterdir()} == {0o640}
    path.chmod(0o604)
    if os.geteuid() == 0:
        os.chown(path, 12345, 23456)
    save(path, model_of(2.0), external_data=external_data)
    for one in tmp_path.iterdir():
        assert stat.S_IMODE(one.stat().st_mode) == 0o604
        assert os.geteuid() != 0 or (one.stat().st_uid, one.stat().st_gid) == (12345, 23456)


# ---- kills


KILLED = """
import sys
from pathlib import Path
from tests.onnxfile.kills import kill_at
from tests.onnxfile.test_saving import model_of, save
kill_at(int(sys.argv[2]), "replace", "rename", "unlink")
save(Path(sys.argv[1]), model_of(2.0), external_data=True)
"""


def test_after_a_kill_at_any_move_the_next_run_leaves_one_model_and_its_weights(tmp_path, monkeypatch):
    codes = []
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))  # where others may have left something
    for at in range(1, 6):
        path = tmp_path / f"{at}" / "m.onnx"
        path.parent.mkdir()
        save(path, model_of(1.0), external_data=True)
        codes.append(subprocess.run([sys.executable, "-c", KILLED, path, str(at)], check=False).returncode)
        assert weight_of(path) in (1.0, 2.0)
        with placed(path, model_of(3.0)) as stage:
            assert len(stage.notes) == 1
            assert stage.notes[0].endswith("which a process that was killed had left")
        assert set(files(path.parent)) == {"m.onnx", data_of(path).name}
        assert weight_of(path) == 3.0
    assert codes == [-signal.SIGKILL] * 5


def test_two_processes_at_once_leave_one_whole_model(tmp_path):
    code = """
    import sys
    from pathlib import Path
    from tests.onnxfile.test_saving import model_of, save
    for turn in range(20):
        save(Path(sys.argv[1]), model_of(float(sys.argv[2]) + turn), external_data=True)
    """
    path = tmp_path / "m.onnx"
    runs = [subprocess.Popen([sys.executable, "-c", textwrap.dedent(code), path, one]) for one in ("100", "200")]
    assert [run.wait() for run in runs] == [0, 0]
    assert weight_of(path) in (119.0, 219.0)
    assert set(files(tmp_path)) == {"m.onnx", data_of(path).name}


def test_signals_wait_until_all_is_done():
    done = []
    with pytest.raises(KeyboardInterrupt):
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            done.append("inside")
        done.append("after")
    assert done == ["inside"]
    thread = threading.Thread(target=lambda: done.append(uninterrupted().__enter__()))
    thread.start()
    thread.join()
    assert done == ["inside", None]


# ---- the disk


def test_room_is_asked_for_before_anything_is_written(tmp_path, monkeypatch):
    save(tmp_path / "m.onnx", model_of(1.0), external_data=True)
    before = files(tmp_path)
    monkeypatch.setattr(placement.shutil, "disk_usage", lambda _: _Usage)
    for external_data in (True, False):
        with pytest.raises(SavingError) as caught:
            save(tmp_path / "m.onnx", model_of(2.0), external_data=external_data)
        assert str(caught.value) == f"the weights need 4,000 bytes, and 3,999 bytes are free in `{tmp_path}`"
        assert files(tmp_path) == before


class _Usage:
    free = 3999


def test_a_limit_of_files_is_one_sentence_and_the_old_file_stays(tmp_path):
    save(tmp_path / "m.onnx", model_of(1.0), external_data=True)
    before = files(tmp_path)
    code = """
    import resource, sys
    from pathlib import Path
    from anyshape.errors import SavingError
    from anyshape.onnxfile import placement
    from tests.onnxfile.test_saving import model_of, save
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
    for is_known in (True, False):
        if not is_known:
            placement._longest_file = lambda: None
        for external_data in (True, False):
            try:
                save(Path(sys.argv[1]), model_of(2.0), external_data=external_data)
            except SavingError as error:
                sys.stderr.write(f"{error}\\n")
    """
    path = tmp_path / "m.onnx"
    run = subprocess.run(
        [sys.executable, "-B", "-c", textwrap.dedent(code), path], check=False, capture_output=True, text=True
    )
    known = "the weights need 4,000 bytes, and a file may have 1,000 bytes at most here (`ulimit -f`)"
    reasons = [f"`{path}` cannot be written: {why}" for why in ("there is no room for all of it", "File too large")]
    assert run.stderr.splitlines() == [known, known, *reasons]
    assert files(tmp_path) == before


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("only the super-user mounts")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_is_one_sentence_and_the_old_file_stays(small_disk, monkeypatch):
    path = small_disk / "m.onnx"
    save(path, model_of(1.0, 5000), external_data=True)
    before = files(small_disk)
    with pytest.raises(SavingError, match=r"^the weights need 60,000 bytes, and [0-9,]+ bytes are free in "):
        save(path, model_of(2.0, 15000), external_data=True)
    monkeypatch.setattr(placement, "require_room", lambda *_: None)
    monkeypatch.setattr("anyshape.onnxfile.saving.require_room", lambda *_: None)
    for external_data in (True, False):
        with pytest.raises(SavingError) as caught:
            save(path, model_of(2.0, 15000), external_data=external_data)
        reason = "there is no room for all of it" if external_data else "No space left on device"
        assert str(caught.value) == f"`{path}` cannot be written: {reason}"
        assert files(small_disk) == before


def test_a_name_that_leaves_no_room_for_the_weights_is_one_sentence(tmp_path):
    path = tmp_path / ("x" * 250)
    save(path, model_of(1.0), external_data=False)
    with pytest.raises(SavingError) as caught:
        save(path, model_of(2.0), external_data=True)
    assert str(caught.value) == f"`{path}` cannot be written: File name too long"
    assert weight_of(path) == 1.0


def test_a_folder_that_vanishes_is_one_sentence(tmp_path):
    from anyshape.onnxfile.saving import staged

    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(SavingError) as caught, staged(folder / "m.onnx") as stage:
        stage.write(model_of())
        stage.path.unlink()
        stage.path.parent.rmdir()
        folder.rmdir()
        stage.commit()
    assert str(caught.value) == f"`{folder}/m.onnx` cannot be written: No such file or directory"
    assert not folder.exists()


def test_a_limit_of_the_system_is_known(monkeypatch, tmp_path):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (10, 10))
    require_room(tmp_path, 10)
    with pytest.raises(SavingError):
        require_room(tmp_path, 11)


def test_bytes_are_told_in_units():
    assert [in_units(count) for count in (0, 999, 1_500_000, 2_340_000_000)] == [
        "0 bytes", "999 bytes", "1.5 MB", "2.3 GB",
    ]  # fmt: skip


def test_the_name_of_the_weights_tells_what_they_hold(tmp_path):
    path = tmp_path / "m.onnx"
    save(path, model_of(3.0), external_data=True)
    assert data_of(path).name == "m.onnx.6e800807b369ce9a.data"
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    for one in (path, data_of(path)):
        one.rename(moved / one.name)
    assert np.all(onnx.numpy_helper.to_array(onnx.load(moved / "m.onnx").graph.initializer[0]) == 3.0)
