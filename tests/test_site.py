"""The site that `make site` builds: every page has its place, nothing is fetched, and a search finds what is there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "docs/_site"))

import pages  # noqa: E402  the folder is no package

INDEX = (ROOT / "docs/index.md").read_text(encoding="utf-8")


# ---- the sidebar


def test_the_index_lists_every_page_once() -> None:
    links = pages.listed(INDEX)
    found = [(ROOT / "docs" / link).resolve() for link in links]
    written = {*(ROOT / "docs").glob("*.md"), *(ROOT / "docs/rules").glob("*.md")} - {ROOT / "docs/index.md"}
    further = {ROOT / name for name in pages.OF_THE_PROJECT} | {ROOT / "docs/maintainers/index.md"}
    assert sorted(found) == sorted(written | further)


def test_the_page_for_maintainers_lists_those_beside_it() -> None:
    folder = ROOT / "docs/maintainers"
    source = [(folder / "index.md").read_text(encoding="utf-8")]
    pages.complete(None, "docs/maintainers/index", source)
    entries = re.findall(r"^/docs/maintainers/(\w+)$", source[0], flags=re.MULTILINE)
    assert sorted(entries) == sorted(page.stem for page in folder.glob("*.md") if page.stem != "index")


def test_the_sidebar_has_these_parts_in_this_order() -> None:
    captions = re.findall(r"^:caption: (.*)$", pages.sidebar(INDEX), flags=re.MULTILINE)
    assert captions == ["Start", "Guides", "Reference", "How it works", "Maintainers", "The rules"]


def test_a_page_outside_of_the_folder_gets_its_own_name() -> None:
    assert "\n/SECURITY\n" in pages.sidebar("## Reference\n\n- [Security](../SECURITY.md): it\n")


# ---- reports


def test_a_report_is_shown_where_it_was_made_and_nothing_where_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "REPORTS", tmp_path)
    source = ["before\n<!-- report: small -->\nafter\n"]
    pages.complete(None, "docs/gallery", source)
    assert source == ["before\n\nafter\n"]
    (tmp_path / "site/reports").mkdir(parents=True)
    (tmp_path / "site/reports/small.html").write_text("<p>report</p>")
    (tmp_path / "small.txt").write_text('checked: "a<b".onnx')
    source = ["<!-- report: small -->\n"]
    pages.complete(None, "docs/gallery", source)
    assert 'src="../reports/small.html" title="checked: &quot;a&lt;b&quot;.onnx"' in source[0]


def test_every_report_of_a_page_is_made_by_the_gallery_and_shown() -> None:
    made = re.search(r"^SHOWN: .* = \((.*)\)$", (ROOT / "docs/_site/gallery.py").read_text(), flags=re.MULTILINE)
    assert made is not None
    gallery = (ROOT / "docs/gallery.md").read_text(encoding="utf-8")
    assert re.findall(r"^<!-- report: (\w+) -->$", gallery, flags=re.MULTILINE) == made[1].split(", ")
    assert re.findall(r"^<!-- report: (\w+) -->$", INDEX, flags=re.MULTILINE) == ["demo"]


# ---- links to elsewhere, which are not followed


def test_links_to_elsewhere_are_whole_and_safe() -> None:
    texts = [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]
    links = [link for page in texts for link in re.findall(r"\]\((\w+:[^)\s]*)\)", page.read_text(encoding="utf-8"))]
    assert len(links) > 50
    bad = [link for link in links if urlsplit(link).scheme != "https" or "." not in urlsplit(link).netloc]
    assert bad == []


def test_the_questions_are_real_ones() -> None:
    parts = re.split(r"^### ", (ROOT / "docs/faq.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    cited = [part for part in parts if re.search(r"\nAsked [^.]*https://github\.com/", part)]
    assert len(cited) >= 25


# ---- the built site


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = ("-b", "html", "-c", "docs/_site", "-d", folder / "doctrees", "-n", "-W", "--keep-going", "-q", ".")
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", *command, folder / "html"],
        cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "NO_COLOR": "1"},
    )  # fmt: skip
    assert (built.returncode, built.stderr) == (0, "")
    return folder / "html"


@pytest.mark.slow
def test_every_page_is_there_and_links_lead_somewhere(site: Path) -> None:
    written = {page.stem for page in (ROOT / "docs").glob("*.md")}
    assert written == {page.stem for page in (site / "docs").glob("*.html")}
    for page in site.rglob("*.html"):
        for link in re.findall(r'<a [^>]*href="([^"#]+)', page.read_text(encoding="utf-8")):
            if not urlsplit(link).scheme:
                assert (page.parent / link).exists(), f"{page.name}: {link}"


@pytest.mark.slow
def test_a_page_loads_nothing_of_others(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|link|img|iframe)\b[^>]*(?:src|href)="([^"]*)"', text)
        assert [link for link in loaded if urlsplit(link).scheme not in ("", "data")] == [], page.name


@pytest.fixture
def browser() -> Iterator[object]:
    from playwright.sync_api import sync_playwright

    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("no Chromium to look at pages with")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.mark.slow
@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_open_without_errors_and_without_a_network(site: Path, browser, width: int, scheme: str) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    said, asked = [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto((site / "index.html").as_uri())
    page.wait_for_url((site / "docs/index.html").as_uri())  # the first page lies in the folder of the others
    for name in ("docs/index", "docs/tutorial", "docs/api", "docs/faq", "docs/gallery", "docs/operators"):
        page.goto((site / f"{name}.html").as_uri())
        page.wait_for_load_state()
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), f"{name} is too wide"
    is_white = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert is_white == (scheme == "light")
    assert said == []
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


@pytest.mark.slow
def test_the_search_finds_a_rule(site: Path, browser) -> None:
    page = browser.new_page()
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto((site / "docs/index.html").as_uri())
    page.fill("input[name=q]", "pinned-dim")
    page.press("input[name=q]", "Enter")
    page.wait_for_selector("#search-results ul.search a")
    assert "pinned-dim" in page.inner_text("#search-results")
    page.click("#search-results a[href*='rules/pinned-dim']")
    assert page.inner_text("h1").startswith("pinned-dim")
    assert said == []


@pytest.mark.slow
def test_the_map_of_sizes_is_what_its_program_draws(tmp_path: Path) -> None:
    drawn = tmp_path / "map.svg"
    subprocess.run([sys.executable, ROOT / "docs/_site/map_of_sizes.py", drawn], check=True, capture_output=True)
    assert drawn.read_text(encoding="utf-8") == (ROOT / "docs/map_of_sizes.svg").read_text(encoding="utf-8")
