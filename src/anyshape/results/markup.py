"""Results, findings and inspections as HTML: what a notebook shows.

The words are those of `text.py`. A page stands alone: no script, no sheet of styles, nothing from elsewhere. Colours
are laid thinly over what is there, so that they suit a light and a dark page, and none says what no word says. Where
styles are taken off, as on GitHub, it reads the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # the command line imports this file with results: what shows nothing there is imported where it is needed
    from anyshape.results.finding import Finding
    from anyshape.source.edits import Edit

_BOX = "margin:0.4em 0;line-height:1.45;overflow-x:auto"
_FINDING = "margin:0.6em 0;padding:0.1em 0 0.1em 0.8em;border-left:4px solid {colour}"
_COLOURS: Mapping[str, str] = {"error": "rgba(220,60,60,0.8)", "warning": "rgba(210,150,0,0.8)"}
_CAPTION = "caption-side:top;text-align:left;color:inherit;padding:0 0 0.3em 0"
_TABLE = "table-layout:auto;width:100%;border-collapse:collapse;border:none;margin:0.3em 0;font-size:inherit"
_CELL = "text-align:left;vertical-align:top;border:none;background:none;padding:0.1em 1em 0.1em 0;white-space:{space}"
_LABEL = f"{_CELL.format(space='nowrap')};width:1%;font-weight:600;opacity:0.75"
_TEXT = f"{_CELL.format(space='pre-wrap')};width:99%;max-width:0;overflow-wrap:anywhere"
"""As wide as the page: a long line of code is scrolled by itself."""
_PARAGRAPH = "margin:0.3em 0"
_CODE = "font-family:monospace;color:inherit;background:rgba(128,128,128,0.14);padding:0 0.2em;border-radius:3px"
_PORT = "font-family:monospace;color:inherit;background:none;padding:0;white-space:pre-wrap"
_BLOCK = (
    "font-family:monospace;color:inherit;background:rgba(128,128,128,0.1);border:none;border-radius:3px;"
    "margin:0.3em 0;padding:0.4em 0.6em;line-height:1.35;overflow-x:auto;white-space:pre"
)
_LINE = "text-decoration:none;color:inherit;background:{colour}"
_CHANGES: Mapping[str, tuple[str, str]] = {"-": ("del", "rgba(220,60,60,0.18)"), "+": ("ins", "rgba(50,170,80,0.2)")}


class ShownInNotebooks:
    """A value with a headline that a notebook shows as HTML, everything else as its text; its `repr` is one line."""

    @property
    def headline(self) -> str:
        raise NotImplementedError

    def __repr__(self) -> str:
        return one_line(self, self.headline)

    def _repr_html_(self) -> str:
        raise NotImplementedError

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        del include, exclude  # IPython takes what it wants of these
        return {"text/plain": str(self), "text/html": self._repr_html_()}


def one_line(value: object, text: str) -> str:
    """A `repr`: what it is, and the words that stand alone."""
    return f"<{type(value).__name__} {' '.join(text.split())}>"


# ---- parts of a page


def box(*parts: str) -> str:
    """Parts one below the other, as one output."""
    return f'<div style="{_BOX}">{"".join(parts)}</div>'


def paragraph(text: str) -> str:
    return f'<p style="{_PARAGRAPH}">{_text_with_code(text)}</p>'


def table(headline: str, rows: Iterable[tuple[str, str]]) -> str:
    """Facts below a headline."""
    head, colon, rest = headline.partition(":")
    caption = f'<caption style="{_CAPTION}"><strong>{_safe_text(head)}</strong>{colon}{_text_with_code(rest)}</caption>'
    return _table(caption, [(label, _fact(label, text)) for label, text in rows])


def findings_part(findings: Sequence[Finding]) -> str:
    """Findings one below the other; then each cell with all its changes, which its author copies."""
    from anyshape.source.edits import combined

    edits = combined(one.edit for one in findings if one.edit is not None and one.edit.is_in_cell)
    return "".join([*map(_finding_part, findings), *map(_cell_to_copy, edits)])


def _cell_to_copy(edit: Edit) -> str:
    alone = len(edit.changes) == 1
    changes = "this change" if alone else f"these {len(edit.changes)} changes"
    unsafe = "" if edit.safe else ", which is unsafe" if alone else ", not all safe"
    what = _text_with_code(f"`{edit.name}` with {changes}{unsafe}, to copy")
    return f"<details><summary>{what}</summary>{_block(_safe_text(edit.typed_source))}</details>"


def _finding_part(finding: Finding) -> str:
    """Headline, place, underlined line, notes, the edit and helps."""
    from anyshape.results.text import quoted_line

    kind = f"<strong>{_safe_text(f'{finding.level}[{finding.rule}]')}</strong>"
    place = _text_with_code(f"`{finding.span}`")
    head = f'<p style="{_PARAGRAPH}">{kind}: {_text_with_code(finding.message)}<br>{place}</p>'
    number, quoted = str(finding.span.line), quoted_line(finding)
    margin = " " * len(number)
    line = "" if quoted is None else _block(_safe_text(f"{number} | {quoted[0]}\n{margin} | {quoted[1]}"))
    rows = [("note", _paragraphs(note)) for note in finding.notes]
    rows += [] if finding.edit is None else [("help", _edit_part(finding.edit))]
    rows += [("help", _paragraphs(text)) for text in finding.helps]
    style = _FINDING.format(colour=_COLOURS[finding.level])
    return f'<div style="{style}">{head}{line}{_table("", rows)}</div>'


def _edit_part(edit: Edit) -> str:
    """What is done, how it was tried, and what changes line by line."""
    from anyshape.results.text import edit_rows, trial_of

    how = trial_of(edit)
    head = _text_with_code(f"{edit.title}   [{how}]" if how else edit.title)
    return head + _block("\n".join(_changed_line(*row) for row in edit_rows(edit)))


def _changed_line(sign: str, text: str) -> str:
    tag, colour = _CHANGES[sign]
    return f'<{tag} style="{_LINE.format(colour=colour)}">{_safe_text(f"{sign} {text}")}</{tag}>'


def _fact(label: str, text: str) -> str:
    """One fact; names and types of inputs and outputs stand below each other."""
    if label in ("input", "output"):
        return f'<code style="{_PORT}">{_safe_text(text)}</code>'
    return _text_with_code(text)


def _paragraphs(text: str) -> str:
    """A sentence, and below it the lines of code that it speaks of."""
    first, _, rest = text.partition("\n")
    return _text_with_code(first) + (_block(_safe_text(rest)) if rest else "")


def _table(caption: str, rows: Sequence[tuple[str, str]]) -> str:
    """Rows of a label, which is text, and of HTML."""
    if not rows and not caption:
        return ""
    lines = (
        f'<tr style="background:none"><th scope="row" style="{_LABEL}">{_safe_text(label)}</th>'
        f'<td style="{_TEXT}">{inner}</td></tr>'
        for label, inner in rows
    )
    return f'<table style="{_TABLE}">{caption}<tbody>{"".join(lines)}</tbody></table>'


def _block(inner: str) -> str:
    return f'<pre style="{_BLOCK}">{inner}</pre>'


# ---- text, which may be anybody's


_UNSEEN = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069]")
"""Control characters, and those that turn what follows them round."""


def _safe_text(text: str) -> str:
    """Text that comes from a model, a file or a source, and is nothing but text on the page."""
    from html import escape

    return escape(_UNSEEN.sub("\ufffd", text))


def _text_with_code(text: str) -> str:
    """The same with names, which stand in backticks, set as code."""
    return re.sub(r"`([^`\n]+)`", rf'<code style="{_CODE}">\1</code>', _safe_text(text))
