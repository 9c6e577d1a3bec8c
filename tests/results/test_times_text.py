"""Times as text, read whole: with bars as wide as the terminal lets, in ASCII, and without bars."""

from __future__ import annotations

import io
import math
import sys
from dataclasses import replace

import pytest

from anyshape.results.times import Series, TimedPoint, TimeRatio
from anyshape.results.times_text import times_text
from tests.results.test_times import TIMES

FACTS = """\
timed: model.onnx at 2 sizes in ONNX Runtime 1.31.1 on 2 threads
  machine  A processor, 2 processors
  clock    the wall clock, which other programs lengthen; at least 30 rounds, in random order
  memory   what a fresh process grew by in its first run: no weights, no inputs, nothing of PyTorch's
  nodes    MatMul 80%, Add 20% at batch = 1, seq = 64
  note     `eager` is not timed at batch = 1, seq = 64: fails: Error: no

"""


def test_the_table_has_a_bar_for_each_row():
    assert times_text(TIMES, width=100, blocks=True) == FACTS + (
        "  sizes                               median      10-90 %             ratio   memory\n"
        "  batch = 1, seq = 16  model.onnx   0.250 ms  0.200-0.310                     1.2 MB  ███▌\n"
        "                       eager        0.500 ms  0.450-0.625  2.00 (1.90-2.12)           ███████\n"
        "  batch = 1, seq = 64  model.onnx    1.00 ms   0.900-1.25                    2.50 GB  ██████████████\n"
        "                       eager       not timed"
    )


def test_a_stream_without_blocks_gets_plain_bars(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    monkeypatch.setenv("COLUMNS", "100")
    text = str(TIMES)
    assert text.isascii()
    assert text == times_text(TIMES, width=100, blocks=False)
    assert [line.count("#") for line in text.splitlines()[-4:]] == [4, 7, 14, 0]


def test_no_line_of_the_table_is_wider_than_the_terminal_where_it_can_be_helped():
    for width in range(87, 160):
        table = times_text(TIMES, width=width, blocks=True).removeprefix(FACTS)
        assert max(map(len, table.splitlines())) <= width
    assert "█" not in times_text(TIMES, width=80, blocks=True)


@pytest.mark.parametrize(
    ("memory", "words"), [(0, "0 kB"), (98_304, "98 kB"), (999_600_000, "999.6 MB"), (10**9, "1.00 GB"), (None, "")]
)
def test_memory_has_a_unit_that_tells_something(memory, words):
    points = (TimedPoint(1.0, 0.9, 1.1, memory),)
    alone = replace(TIMES, sizes=({},), series=(Series("m.onnx", points),), ratios=(), nodes={})
    assert times_text(alone, width=100, blocks=True).split("0.900-1.10")[1].strip() == words


@pytest.mark.parametrize(
    ("ratio", "words"),
    [
        (TimeRatio("eager", 0, 1.02, 0.97, 1.05, is_noise=True), "1.02 (0.97-1.05) noise"),
        (TimeRatio("eager", 0, 1.02, 0.0, math.inf, is_noise=True), "1.02 (too few rounds)"),
    ],
)
def test_what_is_within_the_noise_is_called_so(ratio, words):
    assert f" {words} " in times_text(replace(TIMES, ratios=(ratio,)), width=100, blocks=True)


def test_one_file_at_its_only_size_needs_no_bar():
    alone = replace(
        TIMES, sizes=({},), series=(Series("m.onnx", (TimedPoint(12.345, 1e-9, 1234.5),)),), ratios=(), nodes={},
        notes=(), threads=1, clock="thread",
    )  # fmt: skip
    assert times_text(alone, width=100, blocks=True) == (
        "timed: m.onnx at 1 size in ONNX Runtime 1.31.1 on 1 thread\n"
        "  machine  A processor, 2 processors\n"
        "  clock    the thread's own time, whatever else the machine does; at least 30 rounds, in random order\n"
        "\n"
        "  sizes              median       10-90 %\n"
        "  as it is  m.onnx  12.3 ms  0.00000-1234"
    )
