"""Calls taken apart into a file's inputs, and results put together, without a session."""

from __future__ import annotations

import numpy as np
import pytest

from anyshape.errors import DeclarationError
from anyshape.onnxfile.binding import Binder, as_array, parameters_of, refuse_other_names, result_maker, result_of
from anyshape.onnxfile.contract import Branch, Contract, Fixed, Parameter, Slot
from anyshape.onnxfile.interface import Interface, Port

CALL = (
    Parameter("batch", "both", Branch("dict", ("ids", "mask"), (Slot("ids"), Slot("mask")))),
    Parameter("scale", "keyword", Fixed(2.0)),
    Parameter("rest", "many", Branch("tuple", (), (Slot("first"),))),
)
INTERFACE = Interface(tuple(Port(name, "int64", ()) for name in ("ids", "mask", "first")), (Port("y", "int64", ()),))


def test_a_nested_call_is_taken_apart():
    bind = Binder(CALL)
    assert bind(({"ids": 1, "mask": 2}, 3), {"scale": 2.0}) == {"ids": 1, "mask": 2, "first": 3}
    with pytest.raises(DeclarationError, match=r"`scale` is 3\.0, but 2\.0 is part of the file"):
        bind(({"ids": 1, "mask": 2}, 3), {"scale": 3.0})
    with pytest.raises(DeclarationError, match="`batch` lacks `mask`: it takes `ids`, `mask`"):
        bind(({"ids": 1}, 3), {})


def test_a_result_is_put_together():
    node = Branch("dict", ("a", "b"), (Slot("y"), Branch("namedtuple", ("near", "far"), (Slot("z"), Fixed(None)), "P")))
    made = result_maker(node, {"y": 0, "z": 1})([10, 20])
    assert (made["a"], made["b"].near, made["b"].far, type(made["b"]).__name__) == (10, 20, None, "P")
    fields = result_maker(Branch("fields", ("loss",), (Slot("y"),)), {"y": 0})([1])
    assert fields.loss == fields["loss"] == 1
    with pytest.raises(AttributeError, match="other"):
        fields.other


def test_the_module_s_own_structure_counts_where_it_speaks_of_this_file():
    contract = Contract({}, call=CALL, returns=Slot("y"))
    assert parameters_of(INTERFACE, contract) is CALL
    assert result_of(INTERFACE, contract) == Slot("y")
    other = Interface((Port("other", "int64", ()),), (Port("z", "int64", ()),))
    assert parameters_of(other, contract) == [Parameter("other", "both", Slot("other"))]
    assert result_of(other, contract) == Branch("dict", ("z",), (Slot("z"),))


def test_by_name_all_inputs_are_given_and_nothing_else():
    refuse_other_names({"ids": 1, "mask": 2}, ["ids", "mask"])
    with pytest.raises(DeclarationError, match="`mask` is missing: the file takes `ids`, `mask`"):
        refuse_other_names({"ids": 1}, ["ids", "mask"])
    with pytest.raises(DeclarationError, match=r"`masc` is unknown: .*; did you mean `mask`\?"):
        refuse_other_names({"ids": 1, "mask": 2, "masc": 3}, ["ids", "mask"])


def test_a_number_becomes_an_array_where_an_input_has_no_axes():
    array = as_array("n", 3, np.dtype(np.int32), 0)
    assert (array.dtype, array.shape, int(array)) == (np.int32, (), 3)
    for value, dtype, rank, sentence in (
        (3, np.int64, 1, "`n` takes an array, not the number 3"),
        (0.5, np.int64, 0, "`n` is the float 0.5, but takes int64"),
        (300, np.int8, 0, "`n` = 300 does not fit into int8"),
    ):
        with pytest.raises(DeclarationError) as error:
            as_array("n", value, np.dtype(dtype), rank)
        assert str(error.value) == sentence
