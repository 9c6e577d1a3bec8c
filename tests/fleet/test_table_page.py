from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from anyshape.fleet.result_lines import TaskRecord
from anyshape.fleet.table_page import page_of, write_page

HOSTILE = "</script><script>document.title='owned'</script>\"' onmouseover=x {{7*7}} \ud800"
RECORDS = [
    TaskRecord(
        "alpha", "anyshape", "checked", cpu_seconds=2.0, memory=10**9, tags=("vision",), report="reports/alpha.html"
    ),
    TaskRecord("alpha", "torch", "wrong", cause="wrong-values: `y`", cpu_seconds=9.0, tags=("vision",)),
    TaskRecord("beta", "anyshape", "refused", cause="pinned-dim: `batch`", cpu_seconds=5.0, tags=("text", "small")),
    TaskRecord("beta", "torch", "refused", cpu_seconds=1.0),
    TaskRecord(HOSTILE, "anyshape", "timeout", cause=HOSTILE, tags=('a"b', "]<", "two\nlines"), report="../../x"),
]


@pytest.fixture
def page(tmp_path: Path) -> Path:
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "alpha.html").write_text("<title>alpha's report</title>")
    path = tmp_path / "results.html"
    write_page(path, RECORDS)
    return path


def test_the_page_is_one_file_that_asks_for_nothing_else(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "http://" not in text
    assert "https://" not in text
    assert "default-src 'none'" in text
    assert "<strong>anyshape</strong>: 1 of 3 good, 7 s of CPU time" in text
    assert sorted(path.name for path in page.parent.iterdir()) == ["reports", "results.html"]


def test_names_and_causes_are_text_whatever_they_hold(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert "<script>document" not in text
    assert "49" not in text.split("<tbody>")[1]
    assert text.count("<script>") == 1


def test_only_a_report_that_is_there_and_below_the_folder_is_linked(page: Path) -> None:
    assert page.read_text(encoding="utf-8").count("<a href=") == 1
    for report in ("/etc/passwd", "../x.html", "reports/none.html", "javascript:alert(1)", ""):
        assert "<a href=" not in page_of([TaskRecord("a", "b", "checked", report=report)], page.parent)


@pytest.fixture
def browser() -> Iterator[object]:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("there is no chromium here to look at the page with")
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright drives the browser")
    with sync_api.sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield made
        made.close()


@pytest.mark.slow
def test_a_browser_filters_sorts_and_follows_links(page: Path, browser) -> None:
    tab = browser.new_page()
    errors, asked = [], []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(page.as_uri())

    def shown() -> list[str]:
        return [row.get_attribute("data-name") for row in tab.locator("tbody tr:visible").all()]

    hostile = HOSTILE.replace("\ud800", "\\ud800")
    assert tab.title() == "anyshape sweep"
    assert sorted(shown()) == sorted(["alpha", "beta", hostile])
    tab.fill("#text", "PINNED")
    assert shown() == ["beta"]
    assert tab.locator("#count").text_content() == "1 of 3 entries"
    tab.fill("#text", "")
    tab.select_option("#outcome", "refused")
    assert shown() == ["beta"]
    tab.select_option("#column", label="torch")
    assert shown() == ["beta"]
    tab.select_option("#outcome", "wrong")
    assert shown() == ["alpha"]
    tab.select_option("#outcome", "")
    assert sorted(shown()) == ["alpha", "beta"]
    tab.select_option("#column", "")
    tab.select_option("#tag", "]<")
    assert shown() == [hostile]
    tab.select_option("#tag", label="two lines")
    assert shown() == [hostile]
    tab.select_option("#tag", "")
    tab.check("#differ")
    assert sorted(shown()) == sorted(["alpha", hostile])
    tab.uncheck("#differ")
    tab.click("th button >> text=torch")
    assert shown()[:2] == ["alpha", "beta"]
    tab.click("th button >> text=anyshape")
    assert shown()[:2] == ["beta", "alpha"]
    assert asked == [page.as_uri()]
    tab.click("tbody a")
    assert tab.title() == "alpha's report"
    assert errors == []


@pytest.mark.slow
def test_ten_thousand_entries_are_a_page_that_still_answers(tmp_path: Path, browser) -> None:
    records = [
        TaskRecord(f"model {n}", c, "checked" if n % 9 else "refused") for n in range(10_000) for c in ("a", "b")
    ]
    write_page(tmp_path / "results.html", records)
    assert (tmp_path / "results.html").stat().st_size < 10_000_000
    tab = browser.new_page()
    tab.goto((tmp_path / "results.html").as_uri())
    tab.select_option("#outcome", "refused")
    assert tab.locator("#count").text_content() == "1112 of 10000 entries"
