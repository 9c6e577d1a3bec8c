"""A finding: what anyshape tells about one expression. A value, never only text."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from anyshape.results.markup import ShownInNotebooks, box, findings_part, one_line, paragraph
from anyshape.source.edits import Edit, combined
from anyshape.source.spans import Span

if TYPE_CHECKING:
    from anyshape.results.result import Result

Level = Literal["error", "warning"]
Origin = Literal["model", "export"]
_LISTS = ("notes", "helps", "dims")
"""What JSON has as lists."""


@dataclass(frozen=True, repr=False)
class Finding(ShownInNotebooks):
    """What is wrong (`message`), where (`span`), why (`notes`) and what to do (`helps`, `edit`).

    >>> (finding,) = anyshape.diagnose(lambda x: x.view(2, 3), torch.randn(2, 3), dims={"x": "batch 3"})
    >>> finding.rule, finding.dims, finding.breaks_at
    ('pinned-dim', ('batch',), {'batch': 1})
    """

    rule: str
    """Its kind, as `anyshape explain` has it: `pinned-dim`."""
    message: str
    """What is wrong."""
    span: Span
    """The place in the source: `path`, `line`, `column`, `function`."""
    label: str = ""
    """What stands behind the underlined expression."""
    notes: tuple[str, ...] = ()
    """Facts, a sentence each."""
    helps: tuple[str, ...] = ()
    """What to change."""
    level: Level = "error"
    """`error`, or `warning` where PyTorch runs but the code looks wrong."""
    dims: tuple[str, ...] = ()
    """The declared dims that it is about."""
    origin: Origin = "model"
    """Whether PyTorch itself is limited, or the export alone."""
    breaks_at: Mapping[str, int] | None = None
    """The smallest sizes found at which it shows."""
    edit: Edit | None = field(default=None, compare=False)
    """A change of the source that was tried before it is shown."""

    @property
    def headline(self) -> str:
        """The first line, which stands alone."""
        return f"{self.level}[{self.rule}]: {self.message}"

    def __str__(self) -> str:
        from anyshape.results.text import render_finding

        return render_finding(self)

    def __repr__(self) -> str:
        return one_line(self, f"{self.headline} at {self.span}")

    def _repr_html_(self) -> str:
        return box(findings_part([self]))

    def to_dict(self) -> dict[str, Any]:
        """Everything, as plain values for JSON."""
        return {
            **{one.name: getattr(self, one.name) for one in dataclasses.fields(self)},
            "span": dataclasses.asdict(self.span),
            **{name: list(getattr(self, name)) for name in _LISTS},
            "breaks_at": None if self.breaks_at is None else dict(self.breaks_at),
            "edit": None if self.edit is None else self.edit.to_dict(),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Finding:
        """The finding that `to_dict` wrote."""
        edit = values.get("edit")
        lists = {name: tuple(values[name]) for name in _LISTS}
        span, its_edit = Span(**values["span"]), None if edit is None else Edit.from_dict(edit)
        return cls(**{**values, **lists, "span": span, "edit": its_edit})

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=2)

    @classmethod
    def from_json(cls, text: str) -> Finding:
        return cls.from_dict(json.loads(text))


class Findings(list[Finding], ShownInNotebooks):
    """A list of findings that prints as its findings do, one below the other."""

    result: Result | None = None
    """What `diagnose` found them in: `findings.result.report("report.html")` shows it."""

    def __str__(self) -> str:
        return "\n\n".join(map(str, self)) or "no findings"

    def _repr_html_(self) -> str:
        return box(findings_part(self) if self else paragraph("no findings"))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What IPython prints: it has a way of its own for lists, which goes before their text."""
        del cycle
        printer.text(str(self))


def usable_edits(findings: Iterable[Finding]) -> list[Edit]:
    """The edits that mend every error, one for each file; empty where one has none, or none that is safe."""
    edits = [finding.edit for finding in findings if finding.level == "error"]
    safe = [edit for edit in edits if edit is not None and edit.safe]
    return combined(safe) if len(safe) == len(edits) else []
