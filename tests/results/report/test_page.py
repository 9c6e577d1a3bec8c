"""The page stands alone, runs nothing but its own two scripts, and shows anybody's text as text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from anyshape.onnxfile.contract import Assumption
from anyshape.onnxfile.interface import Port
from anyshape.results.report.document import ReportDocument
from anyshape.results.report.page import render_page
from anyshape.source.spans import Span
from tests.results.report.samples import EVIL, FINDING, REFUSED, RIGHT, document_of_file


class _Page(HTMLParser):
    """The tags of a page, its attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags, self.attributes, self.blocks, self._open = [], [], {"script": [], "style": []}, ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        self._open = tag

    def handle_data(self, data):
        if self._open in self.blocks:
            self.blocks[self._open].append(data)
            self._open = ""


def _evil_document() -> ReportDocument:
    finding = replace(
        FINDING, message=EVIL, span=Span(EVIL, 1), notes=(EVIL,), helps=(EVIL,), edit=replace(FINDING.edit, title=EVIL)
    )
    return ReportDocument(
        replace(
            REFUSED,
            inputs=(Port(EVIL, "float32", (EVIL, 3)),),
            findings=(finding,),
            notes=(EVIL,),
            where=(EVIL,),
            limits=(EVIL,),
            given_up=(EVIL,),
            assumptions=(Assumption(EVIL, EVIL, "open"),),
        )
    )


@pytest.mark.parametrize("document", [ReportDocument(RIGHT), ReportDocument(REFUSED), _evil_document()], ids=str)
def test_the_browser_is_told_which_two_scripts_to_run(document):
    page = _Page(render_page(document))
    data, formulas, script = page.blocks["script"]
    (style,) = page.blocks["style"]
    policy = dict(page.attributes)["content"] and next(v for k, v in page.attributes if k == "content" and "src" in v)
    digests = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in (style, formulas, script)]
    assert re.findall("'sha256-([^']+)'", policy) == digests
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert json.loads(data)["file"] in ("net.onnx", "model")


def test_text_of_others_is_nothing_but_text():
    evil, plain = _Page(render_page(_evil_document())), _Page(render_page(ReportDocument(REFUSED)))
    assert evil.tags.count("script") == plain.tags.count("script") == 3
    assert set(evil.tags) <= set(plain.tags) | {
        "details",
        "summary",
        "tr",
        "td",
        "th",
        "thead",
        "tbody",
        "table",
        "strong",
    }
    assert not [name for name, _ in evil.attributes if name.startswith("on") or name == "style"]
    assert not [
        value for name, value in evil.attributes if name in ("src", "href") and not value.startswith(("#", "data:,"))
    ]
    text = render_page(_evil_document())
    assert "\u202e" not in text
    assert "\u2028" not in text
    assert "49" not in re.sub(r"<script.*?</script>|<style>.*?</style>", "", text, flags=re.DOTALL)


def test_data_holds_nothing_that_could_end_its_block():
    data = _Page(render_page(_evil_document())).blocks["script"][0]
    assert data.isascii()
    assert not set("<>&") & set(data)
    assert json.loads(data)["diffs"] == [_evil_document().to_dict()["findings"][0]["edit"]["diff"]]


def test_formulas_are_functions_of_sizes_and_nothing_else(tmp_path):
    document = document_of_file(tmp_path)
    formulas = _Page(render_page(document)).blocks["script"][1]
    assert formulas.startswith("const anyshapeFormulas={expressions:d=>[")
    for evil in ("alert(1)", "d[0];alert(1)", "`x`", "d.constructor", "'x'", "d[0]=>1", "this", "1//2", "d[0]=1"):
        odd = {**document.costs, "expressions": [{"text": "x", "js": evil}]}
        with pytest.raises(AssertionError, match="no formula"):
            render_page(replace(document, costs=odd))


def test_the_same_document_is_the_same_page(tmp_path):
    document = document_of_file(tmp_path)
    assert render_page(document) == render_page(document)
    assert render_page(document) == render_page(document_of_file(tmp_path))


def test_sections_without_anything_to_show_are_left_out():
    page = render_page(ReportDocument(RIGHT))
    sections = re.findall(r'<section id="(\w+)"', page)
    assert sections == ["verdict", "map"]
    assert re.findall(r'<section id="(\w+)"', render_page(ReportDocument(REFUSED))) == ["verdict", "map", "findings"]
    assert "No runs are recorded" in render_page(ReportDocument(replace(RIGHT, verification=None)))


def test_what_it_rests_on_is_told_in_words():
    text = " ".join(re.sub("<[^>]+>", " ", render_page(ReportDocument(RIGHT))).split())
    for words in (
        "✓ checked net.onnx, right at 2 sizes in ONNX Runtime 1.31.1 against PyTorch",
        "2 right 1 where the model itself fails 1 planned and not run",
        "seq &lt;= 32 model.py:7",
        "assumptions 2: 1 run on both sides 1 not settled",
        "batch != 7 model.py:3 run on both sides holds at batch = 2 does not at batch = 7",
        "1 planned size, up to batch = 9, seq = 32: too much work",
        "note a note",
    ):
        assert words in text, words


def test_a_name_as_long_as_a_book_is_cut_on_the_page_and_whole_in_the_data():
    document = ReportDocument(replace(RIGHT, inputs=(Port("n" * 100_000, "float32", ("d" * 100_000,)),)))
    assert len(render_page(document)) < 100_000
    assert document.to_dict()["verdict"]["inputs"][0]["name"] == "n" * 100_000
