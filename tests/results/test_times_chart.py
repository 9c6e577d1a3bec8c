"""The picture is well-formed, shows every point where it belongs, and takes names for nothing but text."""

from __future__ import annotations

import struct
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from types import SimpleNamespace

import pytest

from anyshape.errors import AnyshapeError
from anyshape.results.times import Series
from anyshape.results.times_chart import chart_of, pixels_of
from tests.results.test_times import TIMES

_SVG = "{http://www.w3.org/2000/svg}"


def _circles(picture):
    return [(float(one.get("cx")), float(one.get("cy"))) for one in ET.fromstring(picture).iter(f"{_SVG}circle")]


def test_every_point_stands_on_its_size_and_slower_is_higher():
    (x16, y16), (x64, y64), (eager_x, eager_y) = _circles(chart_of(TIMES))
    assert x16 == eager_x < x64
    assert y64 < eager_y < y16
    # in logarithms: twice the time is half of the way to four times
    assert eager_y == pytest.approx((y16 + y64) / 2, abs=0.2)


def test_the_same_times_are_the_same_bytes():
    assert chart_of(TIMES) == chart_of(TIMES)


def test_sizes_of_several_dims_stand_side_by_side():
    sizes = ({"batch": 1, "seq": 16}, {"batch": 4, "seq": 8})
    found = _circles(chart_of(replace(TIMES, sizes=sizes)))
    assert found[0][0] < found[1][0]
    assert "batch 4 seq 8" in chart_of(replace(TIMES, sizes=sizes))


def test_names_are_text():
    hostile = replace(TIMES, series=tuple(Series(f'<script>"&\x1b{one.name}', one.points) for one in TIMES.series))
    picture = chart_of(hostile)
    assert "<script>" not in picture
    assert "&lt;script&gt;" in picture
    assert len(_circles(picture)) == 3


def test_a_picture_without_points_is_one_all_the_same():
    empty = replace(TIMES, series=(Series("m.onnx", (None, None)),))
    assert _circles(chart_of(empty)) == []


# ---- as pixels


def test_the_same_picture_as_pixels():
    pytest.importorskip("resvg_py", reason="the extra png is not installed")
    drawn = pixels_of(chart_of(TIMES))
    assert drawn.startswith(b"\x89PNG")
    assert struct.unpack(">II", drawn[16:24]) == (1440, 800)
    assert pixels_of(chart_of(TIMES)) == drawn


def test_a_png_without_what_draws_it_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    with pytest.raises(AnyshapeError) as refusal:
        TIMES.save("times.png")
    assert str(refusal.value) == "a PNG needs resvg-py: pip install 'anyshape[png]', or name a .svg"


def test_a_png_is_not_drawn_without_its_letters(monkeypatch):
    """Where no font is found, resvg leaves text out."""
    monkeypatch.setitem(sys.modules, "resvg_py", SimpleNamespace(svg_to_bytes=lambda *_, **__: b"nothing"))
    with pytest.raises(AnyshapeError) as refusal:
        TIMES.save("times.png")
    assert str(refusal.value) == "a PNG needs a font, and none is found on this machine: name a .svg"
