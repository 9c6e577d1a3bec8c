"""Folders of killed processes are found, those of others and of the living are not touched."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from anyshape.onnxfile import temporary_folders
from anyshape.onnxfile.temporary_folders import left_folders, remove_left, temporary_folder

MAKES = """
import sys, time
from pathlib import Path
from anyshape.onnxfile.temporary_folders import temporary_folder
with temporary_folder(Path(sys.argv[1])) as folder:
    (folder / "weights").write_bytes(b"much")
    print("ready", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def process(tmp_path):
    with subprocess.Popen([sys.executable, "-c", MAKES, tmp_path], stdout=subprocess.PIPE) as found:
        assert found.stdout is not None
        found.stdout.readline()
        yield found
        found.kill()


def test_a_folder_goes_when_its_process_is_killed_and_not_before(tmp_path, process):
    assert remove_left(tmp_path) == ()
    [folder] = tmp_path.iterdir()
    process.send_signal(signal.SIGKILL)
    while left_folders(tmp_path) == []:  # at once where nobody has asked for its exit code yet
        time.sleep(0.01)
    assert remove_left(tmp_path) == (f"removed `{folder}`, which a process that was killed had left",)
    assert list(tmp_path.iterdir()) == []


def renamed(folder, **parts):
    """The same folder of another process."""
    found = temporary_folders._NAME.fullmatch(folder.name).groupdict() | parts
    order = ("host", "boot", "space", "number", "begin")
    return folder.rename(folder.with_name(".anyshape-" + "-".join(found[one] for one in order) + "-12345678"))


OTHERS = {
    "another host": ({"host": "elsewhere", "begin": "1"}, False),
    "another boot": ({"boot": "before"}, False),
    "another space of numbers": ({"space": "1", "begin": "1"}, False),
    "a number that was given again": ({"begin": "1"}, True),
    "a number that nobody has": ({"number": "4194999"}, True),
}


@pytest.mark.parametrize(("parts", "is_left"), OTHERS.values(), ids=OTHERS)
def test_only_what_is_known_to_be_dead_is_left(tmp_path, parts, is_left):
    with temporary_folder(tmp_path) as folder:
        assert left_folders(tmp_path) == []
        other = renamed(folder, **parts)
        assert left_folders(tmp_path) == ([other] if is_left else [])


def test_another_boot_counts_after_a_day(tmp_path):
    with temporary_folder(tmp_path) as folder:
        other = renamed(folder, boot="before")
        os.utime(other, (time.time() - 90_000, time.time() - 90_000))
        assert left_folders(tmp_path) == [other]


def test_strangers_links_and_other_users_folders_stay(tmp_path):
    (tmp_path / ".anyshape-something").mkdir()
    (tmp_path / "away").mkdir()
    with temporary_folder(tmp_path) as folder:
        other = renamed(folder, begin="1")
        (tmp_path / other.name.replace("12345678", "link")).symlink_to(tmp_path / "away")
        if os.geteuid() == 0:
            os.chown(other, 12345, 12345)
            assert left_folders(tmp_path) == []
    assert remove_left(tmp_path / "no such folder") == ()


def test_a_folder_is_gone_afterwards(tmp_path):
    with pytest.raises(KeyboardInterrupt), temporary_folder(tmp_path) as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_without_proc_a_number_is_asked_of_the_system(monkeypatch):
    monkeypatch.setattr(temporary_folders, "_text_of", lambda _: "")
    assert temporary_folders._begin_of(str(os.getpid())) == "0"
    assert temporary_folders._begin_of("4194999") is None
