"""What a notebook shows: the same words as the text, standing alone, and nothing of anybody's that acts."""

from __future__ import annotations

import linecache
import re
from html.parser import HTMLParser
from pathlib import Path

import onnx
import pytest

import anyshape
from anyshape.onnxfile.interface import Port
from anyshape.results.attempt import Attempt
from anyshape.results.finding import Finding, Findings
from anyshape.results.markup import ShownInNotebooks
from anyshape.results.result import Result
from anyshape.results.verification import Check, Verification
from anyshape.sizes.notation import parse_sizes
from anyshape.source.edits import Change, Edit
from anyshape.source.spans import Span, shown_path
from tests.onnxfile import drawing

MODEL = """\
class Head:
    def forward(self, x):
        return x.view(2, 8, "<b>") + 1
"""
EDIT = Edit(
    "shown.py", MODEL, (Change(3, 23, 3, 24, "2", "x.shape[0]"),), "take the size from `x`", "same result", safe=True
)
FINDING = Finding(
    "pinned-dim", "`batch` cannot vary", Span("shown.py", 3, 16, 3, 34, "Head.forward"), "`batch` becomes 2 here",
    ("batch = 1 breaks it",), ("write this:\ndef f(x):\n    return ...",), dims=("batch",), edit=EDIT,
)  # fmt: skip
EVIL = "<script>alert(1)</script>\"' onload='x' & `<img src=x>` \x1b[31m\u202e"
TAGS = {
    "div", "p", "br", "strong", "code", "pre", "table", "caption", "tbody", "tr", "th", "td", "details", "summary",
    "ins", "del",
}  # fmt: skip


