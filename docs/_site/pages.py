"""What the site adds to the pages of `docs/`: the sidebar, from the lists of `docs/index.md`, and reports."""

from __future__ import annotations

import posixpath
import re
import tomllib
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
REPORTS = ROOT / "build/reports"
"""Where `gallery.py` puts what it makes: `site/reports/NAME.html`, and the first line of the result in `NAME.txt`."""
OF_THE_PROJECT = ("CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md")


def version() -> str:
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])


def made_reports() -> list[str]:
    return [str(REPORTS / "site")] if REPORTS.exists() else []


def complete(app: Any, name: str, source: list[str]) -> None:
    """A page as Sphinx gets it: with its place in the sidebar and the reports that its comments ask for."""
    del app
    text = re.sub(r"^<!-- report: (\w+) -->$", lambda found: embedded(found[1]), source[0], flags=re.MULTILINE)
    if name == "docs/index":
        text += sidebar(text)
    elif name.endswith("/index"):
        text += _toctree("", "docs/maintainers", re.findall(r"\]\((\w+\.md)\)", text))
    source[0] = text


def sidebar(index: str) -> str:
    """A toctree for each heading with a list of pages below it, and the pages in the order of the list."""
    parts = re.split(r"^## (.*)$", index, flags=re.MULTILINE)
    lists = zip(parts[1::2], map(listed, parts[2::2]), strict=True)
    return "".join(_toctree(title, "docs", links) for title, links in lists if links)


def listed(part: str) -> list[str]:
    """The pages to which the items of lists and the first cells of tables link."""
    return re.findall(r"^(?:- |\| )\[[^]]*\]\(([\w./-]+\.md)\)", part, flags=re.MULTILINE)


def _toctree(title: str, folder: str, links: list[str]) -> str:
    """`../SECURITY.md` of `docs` is `/SECURITY` to Sphinx."""
    entries = "".join(f"{posixpath.normpath(f'/{folder}/{link}').removesuffix('.md')}\n" for link in links)
    caption = f":caption: {title}\n" if title else ""
    return f"\n```{{toctree}}\n:hidden:\n{caption}\n{entries}```\n"


def embedded(name: str) -> str:
    """A report in a frame, or nothing where it was not made."""
    if not (REPORTS / f"site/reports/{name}.html").exists():
        return ""
    title = escape((REPORTS / f"{name}.txt").read_text(encoding="utf-8").strip())
    link = f"../reports/{name}.html"
    return (
        f'<div class="report"><iframe src="{link}" title="{title}" loading="lazy"></iframe>'
        f'<p><a href="{link}">{title}</a>, in a page of its own</p></div>'
    )
