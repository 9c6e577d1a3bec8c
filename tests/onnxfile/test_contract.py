from __future__ import annotations

import functools
import json

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyshape.onnxfile.contract import (
    KEY,
    Branch,
    Contract,
    Evidence,
    Fixed,
    Parameter,
    Slot,
    from_rows,
    parameter_from_rows,
    parameter_to_rows,
    read_contract,
    shown,
    shown_call,
    slots,
    to_rows,
)
from anyshape.sizes.notation import SizeRange, parse_condition, parse_expression, parse_sizes


def stored(text):
    model = onnx.ModelProto()
    model.metadata_props.add(key="other", value="{}")
    model.metadata_props.add(key=KEY, value=text)
    return read_contract(model)


FULL = Contract(
    {"batch": SizeRange(1), "seq": parse_sizes("8..512 step 8", dim="seq"), "n": parse_sizes([1, 4], dim="n")},
    (parse_condition("seq <= 512"), parse_condition("b2 == b or b == 1"), parse_condition("h % 32 == 0")),
    (parse_condition("seq >= 3"),),
    {"logits": ("batch", "seq", "5"), "größe": ("?",), "scalar": ()},
    {"keep": 4, "flag": True, "scale": 0.5},
    "narrowed",
    "0.1.0",
    {"count": parse_expression("seq // 2")},
    (
        Parameter("batch", "both", Branch("dict", ("ids", 3), (Slot("batch.ids"), Fixed(None)))),
        Parameter("rest", "many", Branch("tuple", (), (Slot("rest.0"), Fixed(value=True)))),
        Parameter("past", "keyword", Branch("cache", (), (Branch("tuple", (), (Slot("k"), Slot("v"))),))),
    ),
    Branch("namedtuple", ("a", "b"), (Slot("logits"), Branch("fields", ("c",), (Fixed("text"),))), "Pair"),
    Evidence(40, {"seq": (8, 512)}, "ONNX Runtime 1.31.1", "PyTorch", 0.51, 8.0, "rounding noise", "float32"),
)


def test_a_contract_is_the_same_after_it_was_written_and_read():
    found = stored(FULL.to_text())
    assert (found.dims, found.limits, found.outputs) == (FULL.dims, FULL.limits, FULL.outputs)
    assert found.conditions == FULL.conditions
    assert (found.verdict, found.version) == ("narrowed", "0.1.0")
    assert found.constants == {"keep": "4", "flag": "True", "scale": "0.5"}
    assert (found.numbers, found.call, found.returns) == (FULL.numbers, FULL.call, FULL.returns)
    assert found.evidence == FULL.evidence
    assert stored(Contract({}).to_text()) == Contract({})


def test_a_contract_of_the_first_format_is_read():
    rows = json.loads(FULL.to_text())
    for name in ("format", "numbers", "call", "returns", "checked"):
        del rows[name]
    found = stored(json.dumps(rows))
    assert (found.dims, found.limits) == (FULL.dims, FULL.limits)
    assert (found.numbers, found.call, found.returns, found.evidence) == ({}, None, None, None)


def test_what_a_later_anyshape_adds_is_ignored_and_a_later_format_is_not_read():
    assert stored(changed(mood="good")).dims == FULL.dims
    assert stored(changed(format=3)) is None


def test_the_same_contract_gives_the_same_text():
    assert FULL.to_text() == FULL.to_text()
    assert "größe" in FULL.to_text()


def test_a_file_without_a_contract_has_none():
    assert read_contract(onnx.ModelProto()) is None


def changed(**rows):
    return json.dumps({**json.loads(FULL.to_text()), **rows})


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "null", "[]", "3", '"text"', "{}", "NaN", "[" * 100_000, "1" * 5000,
        '{"dims": 1' + " " * 1_000_000 + "}", changed(dims=[]), changed(dims={"n": "9..3"}), changed(dims={"n": None}),
        changed(dims={"n": "__import__('os')"}),
        changed(dims={"\x1b[31m": "1.."}), changed(dims={"a b": "1.."}), changed(dims={"n": "1.." + "9" * 5000}),
        changed(limits="n"), changed(limits=["n"]), changed(limits=[["n <= 3"]]), changed(limits=["a.b <= 3"]),
        changed(limits=["-" * 900 + "a <= 3"]), changed(conditions=["n"]), changed(conditions=3),
        changed(outputs=[]), changed(outputs={"y": 3}), changed(constants=3),
        changed(numbers=["n"]), changed(numbers={"n": "f(x)"}), changed(call=3), changed(call=[{"name": "x"}]),
        changed(call=[{"name": "x", "way": "sideways", "value": None}]),
        changed(call=[{"name": "x", "way": "both", "value": None}] * 2),
        changed(call=[{"name": 3, "way": "both", "value": None}]),
        changed(returns=3), changed(returns={"kind": "set", "parts": []}), changed(returns={"kind": "list"}),
        changed(returns={"kind": "dict", "keys": ["a", "a"], "parts": ["x", "y"]}),
        changed(returns={"kind": "dict", "keys": [["a"]], "parts": ["x"]}),
        changed(returns={"kind": "namedtuple", "keys": ["a"], "parts": ["x"], "name": "import os"}),
        changed(returns={"kind": "namedtuple", "keys": ["class"], "parts": ["x"], "name": "Pair"}),
        changed(returns=functools.reduce(lambda inner, _: {"kind": "list", "parts": [inner]}, range(70), "x")),
        changed(returns={"kind": "fixed", "value": ["x"]}), changed(checked={}), changed(checked={"sizes": "many"}),
        changed(format="2"), changed(format=0),
        changed(verdict="perfect"), changed(verdict=["checked"]), changed(verdict="\x1b[31mchecked"),
    ],
    ids=lambda text: text[:30] + "..." + text[-60:] if len(text) > 90 else text,
)  # fmt: skip
def test_text_that_is_no_contract_is_none_and_no_crash(text):
    assert stored(text) is None


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("1..5"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.just("n"), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=80, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(
            ["dims", "limits", "conditions", "outputs", "verdict", "numbers", "call", "returns", "checked", "format"]
        ),
        values,
    )
)
def test_no_rows_whatever_crash_the_reader(rows):
    found = stored(changed(**rows))
    assert found is None or isinstance(found, Contract)


# ---- The tree of a call or a result: shown as Python, stored as plain values, and read back with distrust


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