class _Page(HTMLParser):
    """What is on a page: its text, with line breaks around blocks."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.text, self.open, self.tags, self.attributes = "", [], set(), set()
        self.feed(source)
        self.close()
        assert self.open == [], "a tag is left open"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        self.text += "\n" if tag in ("br", "pre") else ""
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self.text += "" if tag in ("code", "strong", "ins", "del") else "\n"

    def handle_data(self, data: str) -> None:
        self.text += data


def _page(value: ShownInNotebooks) -> _Page:
    bundle = value._repr_mimebundle_()
    assert set(bundle) == {"text/plain", "text/html"}
    assert bundle["text/plain"] == str(value)
    page = _Page(bundle["text/html"])
    assert page.tags <= TAGS
    assert page.attributes <= {"style", "scope"}
    assert "url(" not in bundle["text/html"]
    return page


def _words(text: str) -> list[str]:
    return re.findall(r"[\w.\[\]:+^,=]*\w[\w.\[\]:+^,=]*", text.replace("-->", ""))


@pytest.fixture(autouse=True)
def _in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "shown.py").write_text(MODEL, encoding="utf-8")


def _result(name: str = "x", *notes: str) -> Result:
    checks = tuple(Check({"batch": size}, 0, 0.5) for size in (1, 2, 7))
    return Result(
        "checked", (Port(name, "float32", ("batch", 3)),), (Port("y", "float32", ("batch",)),),
        {"batch": parse_sizes("1..", dim="batch")}, attempts=(Attempt("torch.export", "checked"),), notes=notes,
        verification=Verification(checks, runtime="ONNX Runtime 1.31.1", factor=8.0, seconds=0.2), opset=23,
        seconds=1.5, path=Path("net.onnx"), repairs=("`3` read as `x.shape[0]`",), findings=(FINDING,),
    )  # fmt: skip


def _refused() -> Result:
    return Result("refused", attempts=(Attempt("torch.export", "wrong", "values differ"),), findings=(FINDING,))


@pytest.mark.parametrize("value", [FINDING, Findings([FINDING, FINDING]), _result("x", "a note"), _refused()], ids=repr)
def test_html_says_what_the_text_says(value: ShownInNotebooks) -> None:
    text = re.sub(r"^ *= (note|help): ", r"\1 ", str(value), flags=re.MULTILINE)
    assert _words(_page(value).text) == _words(text.replace("`", ""))


def test_a_file_that_is_inspected_says_the_same(tmp_path: Path) -> None:
    found = anyshape.inspect(drawing.write(tmp_path / "pinned.onnx", drawing.PINNED))
    assert repr(found).startswith("<Inspection pinned.onnx: 1 node, opset 18, ")
    assert len(_words(str(found))) > 10
    assert _words(_page(found).text) == _words(str(found).replace("`", ""))


def test_a_finding_has_its_line_its_mark_and_its_edit() -> None:
    text = _page(FINDING).text
    assert '3 |         return x.view(2, 8, "<b>") + 1\n' in text
    assert "\n  |                ^^^^^^^^^^^^^^^^^^ `batch` becomes 2 here\n" in text
    assert '- return x.view(2, 8, "<b>") + 1\n+ return x.view(x.shape[0], 8, "<b>") + 1\n' in text
    assert "write this:\ndef f(x):\n    return ...\n" in text


def test_only_a_cell_is_offered_whole() -> None:
    assert "details" not in _page(FINDING).tags
    name = "<ipython-input-41-abc>"
    linecache.cache[name] = (len(MODEL), None, MODEL.splitlines(keepends=True), name)
    finding = Finding(
        "pinned-dim", "no", Span(shown_path(name), 3), edit=Edit(name, MODEL, EDIT.changes, "do", "", True)
    )
    page = _page(finding)
    assert "In [41] with this change, to copy\n\n" + MODEL.replace("2, 8", "x.shape[0], 8") in page.text
    assert "ipython-input" not in page.text + str(finding) + repr(finding) + finding.to_json()


def test_a_cell_with_several_findings_is_offered_once_with_all_changes() -> None:
    name = "<ipython-input-42-abc>"
    changes = (EDIT.changes[0], Change(3, 26, 3, 27, "8", "x.shape[1]"))
    edits = [Edit(name, MODEL, (one,), "take it", "", safe=one is EDIT.changes[0]) for one in changes]
    findings = Findings(Finding("pinned-dim", "no", Span("In [42]", 3), edit=edit) for edit in (*edits, edits[0], None))
    whole = MODEL.replace("2, 8", "x.shape[0], x.shape[1]")
    assert _page(findings).text.endswith(f"\nIn [42] with these 2 changes, not all safe, to copy\n\n{whole}\n\n\n")
    assert _page(findings).text.count("to copy") == 1


@pytest.mark.parametrize(
    "value",
    [
        Finding(EVIL, EVIL, Span(EVIL, 3, function=EVIL), EVIL, (EVIL,), (f"{EVIL}\n{EVIL}",), dims=(EVIL,)),
        Finding("r", "m", Span("shown.py", 3), edit=Edit(EVIL, MODEL, EDIT.changes, EVIL, EVIL, safe=False)),
        _result(EVIL, EVIL),
        Result("refused", attempts=(Attempt(EVIL, EVIL, EVIL),)),
        Result("unchecked", path=Path(EVIL.replace("/", "|")), constants={EVIL: EVIL}, where=(EVIL,), limits=(EVIL,)),
    ],
    ids=["finding", "edit", "result", "refused", "unchecked"],
)
def test_what_others_wrote_is_text_and_nothing_else(value: ShownInNotebooks) -> None:
    assert "<script>alert(1)</script>\"' onload='x' & <img src=x>" in _page(value).text
    assert not re.search("[\x1b\u202e]", value._repr_html_())


def test_names_of_a_file_are_text_and_nothing_else(tmp_path: Path) -> None:
    ports = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [EVIL, 3]) for name in (EVIL, "y")]
    node = onnx.helper.make_node("Relu", [EVIL], ["y"])
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", ports[:1], ports[1:]), producer_name=EVIL)
    onnx.save(model, tmp_path / "evil.onnx")
    found = anyshape.inspect(tmp_path / "evil.onnx")
    assert _page(found).text.count("<script>alert(1)</script>") >= 4  # producer, input, both axes
    assert "\n" not in repr(found)


def test_a_repr_is_one_line() -> None:
    assert repr(FINDING) == "<Finding error[pinned-dim]: `batch` cannot vary at shown.py:3:16 in Head.forward>"
    assert repr(Findings([FINDING])) == f"[{FINDING!r}]"
    assert repr(_refused()) == "<Result refused: no file written>"
    assert repr(_result()) == "<Result checked: net.onnx, right at 3 sizes in ONNX Runtime 1.31.1 against PyTorch>"
    assert "\n" not in repr(Finding("r", "two\nlines", Span("a\nb", 1)))


def test_no_finding_is_said() -> None:
    assert (str(Findings()), repr(Findings())) == ("no findings", "[]")
    assert _page(Findings()).text.strip() == "no findings"


def test_ipython_prints_a_list_of_findings_as_its_text() -> None:
    """It has a printer of its own for lists."""
    pretty = pytest.importorskip("IPython.lib.pretty").pretty
    assert pretty(Findings([FINDING, FINDING])) == f"{FINDING}\n\n{FINDING}"


def test_a_level_is_a_word_and_not_a_colour_alone() -> None:
    warning = Finding("frozen-value", "off", Span("shown.py", 3), level="warning")
    assert _page(warning).text.startswith("warning[frozen-value]: off")
