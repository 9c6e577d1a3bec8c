"""Files against each other: who runs, who is left out and why, and what is told of noise; no absolute time is asked."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from anyshape.results.times import TimedPoint
from anyshape.runtime.opening import Opening
from anyshape.runtime.session import RuntimeFailureError
from anyshape.runtime.timing import Spread
from anyshape.sizes.notation import SizeRange
from anyshape.testbench.race import RaceRules, _Lap, _notes_on_laps, _notes_on_others, opened_racers, run_race
from anyshape.testbench.timed_calls import TimedCall, TimedCalls, TimedWay
from anyshape.testbench.timed_sizes import SizesOffered
from tests.onnxfile.strangers import text_model

DOUBLE = text_model("main (float[n] x) => (float[n] y) { y = Add(x, x) }")
TRIPLE = text_model("main (float[n] x) => (float[n] y) { z = Add(x, x) y = Add(x, z) }")
SLOW = text_model(
    "main (float[n] x) => (float[n] y) { "
    + " ".join(f"a{i + 1} = Erf(a{i})".replace("a0", "x") for i in range(40))
    + " z = Mul(a40, a40) w = Sub(z, z) d = Add(x, x) y = Add(d, w) }"
)
OF_FOUR = text_model("main (float[n] x) => (float[n] y) <float[4] k = {1, 1, 1, 1}> { z = Mul(x, k) y = Add(z, x) }")
DRAWS = text_model("main (float[n] x) => (float[n] y) { z = RandomNormalLike(x) y = Add(x, z) }")
BROKEN = text_model("main (float[n] x) => (float[n] y) { y = NoSuchOperator(x) }")

RULES = RaceRules(Opening("", threads=1), rounds=12)


def _written(folder: Path, **models):
    for name, model in models.items():
        (folder / f"{name}.onnx").write_bytes(model.SerializeToString())
    return [(folder / f"{name}.onnx", model) for name, model in models.items()]


def _calls(**ways):
    def call_at(sizes):
        x = np.linspace(-1, 1, sizes["n"], dtype=np.float32)
        bound = {name: TimedWay(lambda: None, lambda give=give: give(x)) for name, give in ways.items()}
        return TimedCall({"x": x}, [2 * x] if ways else None, bound) if sizes["n"] else "has no inputs"

    return TimedCalls(SizesOffered({"n": 4}, {"n": SizeRange()}, lambda s: s, lambda _: 0.0), call_at)


def _race(files, sizes=(4, 3000), calls=None, rules=RULES):
    with opened_racers(files, rules, trusted=True) as racers:
        return run_race(racers, calls or _calls(), [{"n": n} for n in sizes], rules, lambda _: None)


def test_all_that_give_the_same_are_timed_and_a_slower_one_is_called_so(tmp_path):
    times = _race(_written(tmp_path, double=DOUBLE, slow=SLOW))
    assert [series.name for series in times.series] == ["double.onnx", "slow.onnx"]
    assert all(
        point is not None and 0 < point.low <= point.median <= point.high for s in times.series for point in s.points
    )
    assert all(point.memory is not None for s in times.series for point in s.points) or not Path("/proc").exists()
    first, second = times.ratios
    assert (second.name, second.size, second.is_noise) == ("slow.onnx", 1, False)
    assert second.low > 1.5
    assert first.median > 1
    assert (times.rounds, times.threads, times.clock, times.profiled_at) == (12, 1, "thread", 1)
    assert {operator for operator, _ in times.nodes.values()} == {"Add"}
    assert any(note.startswith("two processes with `double.onnx` differ by up to ") for note in times.notes)


def test_what_gives_other_numbers_or_fails_is_told_and_not_timed(tmp_path):
    files = _written(tmp_path, double=DOUBLE, triple=TRIPLE, of_four=OF_FOUR, broken=BROKEN)
    times = _race(files, (4, 6))
    points = {series.name: [point is not None for point in series.points] for series in times.series}
    assert points == {"double.onnx": [True, True], "triple.onnx": [False, False], "of_four.onnx": [True, False]}
    assert times.notes[0].startswith("`broken.onnx` is not loaded: ")
    assert (
        "`triple.onnx` is not timed at n = 4 and 1 more: gives other numbers than double.onnx: output 0 differs by 1 "
        "(allowed 0.002)" in times.notes
    )
    assert [note for note in times.notes if note.startswith("`of_four.onnx` is not timed at n = 6: fails: Mul node")]


def test_a_first_file_that_does_not_load_is_the_end(tmp_path):
    with pytest.raises(RuntimeFailureError, match=r"^`broken.onnx` is not loaded: "):
        _race(_written(tmp_path, broken=BROKEN, double=DOUBLE))


def test_a_size_without_a_call_is_told(tmp_path):
    times = _race(_written(tmp_path, double=DOUBLE), (0, 4))
    assert times.series[0].points[0] is None
    assert "`double.onnx` is not timed at n = 0: has no inputs" in times.notes


def test_ways_to_run_the_model_are_held_to_it_as_well(tmp_path):
    ways = {"eager": lambda x: [2 * x], "wrong": lambda x: [3 * x], "fails": lambda _: "fails: Error: no"}
    times = _race(_written(tmp_path, double=DOUBLE, triple=TRIPLE), (4,), _calls(**ways))
    points = {series.name: series.points[0] is not None for series in times.series}
    assert points == {"double.onnx": True, "triple.onnx": False, "eager": True, "wrong": False, "fails": False}
    assert "`fails` is not timed at n = 4: fails: Error: no" in times.notes
    told = "gives other numbers than PyTorch: output 0 differs by 1 (allowed 0.002)"
    assert f"`triple.onnx` is not timed at n = 4: {told}" in times.notes


def test_random_files_are_compared_by_shape(tmp_path):
    times = _race(_written(tmp_path, draws=DRAWS, double=DOUBLE), (4,))
    assert all(series.points[0] is not None for series in times.series)
    assert "results are random: only shapes and types were compared" in times.notes


def test_two_files_of_one_name_are_told_apart(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
    files = [
        *_written(tmp_path / "a", m=DOUBLE),
        *_written(tmp_path / "b", m=DOUBLE),
        *_written(tmp_path / "b", m=DOUBLE),
    ]
    with opened_racers(files, RULES, trusted=True) as racers:
        assert list(racers.files) == ["m.onnx", "b/m.onnx", "m.onnx (2)"]


def test_a_lap_tells_ratios_within_rounds():
    chance = random.Random(0)
    drift = [chance.uniform(1, 3) for _ in range(20)]
    lap = _Lap({}, seconds={"a": drift, "b": [2 * one for one in drift]}, again=drift, memory={"a": 7})
    (ratio,) = lap.ratios(3, "a")
    assert (ratio.name, ratio.size, ratio.median, ratio.is_noise) == ("b", 3, pytest.approx(2), False)
    assert lap.noise("a") == Spread(1, 1, 1)
    assert lap.point("c") is None
    assert isinstance(lap.point("a"), TimedPoint)
    assert lap.point("a").memory == 7
    assert list(lap.ratios(0, "c")) == []


def test_what_other_programs_take_is_told_where_it_is_much():
    assert list(_notes_on_others(0.05, "wall")) == []
    assert list(_notes_on_others(0.4, "wall")) == [
        "other programs took 40% of the processors' time meanwhile: times are too long"
    ]
    assert list(_notes_on_others(0.4, "thread")) == [
        "other programs took 40% of the processors' time meanwhile: caches and memory were shared with them"
    ]


def test_noise_of_few_rounds_is_not_told():
    lap = _Lap({}, seconds={"a": [1.0] * 3, "b": [1.0] * 3}, again=[1.0] * 3)
    assert list(_notes_on_laps([lap], "a")) == []
