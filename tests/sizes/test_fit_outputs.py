from __future__ import annotations

import random

import pytest

from anyshape.sizes.fit import Observation, fit_outputs
from anyshape.sizes.notation import SizeRange, parse_expression

DIMS = ("batch", "h", "w")


def sizes_by_lot(count=14, highest=40, dims=DIMS):
    by_lot = random.Random(1)
    return [{dim: by_lot.randint(5, highest) for dim in dims} for _ in range(count)]


def observed(*axes, count=14, highest=40):
    """What a model shows whose one output has axes of these Python expressions."""
    return [Observation(s, (tuple(eval(a, {}, dict(s)) for a in axes),)) for s in sizes_by_lot(count, highest)]


def fitted(*axes, proposed=(), declared=(), **options):
    hints = [[None if text is None else parse_expression(text) for text in proposed]] if proposed else None
    (row,) = fit_outputs(observed(*axes, **options), hints, [parse_expression(text) for text in declared])
    return None if row is None else [size if isinstance(size, int) or size is None else str(size) for size in row]


@pytest.mark.parametrize(
    ("axis", "expected"),
    [
        ("batch", "batch"),
        ("7", 7),
        ("2 * h", "2 * h"),
        ("3 * h + 1", "3 * h + 1"),
        ("h - 4", "h - 4"),
        ("h + w", "h + w"),
        ("h + w - 2", "h + w - 2"),
        ("h * w", "h * w"),
        ("4 * h * w", "4 * h * w"),
        ("h * w + 1", "h * w + 1"),
        ("h * h", "h * h"),
        ("min(h, 20)", "min(h, 20)"),
        ("max(h, 20)", "max(h, 20)"),
        ("min(h, w)", "min(h, w)"),
        ("max(h, w)", "max(h, w)"),
        ("h // 2", "h // 2"),
        ("h // 2 + 1", "h // 2 + 1"),
        ("(h + 1) // 2", "(h + 1) // 2"),
        ("(h - 3) // 2 + 1", "(h + 1) // 2 - 1"),
        ("(h + 2 * 3 - 7) // 4 + 1", "(h + 3) // 4"),
        ("(h - 5) // 3", "(h + 1) // 3 - 2"),
    ],
)
def test_a_size_is_recovered_from_the_runs(axis, expected):
    assert fitted("batch", axis) == ["batch", expected]


@pytest.mark.parametrize("stride", [1, 2, 3, 5])
@pytest.mark.parametrize("kernel", [1, 3, 4])
@pytest.mark.parametrize("padding", [0, 1])
def test_every_strided_convolution_is_recovered(stride, kernel, padding):
    (found,) = fitted(f"(h + {2 * padding} - {kernel}) // {stride} + 1", count=30)
    expression = parse_expression(found)
    for h in range(5, 200):
        assert expression.value({"h": h}) == (h + 2 * padding - kernel) // stride + 1


def test_a_size_that_depends_on_the_data_has_no_expression():
    seen = [Observation(s, ((s["batch"], 3 + i * i % 11),)) for i, s in enumerate(sizes_by_lot())]
    (row,) = fit_outputs(seen, None, [])
    assert (str(row[0]), row[1]) == ("batch", None)


def test_an_output_whose_number_of_axes_varies_has_no_row():
    seen = [Observation({"n": n}, ((n,), (n, 2) if n < 5 else (n,))) for n in range(1, 9)]
    first, second = fit_outputs(seen, None, [])
    assert [str(size) for size in first] == ["n"]
    assert second is None


def test_an_output_without_axes_has_an_empty_row():
    assert fit_outputs([Observation({"n": n}, ((),)) for n in (2, 3)], None, []) == [()]


def test_a_static_model_has_numbers_only():
    assert fit_outputs([Observation({}, ((2, 3),))], None, []) == [(2, 3)]


# ---- what the trace and the declaration say


def test_the_expression_of_the_trace_is_kept_where_a_shorter_one_fits_the_runs_only():
    assert fitted("h", proposed=["min(h, 512)"], highest=60) == ["min(h, 512)"]
    assert fitted("h", highest=60) == ["h"]


def test_a_shorter_expression_with_the_same_meaning_is_preferred():
    assert fitted("(h + 1) // 2", proposed=["(h - 1) // 2 + 1"]) == ["(h + 1) // 2"]
    assert fitted("2 * h", proposed=["h + h"]) == ["h + h"]
    assert fitted("h + w", proposed=["w - 1 + h + 1"]) == ["h + w"]


def test_an_expression_of_the_trace_that_a_run_contradicts_is_dropped():
    assert fitted("h + w", proposed=["h + 7"]) == ["h + w"]
    assert fitted("(h * w) // 3 + h", proposed=["h"]) == [None]


def test_an_expression_of_the_trace_finds_what_no_rule_does():
    assert fitted("(h // 2) * (w // 2)", proposed=["(h // 2) * (w // 2)"]) == ["h // 2 * (w // 2)"]


def test_an_expression_of_unknown_dims_is_dropped():
    assert fitted("h", proposed=["s27"]) == ["h"]
    assert fitted("7 * h % 11", proposed=["u0"]) == [None]


def test_a_size_that_depends_on_data_is_free_even_if_all_runs_agree():
    assert fitted("h", proposed=["u0"]) == [None]
    assert fitted("7", proposed=["2 * u1 + h"]) == [None]


def test_a_declared_expression_is_tried_too():
    assert fitted("h * w // 2 + 3", declared=["h*w//2+3"]) == ["h * w // 2 + 3"]


def test_an_expression_that_divides_by_zero_somewhere_is_dropped():
    seen = sizes_by_lot()[3]["w"]
    assert fitted("h", proposed=[f"h + 0 // (w - {seen})"]) == ["h"]


def test_too_few_runs_to_tell_two_strides_apart_give_no_expression():
    assert fitted("(h + 15) // 16", count=8) == [None]
    assert fitted("(h + 15) // 16", count=60, highest=200) == ["(h + 15) // 16"]


def test_fewer_proposals_than_outputs_do_no_harm():
    seen = [Observation({"n": n}, ((n,), (n, 2 * n))) for n in range(2, 9)]
    rows = fit_outputs(seen, [[parse_expression("n")]], [])
    assert [[str(size) for size in row] for row in rows] == [["n"], ["n", "2 * n"]]


@pytest.mark.parametrize(
    ("formula", "step", "expected"),
    [
        ("4*(h//4)", 4, "h"),
        ("4*((h-1)//4)+4", 4, "h"),
        ("4*((h-1)//4)+4", 8, "h"),
        ("4*(h//4)", 6, "4 * (h // 4)"),
        ("2*(h//4)", 4, "2 * (h // 4)"),
    ],
)
def test_a_formula_is_as_simple_as_the_steps_of_a_dim_allow(formula, step, expected):
    seen = [Observation({"h": h}, ((eval(formula, {}, {"h": h}),),)) for h in range(step, 9 * step, step)]
    hints = [[parse_expression(formula)]]
    ((size,),) = fit_outputs(seen, hints, [], ranges={"h": SizeRange(step, None, step)})
    assert str(size) == expected
    ((size,),) = fit_outputs(seen, hints, [])
    assert str(size) == str(parse_expression(formula))


def test_a_formula_is_as_simple_as_the_listed_sizes_allow():
    seen = [Observation({"h": h}, ((h // 4 * 4,),)) for h in (8, 16, 32)]
    ((size,),) = fit_outputs(seen, [[parse_expression("4*(h//4)")]], [], ranges={"h": SizeRange(8, 32, 1, (8, 16, 32))})
    assert str(size) == "h"
