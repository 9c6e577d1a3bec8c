"""The page of a report: one HTML file with its style, its script and its data inside, and nothing from elsewhere.

Names, paths and source lines are anybody's: the template escapes them, the data stand in an inert block in ASCII
without a `<`, and the browser is told to run two scripts alone, by their digests.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

from anyshape.costs.written_formulas import write_condition
from anyshape.results.report.document import rules_of
from anyshape.results.report.rule_pages import rule_page
from anyshape.sizes import budgets
from anyshape.sizes.spelling import without_controls

if TYPE_CHECKING:
    from anyshape.results.report.document import ReportDocument


def render_page(document: ReportDocument) -> str:
    """The whole page; the same document gives the same text."""
    rows = document.to_dict()
    style, script, formulas = _packaged_text("style.css"), _packaged_text("script.js"), _formulas_script(document)
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; "
        f"style-src {_digest(style)}; script-src {_digest(formulas)} {_digest(script)}"
    )
    return _environment().from_string(_packaged_text("page.html.j2")).render(
        document=_without_controls(rows),
        rules={rule: rule_page(rule) for rule in rules_of(document.result.findings)},
        policy=Markup(policy),  # noqa: S704  our own words
        style=Markup(style),  # noqa: S704
        formulas=Markup(formulas),  # noqa: S704
        script=Markup(script),  # noqa: S704
        data=Markup(_inert(_for_script(rows))),  # noqa: S704  nothing in it can end the block
    )  # fmt: skip


def _packaged_text(name: str) -> str:
    return (files("anyshape.results.report") / name).read_text(encoding="utf-8")


def _environment() -> Environment:
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["prose"] = _prose
    environment.filters["sizes"] = _sizes_text
    return environment


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# ---- texts


def _without_controls(value: Any) -> Any:
    """The same values without characters that control how text around them is shown, and without books."""
    if isinstance(value, str):
        most = budgets.LONGEST_TEXT_OF_A_PAGE
        return without_controls(value if len(value) <= most else f"{value[:most]}…")
    if isinstance(value, Mapping):
        return {_without_controls(key): _without_controls(one) for key, one in value.items()}
    return [_without_controls(one) for one in value] if isinstance(value, (list, tuple)) else value


def _prose(text: str) -> Markup:
    """A sentence with names, which stand in backticks, set as code."""
    return Markup(re.sub(r"`([^`\n]+)`", r"<code>\1</code>", str(escape(text))))  # noqa: S704  it is escaped


def _sizes_text(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{dim} = {size}" for dim, size in sizes.items())


# ---- data


def _for_script(rows: Mapping[str, Any]) -> dict[str, Any]:
    """What the script asks for; patches are copied as they are, all else is shown and so cleaned."""
    findings = rows["findings"]
    diffs = [None if one["edit"] is None else one["edit"]["diff"] for one in findings]
    shown = ("file", "map", "costs", "graph", "times")
    return {**_without_controls({name: rows[name] for name in shown}), "diffs": diffs}


def _inert(rows: Any) -> str:
    """JSON in ASCII that neither ends its block nor begins a comment in it."""
    text = json.dumps(rows, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


# ---- formulas, as the functions that the sliders call


_FORMULA = re.compile(
    r"(?:\s|d\[\d+\]|\d++(?:\.\d++)?|Math\.(?:floor|ceil|min|max|pow|abs)\(|[-+*%(),?:]|/(?![/*])|[<>]=?|[=!]==?"
    r"|&&?|\|\|?|\^|!|true|false)*"
)
"""What a formula may hold: sizes, numbers, arithmetic and comparisons."""


def _formulas_script(document: ReportDocument) -> str:
    costs, sizes = document.costs or {"expressions": (), "relations": ()}, document.size_map
    parts = {
        "expressions": [one["js"] for one in costs["expressions"]],
        "relations": [one["js"] for one in costs["relations"]],
        "excluded": [write_condition(one.condition, list(sizes.dims)).js for one in sizes.relations],
    }
    functions = (f"{name}:d=>[{','.join(_allowed_formulas(texts))}]" for name, texts in parts.items())
    return f"const anyshapeFormulas={{{','.join(functions)}}};"


def _allowed_formulas(texts: Sequence[str]) -> list[str]:
    """Formulas come from parsed expressions; that they are nothing else is asked once more where they become code."""
    strange = [text for text in texts if not _FORMULA.fullmatch(text)]
    assert not strange, f"no formula: {strange[0]}"
    return list(texts)
