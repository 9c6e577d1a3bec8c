"""What `inspect` shows of a file, whole; and that a file which is none gives one sentence."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper
import pytest

import anyshape
from anyshape.errors import DeclarationError
from anyshape.onnxfile.contract import Branch, Evidence, Fixed, Parameter, Slot
from tests.onnxfile import drawing


def test_picture_shows_dims_contract_formulas_and_limits(tmp_path):
    promise = drawing.contract({"batch": "1..", "seq": "1..512"}, "seq <= 512", y=("batch", "2 * seq"))
    found = anyshape.inspect(drawing.write(tmp_path / "doubled.onnx", drawing.DOUBLED, promise))
    size = (tmp_path / "doubled.onnx").stat().st_size
    assert (
        str(found)
        == f"""\
doubled.onnx: 1 node, opset 18, {size} bytes
  input    x  float32[batch, seq]
  output   y  float32[batch, twice = 2 * seq]
  dims     batch 1.., seq 1..512
  limit    seq <= 512 (PyTorch itself)
  contract checked by anyshape 0.1.0"""
    )


def test_picture_of_a_file_by_others_shows_what_is_baked_in(tmp_path):
    found = anyshape.inspect(drawing.write(tmp_path / "pinned.onnx", drawing.PINNED))
    assert (
        str(found)
        == """\
