"""A contract that lies about its file is told as such, by `inspect`, `load` and `check`; the rest of it is asked."""

from __future__ import annotations

import re

import numpy as np
import onnx
import pytest

import anyshape
from anyshape.onnxfile.contract import KEY, Branch, Contract, Evidence, Parameter, Slot
from anyshape.onnxfile.contradictions import contradictions
from anyshape.onnxfile.interface import read_interface
from anyshape.sizes.notation import parse_condition, parse_expression, parse_sizes
from tests.onnxfile.strangers import text_model

MODEL = text_model("main (float[n, 3] x) => (float[n, 3] y) { y = Relu(x) }")
DIMS = {"n": parse_sizes("1..8", dim="n")}
EVIDENCE = Evidence(4, {"n": (1, 8)}, "ONNX Runtime 1.0", "PyTorch", 0.0, 8, "noise")
LIES = {
    "speaks of the dim `seq`, which no input has": Contract({**DIMS, "seq": DIMS["n"]}),
    "asks for `k < 3`, but no input has the dim `k`": Contract(DIMS, limits=(parse_condition("k < 3"),)),
    "says what the input `count` is, which the file does not have": Contract(
        DIMS, numbers={"count": parse_expression("n")}
    ),
    "has formulas for the output `z`, which the file does not have": Contract(DIMS, outputs={"z": ("n", "3")}),
    "does not say where the input `x` stands in the module's call": Contract(
        DIMS, call=(Parameter("a", "both", Slot("a")),)
    ),
    "says where the output `z` stands in the module's result, which the file does not have": Contract(
        DIMS, returns=Branch("list", (), (Slot("y"), Slot("z")))
    ),
    "gives the output `y` 1 axes, the file 2": Contract(DIMS, outputs={"y": ("n",)}),
    "gives axis 1 of the output `y` the size 4, the file 3": Contract(DIMS, outputs={"y": ("n", "4")}),
    "says `checked` at 0 sizes": Contract(DIMS, evidence=Evidence(0, {}, "", "", None, 8, "noise")),
    "says that `n` was run from 9 to 3": Contract(DIMS, evidence=Evidence(4, {"n": (9, 3)}, "", "", None, 8, "noise")),
}


def _written(folder, text):
    model = onnx.ModelProto()
    model.CopyFrom(MODEL)
    model.metadata_props.add(key=KEY, value=text)
    onnx.save(model, folder / "model.onnx")
    return folder / "model.onnx"


@pytest.mark.parametrize(("said", "contract"), LIES.items(), ids=list(LIES))
def test_each_lie_is_told_by_inspect_and_load(tmp_path, said, contract):
    path = _written(tmp_path, contract.to_text())
    assert f"\n  contract contradicts the file: it {said}" in str(anyshape.inspect(path))
    assert anyshape.inspect(path).to_dict()["lies"] == [f"contradicts the file: it {said}"]
    with pytest.warns(UserWarning, match="contract") as warned:
        loaded = anyshape.load(path)
    assert [str(one.message) for one in warned] == [
        f"the contract of `model.onnx` {said}: was the file changed since? calls are held to the file, and to what "
        "else the contract says"
    ]
    assert warned[0].filename == __file__
    _refuses_nine(loaded)
    assert anyshape.load(path, check=False).contract is not None


def _refuses_nine(loaded):
    with pytest.raises(anyshape.DeclarationError, match=r"^`n` = 9 is above 8$"):
        loaded(np.ones((9, 3), np.float32))
    assert loaded.session is not None


def test_a_check_says_what_is_not_asked(tmp_path):
    contract = Contract({**DIMS, "seq": DIMS["n"]}, outputs={"y": ("seq", "3")}, where=(parse_condition("seq > n"),))
    notes = anyshape.check(_written(tmp_path, contract.to_text()), quick=True, trusted=True).notes
    for clause in ("speaks of the dim `seq`, which no input has", "asks for `seq > n`, but no input has the dim `seq`"):
        assert f"the file's own contract {clause}, which is not asked" in notes


def test_a_file_whose_dims_and_inputs_others_have_renamed_is_called_by_what_it_has(tmp_path):
    """As tools for fixed sizes, simplifiers and editors leave a file."""
    slot = Parameter("x", "both", Slot("x"))
    contract = Contract(DIMS, (parse_condition("n != 5"),), outputs={"y": ("n", "3")}, call=(slot,), returns=Slot("y"))
    path = _written(tmp_path, contract.to_text())
    model = onnx.load(path)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "rows"
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_param = "rows"
    onnx.save(model, path)
    with pytest.warns(UserWarning, match=r"dim `n`, which no input has \(and 1 more: `anyshape inspect` tells them\)"):
        loaded = anyshape.load(path)
    assert loaded(np.ones((9, 3), np.float32)).shape == (9, 3)  # the module's own result, not a dict
    assert anyshape.check(path, quick=True, trusted=True).verdict == "checked"
    model.graph.input[0].name = model.graph.node[0].input[0] = "pixels"
    onnx.save(model, path)
    with pytest.warns(UserWarning, match="dim `n`"):
        loaded = anyshape.load(path)
    assert loaded(pixels=np.ones((9, 3), np.float32)).shape == (9, 3)
    assert (
        "\n  contract contradicts the file: it does not say where the input `pixels` stands in the module's call"
        in str(anyshape.inspect(path))
    )


def test_a_contract_about_its_file_is_believed(tmp_path):
    contract = Contract(DIMS, limits=(parse_condition("n != 5"),), outputs={"y": ("n", "3")}, evidence=EVIDENCE)
    assert list(contradictions(contract, read_interface(MODEL))) == []
    path = _written(tmp_path, contract.to_text())
    assert anyshape.inspect(path).lies == ()
    anyshape.load(path)


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 99}', "x" * 2_000_000])
def test_a_contract_that_cannot_be_read_is_told_as_such(tmp_path, text):
    path, said = _written(tmp_path, text), "cannot be read: written by a later anyshape, or by somebody else"
    shown = str(anyshape.inspect(path))
    assert f"\n  contract {said}" in shown
    assert "contract none" not in shown
    warning = f"the contract of `{path.name}` {said}; calls are held to the file alone"
    with pytest.warns(UserWarning, match=f"^{re.escape(warning)}$"):
        anyshape.load(path)
    assert f"the file's own contract {said}" in anyshape.check(path, quick=True).notes
