from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest

from anyshape.fleet.result_lines import TaskRecord
from anyshape.fleet.sweep_bar import _duration, _Pace, shown_sweep

GOOD = TaskRecord("a", "anyshape", "checked", seconds=1.25)
BAD = TaskRecord("b[red]\x1b[31m\n", "anyshape", "refused", seconds=2.0)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(stream: io.StringIO, *, quiet: bool = False) -> str:
    with shown_sweep(stream, 2, quiet=quiet) as show:
        show(GOOD)
        show(BAD)
    return stream.getvalue()


def test_elsewhere_than_in_a_terminal_each_result_is_a_line() -> None:
    first, second = shown(io.StringIO()).splitlines()
    assert first.startswith("1 of 2: a [anyshape] checked, 1.2 s; about ")
    assert second.startswith("2 of 2: b[red]")
    assert second.endswith("[anyshape] refused, 2.0 s; about 0 s left")
    assert "\x1b" not in second


def test_a_terminal_has_a_bar_with_count_rate_and_time_left(monkeypatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "200")
    text = shown(Terminal())
    assert "2/2" in text
    assert "/min" in text
    assert "left" in text
    assert "b[red]" in text
    assert "a [anyshape] checked, 1.2 s\n" not in text


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_a_narrow_terminal_keeps_the_count_and_the_time_left(monkeypatch, columns: int) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", str(columns))
    stream = Terminal()
    with shown_sweep(stream, 10_000, quiet=False) as show:
        for number in range(3):
            show(replace(GOOD, name=f"a model of a long name {number}"))
    last = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", stream.getvalue()).rstrip().splitlines()[-1]
    assert re.search(r" 3/10000 0:00:0\d \d+\.\d/min, about [\d.]+ (s|min|h) left", last)
    assert len(last) <= columns


def test_entries_that_take_minutes_have_a_time_left(monkeypatch) -> None:
    now = 0.0
    monkeypatch.setattr("anyshape.fleet.sweep_bar.time.monotonic", lambda: now)
    pace = _Pace(10)
    now = 1800.0
    pace.count()
    assert (pace.rate, pace.left) == ("2.0/h", "about 4.5 h left")


@pytest.mark.parametrize("kind", [io.StringIO, Terminal])
def test_what_cannot_be_shown_does_not_end_a_sweep(monkeypatch, kind: type[io.StringIO]) -> None:
    class Gone(kind):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setenv("TERM", "xterm")
    assert shown(Gone()) == ""
    with pytest.raises(OSError, match="of the sweep's own"), shown_sweep(Gone(), 2, quiet=False):
        raise OSError("of the sweep's own")


def test_nothing_is_shown_where_nothing_is_wanted() -> None:
    assert shown(io.StringIO(), quiet=True) == ""


def test_durations_are_what_a_person_says() -> None:
    assert [_duration(seconds) for seconds in (3.4, 119, 600, 7200, 36_000)] == [
        "3 s",
        "119 s",
        "10 min",
        "2.0 h",
        "10.0 h",
    ]
