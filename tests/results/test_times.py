"""What `bench` returns: plain values for machines, and files that are written whole or not at all."""

from __future__ import annotations

import json
import math

import pytest

from anyshape.errors import DeclarationError, SavingError
from anyshape.results.times import Series, TimedPoint, TimeRatio, Times

TIMES = Times(
    "A processor, 2 processors",
    "ONNX Runtime 1.31.1",
    2,
    30,
    "wall",
    ({"batch": 1, "seq": 16}, {"batch": 1, "seq": 64}),
    (
        Series("model.onnx", (TimedPoint(0.25, 0.2, 0.31, 1_200_000), TimedPoint(1.0, 0.9, 1.25, 2_500_000_000))),
        Series("eager", (TimedPoint(0.5, 0.45, 0.625), None)),
    ),
    (TimeRatio("eager", 0, 2.0, 1.9, 2.125, is_noise=False),),
    {"node_1": ("MatMul", 0.75), "node_2": ("Add", 0.2), "node_3": ("MatMul", 0.05)},
    1,
    ("`eager` is not timed at batch = 1, seq = 64: fails: Error: no",),
)


def test_all_of_it_is_plain_values():
    document = json.loads(TIMES.to_json())
    assert document == TIMES.to_dict()
    assert document == {
        "machine": "A processor, 2 processors",
        "runtime": "ONNX Runtime 1.31.1",
        "threads": 2,
        "rounds": 30,
        "clock": "wall",
        "sizes": [{"batch": 1, "seq": 16}, {"batch": 1, "seq": 64}],
        "series": [
            {
                "name": "model.onnx",
                "points": [
                    {"median": 0.25, "low": 0.2, "high": 0.31, "memory": 1_200_000},
                    {"median": 1.0, "low": 0.9, "high": 1.25, "memory": 2_500_000_000},
                ],
            },
            {"name": "eager", "points": [{"median": 0.5, "low": 0.45, "high": 0.625, "memory": None}, None]},
        ],
        "ratios": [{"name": "eager", "size": 0, "median": 2.0, "low": 1.9, "high": 2.125, "within_noise": False}],
        "nodes": {"node_1": 0.75, "node_2": 0.2, "node_3": 0.05},
        "operators": {"node_1": "MatMul", "node_2": "Add", "node_3": "MatMul"},
        "profiled_at": 1,
        "notes": ["`eager` is not timed at batch = 1, seq = 64: fails: Error: no"],
    }


def test_an_end_that_is_not_known_is_none_in_json():
    from dataclasses import replace

    few = replace(TIMES, ratios=(TimeRatio("eager", 0, 2.0, 0.0, math.inf, is_noise=True),), nodes={})
    assert few.to_dict()["ratios"][0]["high"] is None
    assert (few.to_dict()["nodes"], few.to_dict()["profiled_at"]) == (None, None)


def test_a_repr_is_one_line_and_a_notebook_gets_the_picture():
    assert repr(TIMES) == "<Times timed: model.onnx at 2 sizes in ONNX Runtime 1.31.1 on 2 threads>"
    assert "<svg " in TIMES._repr_html_()


def test_a_picture_or_the_figures_are_written(tmp_path):
    TIMES.save(tmp_path / "new" / "times.svg")
    assert (tmp_path / "new" / "times.svg").read_text() == TIMES.svg()
    TIMES.save(tmp_path / "times.json")
    TIMES.save(tmp_path / "times.json")
    assert json.loads((tmp_path / "times.json").read_text()) == TIMES.to_dict()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "times.json"]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("times.onnx", "`times.onnx` is neither .svg or .png, for a picture, nor .json, for the figures"),
    ],
)
def test_another_kind_of_file_is_one_sentence(name, sentence):
    with pytest.raises(DeclarationError) as refusal:
        TIMES.save(name)
    assert str(refusal.value) == sentence


def test_what_cannot_be_written_is_one_sentence_and_leaves_nothing(tmp_path):
    (tmp_path / "times.svg").mkdir()
    with pytest.raises((DeclarationError, SavingError), match="is a folder"):
        TIMES.save(tmp_path / "times.svg")
    assert list((tmp_path / "times.svg").iterdir()) == []
