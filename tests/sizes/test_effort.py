"""What a run takes is counted at few sizes; at all others it is predicted, and never by a clock."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyshape.sizes import budgets
from anyshape.sizes.effort import Effort, Forecast, effort_of


def forecast(work, base):
    asked = []

    def count(sizes):
        asked.append(dict(sizes))
        found = work(**sizes)
        return None if found is None else Effort(found, 3, {"mm": found / 2})

    return Forecast(count, base), asked


def test_an_operator_is_its_call_its_results_and_its_products():
    def work(name, *shapes, out):
        return effort_of([(name, shapes, [out], 4)]).work - budgets.WORK_OF_A_CALL

    assert work("relu", (4, 5), out=(4, 5)) == 20
    assert work("mm", (4, 64), (64, 8), out=(4, 8)) == 32 + 4 * 64 * 8 / 32
    assert work("addmm", (8,), (4, 64), (64, 8), out=(4, 8)) == 32 + 4 * 64 * 8 / 32
    assert work("Gemm", (4, 64), (8, 64), (8,), out=(4, 8)) == 32 + 4 * 64 * 8 / 32
    assert work("MatMul", (2, 4, 64), out=(2, 4, 8)) == 64 + 2 * 4 * 64 * 8 / 32
    assert work("convolution", (1, 3, 9, 9), (8, 3, 3, 3), out=(1, 8, 7, 7)) == 8 * 49 * (1 + 27 / 32)
    assert work("attention", (2, 4, 10, 16), (2, 4, 20, 16), out=(2, 4, 10, 16)) == 1280 + 2 * 1600 + 2 * 10 * 2560 / 32
    assert work("LSTM", (7, 2, 16), (1, 32, 16), (1, 32, 8), out=(7, 1, 2, 8)) == 112 + 7 * 2 * (512 + 256) / 32
    assert work("add", (), (), out=()) == 1


def test_a_run_is_the_sum_of_its_calls_and_as_large_as_the_largest():
    found = effort_of([("relu", [], [(10,)], 4), ("view", [], [], 0), ("add", [], [(5,)], 8)])
    assert found == Effort(15, 3, {"relu": 40, "view": 0, "add": 40})
    assert found.work == 15 + 3 * budgets.WORK_OF_A_CALL
    assert found.bytes_held == 40 * budgets.RESULTS_HELD
    assert found.times(2) == Effort(30, 6, found.largest)
    assert Effort().bytes_held == 0


@given(st.integers(1, 9), st.integers(1, 40), st.integers(1, 600), st.integers(1, 2000))
def test_batches_of_attention_are_predicted_exactly(batch, seq, wanted, length):
    found, _ = forecast(lambda b, s: b * (7 * s + 3 * s * s), {"b": batch, "s": seq})
    wanted, length = max(wanted, batch), max(length, seq)
    assert found.at({"b": wanted, "s": length}).computed == pytest.approx(wanted * (7 * length + 3 * length**2))


def test_what_is_largest_at_a_small_size_need_not_be_so_at_a_large_one():
    def count(sizes):
        return Effort(1, 1, {"mm": 500.0 * sizes["n"], "softmax": 2.0 * sizes["n"] ** 2})

    assert Forecast(count, {"n": 4}).at({"n": 1000}).bytes_held == pytest.approx(2e6 * budgets.RESULTS_HELD)


def test_the_cost_of_calls_is_not_multiplied():
    def count(sizes):
        return Effort(sizes["a"] * sizes["b"], 100.0)

    assert Forecast(count, {"a": 2, "b": 3}).at({"a": 2000, "b": 3000}).computed == pytest.approx(6e6)
    assert Forecast(count, {"a": 2, "b": 3}).at({"a": 2000, "b": 3000}).calls == pytest.approx(100)


def test_two_inputs_side_by_side_add_up():
    found, _ = forecast(lambda a, b: 1000 * a + 500 * b, {"a": 4, "b": 5})
    assert found.at({"a": 400, "b": 700}).computed == pytest.approx(750_000)


@given(st.integers(1, 3), st.integers(2, 20), st.integers(1, 64))
def test_what_grows_faster_than_a_square_is_not_taken_for_one(power, base, times):
    found, _ = forecast(lambda n: n**power, {"n": base})
    assert found.at({"n": base * times}).computed == pytest.approx((base * times) ** power, rel=0.1)


def test_much_work_is_counted_at_smaller_sizes_only():
    found, asked = forecast(lambda n: n * budgets.LITTLE_WORK, {"n": 8})
    assert found.at({"n": 80}).computed == pytest.approx(80 * budgets.LITTLE_WORK)
    assert [sizes["n"] for sizes in asked] == [8, 4, 2]


def test_little_work_is_counted_once_and_at_larger_sizes():
    found, asked = forecast(lambda a, b: a * b, {"a": 3, "b": 5})
    assert asked == []
    for _ in range(2):
        found.at({"a": 1, "b": 1})
    assert asked == [{"a": 3, "b": 5}, *({"a": a, "b": 5} for a in (6, 12)), *({"a": 3, "b": b} for b in (10, 20)),
                     {"a": 6, "b": 10}]  # fmt: skip


def test_dims_that_move_only_together_are_moved_together():
    found, _ = forecast(lambda a, b: a * a if a == b else None, {"a": 3, "b": 3})
    assert found.at({"a": 30, "b": 30}).computed == pytest.approx(900)


def test_a_dim_that_never_moved_is_taken_to_be_squared():
    found, _ = forecast(lambda n: n if n == 4 else None, {"n": 4})
    assert found.at({"n": 12}).computed == 36


def test_where_nothing_runs_nothing_is_known():
    found, asked = forecast(lambda n: None, {"n": 4})
    assert found.at({"n": 4}) is None
    assert found.at({"n": 8}) is None
    assert len(asked) == 1


def test_a_static_model_is_counted_as_it_is():
    found, _ = forecast(lambda: 5, {})
    assert found.at({}) == Effort(5, 3, {"mm": 2.5})
