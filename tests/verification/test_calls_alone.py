"""Calls for a file whose model is not at hand: usual sizes inside of what it is for, and values that it takes."""

from __future__ import annotations

import json

import numpy as np

from anyshape.verification.calls_alone import calls_alone
from anyshape.verification.given_file import CheckOptions, read_given_file
from tests.onnxfile.strangers import text_model


def _calls(folder, text, contract=None, where=()):
    model = text_model(text)
    if contract is not None:
        entry = {"version": "1", "verdict": "checked", "limits": [], "outputs": {}, "constants": {}, **contract}
        model.metadata_props.add(key="anyshape.contract", value=json.dumps(entry))
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return calls_alone(read_given_file(path), where, CheckOptions())


def test_one_sample_and_some_of_everything_else(tmp_path):
    calls = _calls(tmp_path, "main (float[batch, seq, 4] x) => (float[batch, seq, 4] y) { y = Neg(x) }")
    assert calls.offered.usual == {"batch": 1, "seq": 16}
    assert calls.call_at({"batch": 2, "seq": 3}).feeds["x"].shape == (2, 3, 4)


def test_a_file_that_does_not_run_there_starts_where_it_does(tmp_path):
    text = "main (float[batch, n] x) => (float[batch, n] y) <float[4] k = {1, 2, 3, 4}> { y = Mul(x, k) }"
    calls = _calls(tmp_path, text)
    assert calls.offered.usual["n"] == 4
    assert calls.call_at({"batch": 2, "n": 5}).startswith("fails in ONNX Runtime: Mul node")


def test_values_are_those_that_the_file_takes(tmp_path):
    text = "main (int64[n] i, float[1, 4] t) => (float[n, 4] y) { y = Gather(t, i) }"
    call = _calls(tmp_path, text).call_at({"n": 5})
    assert np.all(call.feeds["i"] == 0) or call.feeds["i"].max() <= 1
    assert call.expected is None


def test_sizes_that_no_memory_holds_are_refused(tmp_path):
    calls = _calls(tmp_path, "main (float[n, m] x) => (float[n, m] y) { y = Neg(x) }")
    assert calls.call_at({"n": 10**5, "m": 10**5}) == "more than 33,554,432 elements to make up"


def test_relations_are_kept(tmp_path):
    text = "main (float[a] x, float[b] y) => (float[c] z) { z = Concat<axis=0>(x, y) }"
    calls = _calls(tmp_path, text, where=["a*b <= 64", "b >= 2"])
    found = calls.offered.admit({"a": 64, "b": 64})
    assert found is None or found["a"] * found["b"] <= 64
