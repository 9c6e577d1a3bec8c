"""A span: a place in the user's source, counted as people count, and as the compiler knows it."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from types import CodeType


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


Extent = tuple[int | None, int | None, int | None, int | None]
"""First line, last line, first byte, byte after the last; None where the compiler noted nothing."""


def extent_of(code: CodeType, instruction: int) -> Extent:
    """Where an instruction (`f_lasti`, `tb_lasti`) stands."""
    return next(itertools.islice(code.co_positions(), instruction // 2, None), (None, None, None, None))


def characters_before(text: str, offset: int) -> int:
    """Columns are counted in bytes by the compiler, in characters by people."""
    return len(text.encode()[:offset].decode(errors="replace"))