pinned.onnx: 1 node, opset 18, 137 bytes
  input    x  float32[batch, seq, 4]
  output   y  float32[batch, seq, 4]
  dims     batch, seq
  contract none: which sizes the dims may take is not written in the file
  baked in Reshape node `node_view` has the constant shape [2, 8, 4]"""
    )


def test_everything_is_plain_values_for_json(tmp_path):
    promise = drawing.contract({"batch": "1..", "seq": "1..8"}, "seq <= 8", y=("batch", "2 * seq"))
    path = drawing.write(tmp_path / "doubled.onnx", drawing.DOUBLED, promise)
    assert json.loads(json.dumps(anyshape.inspect(path).to_dict())) == {
        "path": str(path),
        "inputs": [{"name": "x", "dtype": "float32", "axes": ["batch", "seq"]}],
        "outputs": [{"name": "y", "dtype": "float32", "axes": ["batch", "twice"], "formulas": ["batch", "2 * seq"]}],
        "dims": {"batch": "1..", "seq": "1..8"},
        "contract": {
            "verdict": "checked",
            "version": "0.1.0",
            "dims": {"batch": "1..", "seq": "1..8"},
            "where": [],
            "limits": ["seq <= 8"],
            "conditions": [],
            "constants": {},
            "numbers": {},
            "call": None,
            "returns": None,
            "checked": None,
            "assumptions": None,
        },
        "opset": 18,
        "domains": {},
        "producer": "",
        "nodes": 1,
        "bytes": path.stat().st_size,
        "data": {},
        "baked": [],
        "lies": [],
        "freeable": None,
    }


def test_a_nested_call_its_result_and_what_was_checked_are_shown(tmp_path):
    promise = drawing.contract({"batch": "1..", "seq": "1..8"}, "seq <= 8")
    batch = Branch("dict", ("ids", 3), (Slot("x"), Fixed(None)))
    returns = Branch("namedtuple", ("a", "b"), (Branch("tuple", (), (Slot("y"),)), Branch("list", (), ())), "Pair")
    evidence = Evidence(1, {"seq": (1, 8)}, "ONNX Runtime 1.0", "PyTorch", 0.25, 8.0, "rounding noise")
    full = dataclasses.replace(
        promise,
        call=(Parameter("batch", "both", batch), Parameter("scale", "keyword", Fixed(2.0))),
        returns=returns,
        evidence=evidence,
    )
    path = drawing.write(tmp_path / "doubled.onnx", drawing.DOUBLED, full)
    found = anyshape.inspect(path)
    assert str(found).splitlines()[-4:] == [
        "  call     (batch={'ids': x, 3: None}, scale=2.0)",
        "  returns  Pair(a=(y,), b=[])",
        "  contract checked by anyshape 0.1.0",
        "  checked  at 1 size in ONNX Runtime 1.0 against PyTorch, error at most 0.2 x rounding noise (8 is allowed)",
    ]
    assert found.to_dict()["contract"]["checked"]["ranges"] == {"seq": [1, 8]}
    assert found.to_dict()["contract"]["call"][1] == {
        "name": "scale",
        "way": "keyword",
        "value": {"kind": "fixed", "value": 2.0},
    }


def test_external_data_is_named_with_its_size_and_not_read(tmp_path):
    weight = onnx.numpy_helper.from_array(np.zeros((64, 64), np.float32), "w")
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MatMul", ["x", "w"], ["y"])],
        "main",
        [value("x", onnx.TensorProto.FLOAT, ["batch", 64])],
        [value("y", onnx.TensorProto.FLOAT, ["batch", 64])],
        [weight],
    )
    model = onnx.helper.make_model(graph, producer_name="somebody", producer_version="3")
    onnx.save(model, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    found = anyshape.inspect(tmp_path / "m.onnx")
    assert found.data == {"m.data": 16384}
    assert "  data     m.data (16.4 kB)" in str(found).splitlines()
    assert str(found).splitlines()[0].endswith(", by somebody 3")


# ---- files that nobody vouches for


def refusal(path: Path) -> str:
    with pytest.raises(DeclarationError) as caught:
        anyshape.inspect(path)
    return str(caught.value)


def test_a_file_that_is_no_model_gives_one_sentence(tmp_path):
    path = tmp_path / "m.onnx"
    assert refusal(path) == f"there is no file `{path}`"
    path.write_bytes(b"not a model at all")
    assert refusal(path).startswith(f"`{path}` is not an ONNX file: Error parsing message")
    path.write_bytes(b"")
    assert refusal(path) == f"`{path}` is not an ONNX file: it has no graph"


def test_an_element_type_that_is_none_is_shown_as_its_number(tmp_path):
    path = drawing.write(tmp_path / "m.onnx", drawing.DOUBLED)
    model = onnx.load(path)
    model.graph.input[0].type.tensor_type.elem_type = 99
    onnx.save(model, path)
    assert "  input    x  type 99[batch, seq]" in str(anyshape.inspect(path)).splitlines()


def test_a_contract_that_is_none_is_as_good_as_no_contract(tmp_path):
    path = drawing.write(tmp_path / "m.onnx", drawing.DOUBLED)
    model = onnx.load(path)
    for text in ("{", "[]", '{"dims": {"batch": "9..1"}}', '{"dims": 3}', "0" * 2_000_000):
        del model.metadata_props[:]
        model.metadata_props.add(key="anyshape.contract", value=text)
        onnx.save(model, path)
        assert anyshape.inspect(path).contract is None


def test_names_cannot_write_to_the_terminal(tmp_path):
    path = drawing.write(tmp_path / "m.onnx", drawing.DOUBLED)
    model = onnx.load(path)
    model.producer_name = "\x1b[2Jgone\n" + "x" * 1000
    model.graph.input[0].name = model.graph.node[0].input[0] = "a\x07b\nc"
    onnx.save(model, path)
    text = str(anyshape.inspect(path))
    assert all(line.isprintable() for line in text.splitlines())
    assert r"input    a\x07b\nc" in text
    assert len(text) < 1000


def test_inspecting_needs_neither_torch_nor_a_runtime(tmp_path):
    path = drawing.write(tmp_path / "m.onnx", drawing.DOUBLED)
    script = "import sys, anyshape; anyshape.inspect(sys.argv[1]); print({'torch', 'onnxruntime'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_an_inspection_cannot_be_changed(tmp_path):
    found = anyshape.inspect(drawing.write(tmp_path / "m.onnx", drawing.DOUBLED))
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.nodes = 3
