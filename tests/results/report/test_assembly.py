"""A result becomes a document with all that its file tells; what cannot be told is said."""

from __future__ import annotations

from dataclasses import replace

import onnx
import onnx_ir as ir

from anyshape.results.report.assembly import assemble
from anyshape.results.result import Result
from anyshape.source.spans import Span
from tests.onnxfile import drawing
from tests.results.report.samples import FINDING, REFUSED


def test_a_checked_file_has_its_contract_its_costs_and_its_graph(tmp_path):
    promise = drawing.contract({"batch": "1..", "seq": "1..512"}, y=("batch", "2 * seq"))
    path = drawing.write(tmp_path / "doubled.onnx", drawing.DOUBLED, promise)
    document = assemble(Result("checked", path=path, what="check"))
    assert document.contract.outputs == {"y": ("batch", "2 * seq")}
    assert [node["op"] for node in document.costs["nodes"]] == ["Concat"]
    assert document.graph["groups"][document.graph["root"]]["items"] == [{"node": 0}]


def test_a_model_that_was_never_written_is_read_all_the_same(tmp_path):
    model = ir.from_proto(onnx.load(drawing.write(tmp_path / "doubled.onnx", drawing.DOUBLED)))
    assert assemble(Result("checked", _model=model)).costs["values"][0]["name"] == "x"


def test_a_refused_export_does_not_speak_of_what_stands_in_its_place(tmp_path):
    path = drawing.write(tmp_path / "old.onnx", drawing.DOUBLED)
    assert assemble(replace(REFUSED, path=path)).costs is None
    assert assemble(replace(REFUSED, path=path, what="check")).costs is not None


def test_a_strangers_file_runs_in_a_process_of_its_own(tmp_path, strangers, monkeypatch):
    import onnxruntime

    monkeypatch.setattr(onnxruntime, "InferenceSession", None)  # it is not opened here
    path = drawing.write(tmp_path / "doubled.onnx", drawing.DOUBLED)
    document = assemble(Result("checked", path=path, what="check"))
    assert {value["state"] for value in document.costs["values"]} == {"held"}


def test_what_cannot_be_told_of_a_file_is_said(tmp_path, monkeypatch):
    from anyshape.errors import AnyshapeError

    def fail(*_, **__):
        raise AnyshapeError("what `doubled.onnx` costs cannot be told: it is odd")

    monkeypatch.setattr("anyshape.costs.account.costs_of", fail)
    path = drawing.write(tmp_path / "doubled.onnx", drawing.DOUBLED)
    document = assemble(Result("checked", path=path, what="check"))
    assert document.costs is None
    assert document.result.notes == ("no costs are known: what `doubled.onnx` costs cannot be told: it is odd",)


def test_nodes_know_the_finding_that_names_them_or_their_line(tmp_path):
    text = "main (float[n] x) => (float[n] y)\n{\n  [first] a = Relu(x)\n  [second] b = Neg(a)\n  [third] y = Abs(b)\n}"
    path = drawing.write(tmp_path / "m.onnx", text)
    model = onnx.load(path)
    model.graph.node[1].metadata_props.add(key="anyshape.source", value="drawn.py:3 in forward")
    onnx.save(model, path)
    named = replace(FINDING, span=Span("m.onnx", 1, 1), notes=("first node that differs: `third` (Abs)",))
    result = Result("refused", path=path, what="check", findings=(FINDING, named))
    nodes = assemble(result).costs["nodes"]
    assert [node.get("fault") for node in nodes] == [None, FINDING.headline, named.headline]
