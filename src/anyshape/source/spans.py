"""anyshape.source.spans."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """A place in the user's source; lines and columns count from 1, columns in characters."""

    path: str
    line: int
    column: int = 1
    end_line: int | None = None
    end_column: int | None = None
    function: str = ""

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}:{self.column}"
        return f"{place} in {self.function}" if self.function else place
