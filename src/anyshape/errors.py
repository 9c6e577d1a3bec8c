"""What anyshape raises.

AnyshapeError
    DeclarationError    the call was wrong: one sentence that names both sides
    ExportError         no file could be written, or a file is not right; carries the result and its findings
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anyshape.results.finding import Finding
    from anyshape.results.result import Result


class AnyshapeError(Exception):
    """The root of all errors that anyshape raises on purpose."""


class DeclarationError(AnyshapeError, ValueError):
    """What was declared contradicts itself, the example or the model's signature."""


class ExportError(AnyshapeError):
    """Nothing was written, or the checked file is wrong; `result` says why."""

    def __init__(self, result: Result) -> None:
        super().__init__(str(result))
        self.result = result

    @property
    def findings(self) -> tuple[Finding, ...]:
        return self.result.findings


def first_line(error: BaseException | None) -> str:
    """The first line of what an exception says, or nothing."""
    return (str(error).splitlines() or [""])[0]
