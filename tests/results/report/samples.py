"""Results and documents for the tests of reports, made by hand: no model is converted for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from anyshape.costs.account import costs_of
from anyshape.onnxfile.contract import Assumption
from anyshape.onnxfile.interface import Port
from anyshape.results.finding import Finding
from anyshape.results.report.document import ReportDocument
from anyshape.results.report.graph_layout import graph_document
from anyshape.results.result import Result
from anyshape.results.verification import Check, Failure, Verification
from anyshape.sizes.notation import parse_sizes
from anyshape.source.edits import Change, Edit
from anyshape.source.spans import Span
from tests.onnxfile import drawing

SOURCE = "class Head:\n    def forward(self, x):\n        return x.view(2, 8) + 1\n"
EDIT = Edit("drawn.py", SOURCE, (Change(3, 23, 3, 24, "2", "len(x)"),), "take the size from `x`", "it runs", safe=True)
FINDING = Finding(
    "pinned-dim", "`batch` cannot vary", Span("drawn.py", 3, 16, 3, 28, "Head.forward"), "`batch` becomes 2 here",
    ("PyTorch fails there too",), ("leave it out",), dims=("batch",), breaks_at={"batch": 1, "seq": 4}, edit=EDIT,
)  # fmt: skip
CHECKED = Verification(
    (
        Check({"batch": 1, "seq": 4}, 0, 0.25), Check({"batch": 2, "seq": 4}, 0, 1.5),
        Check({"batch": 2, "seq": 4}, 1, 3.0, values="`x` negated"),
    ),
    (), ({"batch": 3, "seq": 40},), (({"batch": 9, "seq": 32}, "too much work"),), (), 0.5, "ONNX Runtime 1.31.1", 8.0,
)  # fmt: skip
DIMS = {"batch": parse_sizes("1..", dim="batch"), "seq": parse_sizes("4..32 step 4", dim="seq")}
RIGHT = Result(
    "checked",
    (Port("x", "float32", ("batch", "seq", 4)),),
    (Port("y", "float32", ("batch", "seq")),),
    DIMS,
    ("seq <= 32",),
    verification=CHECKED,
    path=Path("/somewhere/net.onnx"),
    opset=20,
    where=("batch <= seq",),
    limits_at={"seq <= 32": "model.py:7"},
    assumptions=(
        Assumption("batch != 7", "model.py:3", "run", {"batch": 2}, {"batch": 7}), Assumption("seq < n", "", "open"),
    ),
    notes=("a note",),
)  # fmt: skip
WRONG = Verification(
    CHECKED.checks[:1],
    (Failure({"batch": 2, "seq": 4}, 0, "wrong-values", "y", "`y` differs by 0.3", values="`x` negated"),),
    runtime="ONNX Runtime 1.31.1", factor=8.0,
)  # fmt: skip
REFUSED = Result("refused", dims=DIMS, findings=(FINDING,), verification=WRONG)

EVIL = "<script>alert(1)</script>\"' onload='x' </title> \u2028 \u202e ${7*7} {{ 7*7 }}"


def document_of_file(folder: Path, text: str = drawing.CONVOLUTION, **more: Any) -> ReportDocument:
    """The document of a small file of whose runs nothing is known."""
    path = drawing.write(folder / "small.onnx", text)
    costs = costs_of(path)
    result = Result("unchecked", path=path, what="check")
    return ReportDocument(result, costs=costs.to_dict(), graph=graph_document(costs), **more)
