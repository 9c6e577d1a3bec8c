"""The document of a report is what its schema says, holds no machine and no time, and tells all that is known."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.resources import files

import jsonschema
import pytest

from anyshape.errors import DeclarationError
from anyshape.results.report.document import ReportDocument, times_from
from tests.onnxfile import drawing
from tests.results.report.samples import EDIT, REFUSED, RIGHT, document_of_file

SCHEMA = json.loads((files("anyshape.results.report") / "schema.json").read_text(encoding="utf-8"))
TIMES = {
    "machine": "2 cores", "threads": 1, "rounds": 5, "sizes": [{"batch": 1}, {"batch": 8}],
    "series": [{"name": "net.onnx", "points": [{"median": 1.0, "low": 0.5, "high": 2.0, "memory": None}, None]}],
}  # fmt: skip


def test_documents_are_what_their_schema_says(tmp_path):
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    file = document_of_file(tmp_path)
    for document in (ReportDocument(RIGHT, times=TIMES), ReportDocument(REFUSED), file):
        jsonschema.validate(json.loads(json.dumps(document.to_dict())), SCHEMA)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**file.to_dict(), "more": 1}, SCHEMA)


def test_the_verdict_tells_what_it_rests_on():
    verdict = ReportDocument(RIGHT).to_dict()["verdict"]
    assert verdict["sentence"] == "net.onnx, right at 2 sizes in ONNX Runtime 1.31.1 against PyTorch"
    assert verdict["limits"] == [{"text": "seq <= 32", "place": "model.py:7"}]
    assert verdict["not_run"] == [{"reason": "too much work", "count": 1, "largest": {"batch": 9, "seq": 32}}]
    assert verdict["assumptions"][1] == {"expression": "seq < n", "place": "", "end": "open"}
    assert verdict["facts"] == [["error", "at most 3.0 x the model's own rounding noise (8 is allowed)"]]
    assert (verdict["versions"]["ONNX Runtime"], verdict["versions"]["opset"]) == ("1.31.1", "20")


def test_a_refusal_says_its_first_reason():
    assert ReportDocument(REFUSED).to_dict()["verdict"]["sentence"] == "No file written: `batch` cannot vary"


def test_what_the_file_says_of_itself_fills_what_a_check_does_not_know():
    promise = drawing.contract({"batch": "1.."}, y=("batch", "2 * seq"))
    rows = ReportDocument(replace(RIGHT, assumptions=()), promise).to_dict()["verdict"]
    assert rows["outputs"][0]["formulas"] == ["batch", "2 * seq"]
    assert rows["assumptions"] == []
    assert ["contract", "checked by anyshape 0.1.0"] not in rows["facts"]
    alone = ReportDocument(replace(RIGHT, what="check"), promise).to_dict()["verdict"]
    assert alone["facts"][-1] == ["contract", "checked by anyshape 0.1.0"]


def test_a_finding_has_its_line_and_its_edit_and_no_more_of_the_source(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "drawn.py").write_text(EDIT.original, encoding="utf-8")
    (found,) = ReportDocument(REFUSED).to_dict()["findings"]
    assert found["line"] == {
        "number": 3,
        "text": "        return x.view(2, 8) + 1",
        "underline": "               ^^^^^^^^^^^^ `batch` becomes 2 here",
    }
    assert found["edit"]["rows"] == [["-", "return x.view(2, 8) + 1"], ["+", "return x.view(len(x), 8) + 1"]]
    assert found["edit"]["diff"].startswith("--- a/drawn.py\n+++ b/drawn.py\n")


def test_no_path_of_the_machine_and_no_time_is_told():
    text = json.dumps(ReportDocument(replace(RIGHT, seconds=12.5)).to_dict())
    assert "somewhere" not in text
    assert "12.5" not in text


@pytest.mark.parametrize(
    "measured",
    [{}, [], "x", {**TIMES, "sizes": []}, {**TIMES, "series": [{"name": "n", "points": [{"median": "1"}] * 2}]}],
)
def test_what_was_not_measured_is_refused(measured):
    assert times_from(TIMES) == TIMES
    with pytest.raises(DeclarationError, match=r"times holds no measurements: give what anyshape.bench returned"):
        times_from(measured)
