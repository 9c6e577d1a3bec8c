from __future__ import annotations

import io

from anyshape.fleet.result_lines import TaskRecord
from anyshape.fleet.sweep_bar import _duration, shown_sweep

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
