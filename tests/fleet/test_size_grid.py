from __future__ import annotations

import pytest

from anyshape.errors import DeclarationError
from anyshape.fleet.result_lines import TaskRecord
from anyshape.fleet.size_grid import GridResult, dealt, sizes_of_grid
from anyshape.sizes.notation import SizeRange, parse_condition

RANGES = {"batch": SizeRange(1, 4), "seq": SizeRange(2, 8, 2)}


def test_every_declared_size_that_relations_admit() -> None:
    found, count = sizes_of_grid(RANGES, [], 1.0)
    assert count == len(found) == 16
    assert found[0] == {"batch": 1, "seq": 2}
    found, count = sizes_of_grid(RANGES, [parse_condition("seq >= 2*batch")], 1.0)
    assert count == len(found) == 10


def test_a_share_is_the_same_each_time_and_spread_over_all() -> None:
    ranges = {"batch": SizeRange(1, 100), "seq": SizeRange(1, 100)}
    found, count = sizes_of_grid(ranges, [], 0.1)
    assert count == 10_000
    assert 850 < len(found) < 1150
    assert found == sizes_of_grid(ranges, [], 0.1)[0]
    assert len({one["batch"] for one in found}) > 95
    larger, _ = sizes_of_grid(ranges, [], 0.3)
    assert all(one in larger for one in found)


@pytest.mark.parametrize(
    ("ranges", "share", "sentence"),
    [
        ({"seq": SizeRange()}, 1.0, "`seq` has no largest size, so that not all can be run: give --size seq=1..512"),
        ({"a": SizeRange(1, 10_000), "b": SizeRange(1, 10_000)}, 0.001,
         "100,000,000 sizes are declared, more than the 5,000,000 of a grid: give --size"),
        ({"a": SizeRange(1, 2)}, 1e-9, "of 2 declared sizes none is left to run: give a larger --share"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_one_sentence(ranges, share: float, sentence: str) -> None:
    with pytest.raises(DeclarationError) as told:
        sizes_of_grid(ranges, [], share)
    assert str(told.value) == sentence


def test_hands_are_all_sizes_once_and_of_about_the_same_work() -> None:
    sizes = [{"n": n} for n in range(1, 4001)]
    hands = dealt(sizes, 2)
    assert len(hands) == 8
    assert sorted(one["n"] for hand in hands for one in hand) == list(range(1, 4001))
    work = [sum(one["n"] for one in hand) for hand in hands]
    assert max(work) < 1.01 * min(work)
    assert len(dealt(sizes[:3], 16)) == 1
    assert len(dealt(sizes[:96], 32)) == 5, "a process for each size would take a hundred times the size's own time"
    assert max(map(len, dealt([{"n": n} for n in range(10_000)], 1))) <= 500


def test_a_result_is_right_only_if_every_size_is() -> None:
    def record(outcome="checked", cause="", **details):
        return TaskRecord("sizes 1", "grid", outcome, cause=cause, details=details)

    good = record(right=6, refused=2, failures=[])
    assert GridResult("m.onnx", 8, 8, [good]).is_right
    assert str(GridResult("m.onnx", 8, 8, [good])) == (
        "checked: m.onnx at every declared size, 6 right\n  invalid  2 sizes, at which PyTorch fails"
    )
    cut = GridResult("m.onnx", 10, 100, [good, record("timeout", "stopped after 600 s")])
    assert not cut.is_right
    assert str(cut) == (
        "refused: m.onnx at 10 of 100 sizes, 6 right\n  invalid  2 sizes, at which PyTorch fails\n"
        "  not run  2 sizes: stopped after 600 s"
    )
    failures = [{"sizes": {"n": n}, "cause": f"wrong-values: `y` at n = {n}"} for n in (30, 4)]
    wrong = GridResult("m.onnx", 8, 8, [record("wrong", right=6, refused=0, failures=failures)])
    assert str(wrong) == (
        "refused: m.onnx at every declared size, 6 right\n  wrong    2 sizes\n"
        "    wrong-values: `y` at n = 4\n    wrong-values: `y` at n = 30"
    )
    assert wrong.to_dict()["failures"][0] == failures[1]
    assert not GridResult("m.onnx", 2, 2, [record(right=0, refused=2, failures=[])]).is_right
