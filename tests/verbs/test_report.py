"""`report` checks a file and writes its page, be it right, wrong or not to be run."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import torch

import anyshape
from anyshape.errors import DeclarationError
from anyshape.runtime import confinement
from tests.onnxfile import drawing


def test_a_right_file_alone(tmp_path):
    path = drawing.write(tmp_path / "doubled.onnx", drawing.DOUBLED)
    written = anyshape.report(path, tmp_path / "r.json", quick=True)
    rows = json.loads((tmp_path / "r.json").read_text())
    assert rows == written.to_dict()
    assert rows["verdict"]["verdict"] == "checked"
    assert len(rows["map"]["marks"]) == rows["verdict"]["sizes_run"] > 3
    size = (tmp_path / "r.json").stat().st_size
    assert str(written) == f"wrote r.json ({size / 1000:.0f} kB)\n{written.result.headline}"


def test_a_wrong_file_has_its_page_too(tmp_path):
    path = drawing.write(tmp_path / "wrong.onnx", drawing.MISLABELLED)
    written = anyshape.report(path, tmp_path / "r.html", quick=True)
    assert written.result.verdict == "refused"
    assert "mislabelled-dim" in (tmp_path / "r.html").read_text()


def test_beside_its_model_values_are_compared(tmp_path):
    model = torch.nn.Linear(3, 2)
    anyshape.export(model, torch.randn(2, 3), tmp_path / "m.onnx", dims={"input": "batch 3"}, quick=True)
    rows = anyshape.report(tmp_path / "m.onnx", tmp_path / "r.json", model, torch.randn(2, 3), quick=True).to_dict()
    assert rows["map"]["allowed"] == 8
    assert all(mark["ratio"] is not None for mark in rows["map"]["marks"])


def test_without_a_run_the_page_says_so(tmp_path):
    promise = drawing.contract({"batch": "1..", "seq": "1..512"}, "seq <= 512")
    path = drawing.write(tmp_path / "doubled.onnx", drawing.DOUBLED, promise)
    written = anyshape.report(path, tmp_path / "r.html", run=False)
    assert [dim["text"] for dim in written.to_dict()["map"]["dims"]] == ["1..", "1..512"]
    assert {value["state"] for value in written.to_dict()["costs"]["values"]} == {"not run"}
    page = (tmp_path / "r.html").read_text()
    assert "No runs are recorded" in page
    assert "the file was not run: it was not asked for" in page


def test_a_file_that_was_stopped_is_shown_without_runs(tmp_path, monkeypatch):
    def stop(*_, **__):
        raise confinement.StoppedError("`doubled.onnx` was still running after 9 s and was stopped")

    monkeypatch.setattr("anyshape.verbs.report.check", stop)
    path = drawing.write(tmp_path / "doubled.onnx", drawing.DOUBLED)
    written = anyshape.report(path, tmp_path / "r.html")
    told = ("the file was not run: `doubled.onnx` was still running after 9 s and was stopped",)
    assert (written.result.verdict, written.result.notes) == ("unchecked", told)


def test_a_file_for_which_no_call_can_be_made_up_is_shown_without_runs(tmp_path):
    text = "main (string[n] x) => (string[n] y)\n{\n  y = Identity(x)\n}"
    path = drawing.write(tmp_path / "texts.onnx", text)
    told = "the file was not run: input `x` is string, so no call can be made up: give the model, too"
    assert anyshape.report(path, tmp_path / "r.html").result.notes == (told,)
    with pytest.raises(DeclarationError, match="`m`|input `x` is string"):
        anyshape.report(path, tmp_path / "r.html", sizes={"m": "1..4"})


def test_wrong_usage_is_a_sentence_before_anything_is_run(tmp_path):
    path = drawing.write(tmp_path / "doubled.onnx", drawing.DOUBLED)
    with pytest.raises(DeclarationError, match=r"^report\(\) has no argument `size`; did you mean `sizes`\?$"):
        anyshape.report(path, tmp_path / "r.html", size={})
    with pytest.raises(DeclarationError, match="is no name for a report"):
        anyshape.report(path, tmp_path / "r.txt")
    with pytest.raises(DeclarationError, match="there is no file"):
        anyshape.report(tmp_path / "absent.onnx", tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()


def test_a_file_alone_needs_no_torch(tmp_path):
    path = drawing.write(tmp_path / "doubled.onnx", drawing.DOUBLED)
    page = str(tmp_path / "r.html")
    code = f"import sys, anyshape; anyshape.report({str(path)!r}, {page!r}, quick=True); print('torch' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"
