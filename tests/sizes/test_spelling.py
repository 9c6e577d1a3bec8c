"""Advice in the words of whoever asked."""

from __future__ import annotations

from anyshape.sizes.spelling import on_the_command_line, spelled


def test_the_command_line_is_told_of_options_and_python_of_arguments():
    assert spelled("sizes=", "--size") == "sizes="
    with on_the_command_line():
        assert spelled("sizes=", "--size") == "--size"
    assert spelled("sizes=", "--size") == "sizes="
