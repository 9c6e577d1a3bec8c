"""Ctrl-C while the program is still being read ends it with one line, as it does later."""

from __future__ import annotations

import sys

import pytest

from anyshape.__main__ import main


class _Stopping:
    def find_spec(self, name: str, *_: object) -> None:
        if name == "anyshape.cli":
            raise KeyboardInterrupt


def test_whoever_stops_it_early_sees_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delitem(sys.modules, "anyshape.cli", raising=False)
    monkeypatch.setattr(sys, "meta_path", [_Stopping(), *sys.meta_path])
    with pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, capsys.readouterr().err) == (130, "error: stopped\n")


def test_otherwise_it_is_the_command_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["anyshape", "--version"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith("anyshape ")
