"""What a file takes, asked of arrays without a session: sizes found, and one sentence for what does not fit."""

from __future__ import annotations

import numpy as np
import pytest

from anyshape.errors import DeclarationError
from anyshape.onnxfile.acceptance import NoiseInputs, acceptance_of
from anyshape.onnxfile.contract import Contract
from anyshape.onnxfile.interface import Port
from anyshape.sizes.notation import parse_condition, parse_expression, parse_sizes

PORTS = (Port("x", "float32", ("batch", 3)), Port("mask", "int64", ("batch", "2*seq")), Port("n", "int64", ()))


def contract(**further):
    dims = {"batch": parse_sizes("1..8 step 1", dim="batch"), "seq": parse_sizes("2..", dim="seq")}
    return Contract(dims, numbers={"n": parse_expression("seq")}, **further)


def feeds(batch=2, seq=4, *, columns=3, mask=None, n=None):
    return {
        "x": np.zeros((batch, columns), np.float32),
        "mask": np.zeros((batch, 2 * seq if mask is None else mask), np.int64),
        "n": np.array(seq if n is None else n),
    }


def test_every_dim_is_found_by_an_axis_a_value_or_an_expression():
    assert acceptance_of(PORTS, contract()).check(feeds()) == {"batch": 2, "seq": 4}
    without_number = {**feeds(seq=5)}
    two = acceptance_of(PORTS[:2], contract())
    assert two.check(without_number) == {"batch": 2, "seq": 5}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (feeds(columns=4), "axis 1 of `x` is 4, but takes 3"),
        (feeds(batch=9), "`batch` = 9 is above 8"),
        (feeds(seq=1), "`seq` = 1 is below 2"),
        (feeds(mask=7), "axis 1 of `mask` is 7, but takes `2 * seq` = 8 with seq = 4"),
        ({**feeds(), "x": np.zeros((2, 3))}, "`x` is float64, but takes float32"),
        ({**feeds(), "x": np.zeros(2, np.float32)}, "`x` has the shape [2], but takes [batch, 3]"),
        ({**feeds(), "mask": np.zeros((3, 8), np.int64)}, "`batch` is 2 in `x` but 3 in `mask`"),
    ],
)
def test_what_does_not_fit_is_told_with_both_sides(given, sentence):
    with pytest.raises(DeclarationError) as error:
        acceptance_of(PORTS, contract()).check(given)
    assert str(error.value) == sentence


def test_relations_hold_whoever_says_so():
    for kind in ("where", "limits", "conditions"):
        accepted = acceptance_of(PORTS, contract(**{kind: (parse_condition("batch <= seq"),)}))
        assert accepted.check(feeds(4, 4)) == {"batch": 4, "seq": 4}
        with pytest.raises(DeclarationError, match="the file takes `batch <= seq`, but `batch` = 5 and `seq` = 4"):
            accepted.check(feeds(5, 4))


def test_without_a_contract_a_label_is_a_name_and_no_size_is_refused():
    accepted = acceptance_of(PORTS, None)
    assert accepted.check(feeds(batch=99, mask=7)) == {"batch": 99, "2*seq": 7}


def test_a_relation_with_alternatives_holds_by_any_of_them():
    accepted = acceptance_of(PORTS, contract(limits=(parse_condition("batch == seq or batch == 1"),)))
    assert accepted.check(feeds(1, 4)) == {"batch": 1, "seq": 4}
    with pytest.raises(DeclarationError) as error:
        accepted.check(feeds(3, 4))
    assert str(error.value) == "the file takes `batch == seq or batch == 1`, but `batch` = 3 and `seq` = 4"


def test_noise_is_drawn_in_the_shape_that_the_other_inputs_tell():
    noise = Port("eps", "float32", ("batch", "seq + 1", 2)), Port("u", "float16", ("batch", 4000))
    draws = {"eps": "normal", "u": "uniform", "other": "normal", "odd": "normal"}
    odd = Port("other", "float32", ("unknown",)), Port("odd", "float32", (None,))
    inputs = NoiseInputs((*PORTS, *noise, *odd), contract(draws=draws), seed=0)
    assert inputs.names == ("eps", "u")
    given = {**feeds(), "other": np.zeros(2, np.float32), "odd": np.zeros(2, np.float32)}
    made = inputs.drawn(given)
    assert {name: (one.shape, one.dtype) for name, one in made.items()} == {
        "eps": ((2, 5, 2), np.float32),
        "u": ((2, 4000), np.float16),
    }
    assert made["eps"].min() < 0
    assert made["u"].min() >= 0
    assert made["u"].max() < 1
    assert NoiseInputs(PORTS, None).names == ()
