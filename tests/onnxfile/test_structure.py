"""The tree of a call or a result: shown as Python, stored as plain values, and read back with distrust."""

from __future__ import annotations

import json

import pytest

from anyshape.onnxfile.structure import (
    Branch,
    Fixed,
    Parameter,
    Slot,
    from_rows,
    parameter_from_rows,
    parameter_to_rows,
    shown,
    shown_call,
    slots,
    to_rows,
)

TREE = Branch(
    "dict",
    ("a", 3),
    (Slot("x"), Branch("tuple", (), (Slot("y"), Fixed(None), Branch("namedtuple", ("near",), (Fixed(2.5),), "Point")))),
)


def test_a_tree_is_shown_as_python_would_write_it():
    assert shown(TREE) == "{'a': x, 3: (y, None, Point(near=2.5))}"
    call = [Parameter("x", "both", Slot("x")), Parameter("rest", "many", Branch("tuple", (), (Slot("y"),)))]
    assert shown_call(call) == "(x, *(y,))"
    assert list(slots(TREE)) == ["x", "y"]


def test_what_is_stored_is_read_back():
    assert from_rows(json.loads(json.dumps(to_rows(TREE)))) == TREE
    parameter = Parameter("batch", "keyword", TREE)
    assert parameter_from_rows(json.loads(json.dumps(parameter_to_rows(parameter)))) == parameter


@pytest.mark.parametrize(
    "rows",
    [
        {"kind": "set", "parts": []},
        {"kind": "dict", "parts": ["x"], "keys": []},
        {"kind": "namedtuple", "parts": ["x"], "keys": ["class"], "name": "P"},
        {"kind": "namedtuple", "parts": ["x"], "keys": ["a"], "name": "_P"},
        {"kind": "fixed", "value": [1]},
        {"kind": "dict", "parts": ["x"], "keys": [None]},
        {"parts": []},
    ],
)
def test_what_is_no_tree_is_refused(rows):
    with pytest.raises((ValueError, TypeError, KeyError)):
        from_rows(rows)


def test_a_tree_without_end_is_refused():
    rows = "x"
    for _ in range(100):
        rows = {"kind": "list", "parts": [rows]}
    with pytest.raises(ValueError, match="no such container"):
        from_rows(rows)
