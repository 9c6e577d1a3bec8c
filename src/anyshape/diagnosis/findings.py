"""A finding: what anyshape tells about one expression. A value, never only text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Span:
    """A place in the user's source; lines and columns count from 1, columns in characters."""

    file: str
    line: int
    column: int = 1
    end_line: int | None = None
    end_column: int | None = None
    function: str = ""

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}"
        return f"{place} in {self.function}" if self.function else place


@dataclass(frozen=True)
class Finding:
    """What is wrong (`message`), where (`span`), why (`notes`) and what to do (`helps`)."""

    rule: str
    message: str
    span: Span
    label: str = ""
    """What stands behind the underlined expression."""
    notes: tuple[str, ...] = ()
    helps: tuple[str, ...] = ()
    level: Literal["error", "warning"] = "error"

    @property
    def headline(self) -> str:
        """The first line, which stands alone."""
        return f"{self.level}[{self.rule}]: {self.message}"

    def __str__(self) -> str:
        from anyshape.report.text import render_finding

        return render_finding(self)
