"""Where to write: what cannot be is one sentence, and folders on the way are made and vanish again."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from anyshape.errors import AnyshapeError, DeclarationError, SavingError
from anyshape.onnxfile.destination import check_destination, check_writable, folder_made, refuse_lasting
from tests.onnxfile.strangers import text_model


def refusal(destination: object) -> str:
    with pytest.raises(AnyshapeError) as caught:
        check_destination(destination)
    return str(caught.value)


def test_a_destination_is_a_path_whose_folders_may_be_missing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert check_destination("m.onnx") == tmp_path.resolve() / "m.onnx"
    assert check_destination(tmp_path / "no" / "where" / "m.onnx") == tmp_path.resolve() / "no" / "where" / "m.onnx"
    assert check_destination(None) is None
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_written_to_gets_one_sentence(tmp_path):
    (tmp_path / "file").touch()
    long = "x" * 300
    cases = {
        io.BytesIO(): "`f` is a BytesIO: pass a path, or None to write nothing",
        tmp_path: f"`{tmp_path}` is a folder: name a file in it, such as `{tmp_path}/model.onnx`",
        "new/": "`new/` ends like a folder: name a file in it, such as `new/model.onnx`",
        tmp_path / "file/m.onnx": f"`{tmp_path}/file` is a file, so that there can be no folder `{tmp_path}/file`",
        tmp_path / "file/a/m.onnx": f"`{tmp_path}/file` is a file, so that there can be no folder `{tmp_path}/file/a`",
        long: f"`{long}` cannot be written: File name too long",
        "a\0b": "`a\0b` cannot be written: embedded null byte",
    }
    assert {destination: refusal(destination) for destination in cases} == cases


def test_under_another_name_than_a_models_only_a_model_is_replaced(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = text_model("agraph (float[n] x) => (float[n] y) { y = Neg(x) }").SerializeToString()
    contents = {
        "state.pt": b"PK\x03\x04", "net.py": b'"""A model."""', "w.safetensors": b"\x08\x01\0\0\0\0\0\0{",
        "model": model, "empty": b"", "pointer.onnx": b"version https://git-lfs", "OLD.ONNX": b"cut off",
    }  # fmt: skip
    for name, content in contents.items():
        Path(name).write_bytes(content)
    Path("link.onnx").symlink_to("state.pt")
    for name in ("state.pt", "net.py", "w.safetensors", "link.onnx"):
        said = f"`{name}` is there and holds no ONNX model: name another file, or remove it first"
        assert refusal(name) == said
    for name in ("model", "empty", "pointer.onnx", "OLD.ONNX"):
        assert check_destination(name) == tmp_path.resolve() / name


@pytest.mark.skipif(os.sep != "/", reason="a backslash is right on Windows")
def test_a_path_of_windows_is_named_as_such():
    assert refusal("C:\\models\\m.onnx") == "`C:\\models\\m.onnx` is written as on Windows: `/` parts folders here"


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="/proc of Linux")
def test_a_folder_of_the_kernel_is_asked_by_doing():
    assert refusal("/proc/x.onnx") == "the folder `/proc` is the system's own and takes no files"
    assert refusal("/proc/a/b/x.onnx") == "the folder `/proc` is the system's own and takes no files"


@pytest.mark.parametrize(
    ("code", "reason"), [(errno.EACCES, "Permission denied"), (errno.ENOSPC, "No space left on device")]
)
def test_a_folder_that_takes_nothing_is_named_with_the_systems_reason(tmp_path, monkeypatch, code, reason):
    def refuse(**_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    monkeypatch.chdir(tmp_path)
    assert refusal(tmp_path / "m.onnx") == f"the folder `{tmp_path}` cannot be written to: {reason}"
    assert refusal("m.onnx") == f"the folder `.` cannot be written to: {reason}"
    with pytest.raises(SavingError, match=f"the folder `{tmp_path}` cannot be written to"):
        check_writable(tmp_path / "new")


def test_a_file_system_that_is_read_only_binds_the_super_user_too(tmp_path):
    mount = ["mount", "-t", "tmpfs", "-o", "ro,size=64k", "tmpfs", str(tmp_path)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("only the super-user mounts")
    try:
        reason = f"the folder `{tmp_path}` cannot be written to: Read-only file system"
        assert refusal(tmp_path / "m.onnx") == refusal(tmp_path / "new/m.onnx") == reason
        told = subprocess.run(
            [sys.executable, "-m", "anyshape", "export", __file__ + ":Net", "-o", str(tmp_path / "m.onnx")],
            check=False, capture_output=True, text=True,
        )  # fmt: skip
        assert (told.returncode, told.stderr) == (3, f"error: {reason}\n")
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="permissions do not bind the super-user")
def test_a_folder_without_permission_is_named(tmp_path):
    tmp_path.chmod(0o500)
    assert refusal(tmp_path / "m.onnx") == f"the folder `{tmp_path}` cannot be written to: Permission denied"
    tmp_path.chmod(0o700)


def test_folders_that_must_last_are_refused(tmp_path, monkeypatch):
    refuse_lasting(tmp_path / "missing")
    refuse_lasting(tmp_path)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DeclarationError) as here:
        refuse_lasting(Path())
    with pytest.raises(DeclarationError) as mounted:
        refuse_lasting(Path("/"))
    assert str(here.value) == "`.` is the current folder, or around it: name another one, or one in it"
    assert str(mounted.value) == "`/` is where a file system is mounted: name a folder in it"


# ---- folders on the way


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt])
def test_folders_that_were_made_for_nothing_are_gone(tmp_path, error):
    (tmp_path / "old").mkdir()

    def write() -> None:
        with folder_made(tmp_path / "old" / "new" / "newer"):
            assert (tmp_path / "old" / "new" / "newer").is_dir()
            if error is not None:
                raise error

    if error is None:
        write()
    else:
        with pytest.raises(error):
            write()
    assert [path.name for path in tmp_path.rglob("*")] == ["old"]


def test_folders_with_something_in_them_stay(tmp_path):
    with folder_made(tmp_path / "a" / "b"):
        (tmp_path / "a" / "file").touch()
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a", "file"]


def test_no_folder_is_needed_where_nothing_is_written():
    with folder_made(None):
        pass


def test_a_text_takes_its_place_whole(tmp_path):
    from anyshape.onnxfile.destination import replace_text

    replace_text(tmp_path / "new" / "a.txt", "first")
    replace_text(tmp_path / "new" / "a.txt", "second")
    assert [(path.name, path.read_text()) for path in (tmp_path / "new").iterdir()] == [("a.txt", "second")]
    with pytest.raises(SavingError, match="cannot be written: "):
        replace_text(tmp_path / "new" / "a.txt" / "b.txt", "third")
