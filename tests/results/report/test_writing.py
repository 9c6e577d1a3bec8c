"""A report is written whole or not at all, and replaces nothing but a report."""

from __future__ import annotations

import json
import os

import pytest

from anyshape.errors import DeclarationError
from anyshape.results.report.document import ReportDocument
from anyshape.results.report.writing import check_report_path, write_report
from tests.results.report.samples import REFUSED, RIGHT, document_of_file


def test_the_name_says_what_is_written(tmp_path):
    document = document_of_file(tmp_path)
    for name in ("a.html", "a.json", "a.memory.json", "a.flops.json", "a.moved.json"):
        for _ in range(2):  # the second replaces the first
            write_report(document, check_report_path(tmp_path / name))
    assert (tmp_path / "a.html").read_text().startswith("<!DOCTYPE html>")
    assert json.loads((tmp_path / "a.json").read_text()) == document.to_dict()
    assert set(json.loads((tmp_path / "a.flops.json").read_text())) == {"results", "gradient"}
    assert sorted(one.name for one in tmp_path.iterdir()) == [
        "a.flops.json", "a.html", "a.json", "a.memory.json", "a.moved.json", "small.onnx",
    ]  # fmt: skip


REFUSALS = {
    "report.txt": "`report.txt` is no name for a report: end it in .html for a page, in .json for its data",
    "folder.html": "is a folder: name a file in it, such as",
    "theirs.html": "is there and is no report: name another file, or remove it first",
    "config.json": "is there and is no report: name another file, or remove it first",
    "pipe.html": "is a named pipe: only ordinary files are replaced",
    "theirs.html/r.html": "is a file, so that there can be no folder",
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_is_no_report_is_not_replaced(tmp_path, name):
    (tmp_path / "folder.html").mkdir()
    (tmp_path / "theirs.html").write_text("<html><body>mine</body></html>")
    (tmp_path / "config.json").write_text('{"hidden_size": 768}')
    os.mkfifo(tmp_path / "pipe.html")
    with pytest.raises(DeclarationError, match=REFUSALS[name].replace(".", r"\.")):
        check_report_path(tmp_path / name)


def test_what_is_no_path_gets_a_sentence():
    with pytest.raises(DeclarationError, match="`f` is a int: pass the path of the report to write"):
        check_report_path(3)


def test_a_failure_leaves_what_was_there(tmp_path, monkeypatch):
    path = check_report_path(tmp_path / "new/r.html")
    write_report(ReportDocument(RIGHT), path)
    before = path.read_bytes()
    monkeypatch.setattr("anyshape.results.report.page.render_page", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        write_report(ReportDocument(REFUSED), path)
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == ["r.html"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real.html").touch()
    (tmp_path / "link.html").symlink_to("real.html")
    write_report(ReportDocument(RIGHT), check_report_path(tmp_path / "link.html"))
    assert (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "real.html").read_text().startswith("<!DOCTYPE html>")
