"""The page of a rule as HTML, for the place where a finding of that rule stands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby

from markupsafe import Markup, escape

from anyshape.results.explanations import page_of


def rule_page(rule: str) -> Markup:
    """What a rule means and what to do, without its name, which stands above it already."""
    lines = page_of(rule).split("\n")
    return Markup("\n").join(_blocks([line for line in lines if not line.startswith("# ")]))


def _blocks(lines: list[str]) -> Iterator[Markup]:
    """Headings, paragraphs, lists and code: all that these pages have."""
    text = "\n".join(lines)
    for index, part in enumerate(re.split(r"```\w*\n(.*?)```\n?", text, flags=re.DOTALL)):
        if index % 2:
            yield Markup("<pre><code>{}</code></pre>").format(part.rstrip("\n"))
            continue
        for block in filter(str.strip, re.split(r"\n\s*\n", part)):
            yield from _prose(block.strip("\n"))


def _prose(block: str) -> Iterator[Markup]:
    for is_item, lines in groupby(block.split("\n"), key=lambda line: line.startswith(("- ", "  "))):
        joined = "\n".join(lines)
        if is_item:
            items = re.split(r"(?:^|\n)- ", joined)[1:]
            yield Markup("<ul>{}</ul>").format(
                Markup("").join(Markup("<li>{}</li>").format(_inline(item)) for item in items)
            )
        elif joined.startswith("## "):
            yield Markup("<h4>{}</h4>").format(joined[3:])
        else:
            yield Markup("<p>{}</p>").format(_inline(joined))


def _inline(text: str) -> Markup:
    """Code in backticks; what a link says, since the page that it leads to is not here."""
    plain = re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", " ".join(text.split()))
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(plain))))  # noqa: S704  it is escaped
