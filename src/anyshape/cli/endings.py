"""How a command ends: the exit code, what is printed, and what `--json` says.

0 done, 1 `check` or `diagnose` says no, 2 wrong usage, 3 `export` or `make-dynamic` wrote nothing, 4 our own bug;
130 and 143 for Ctrl-C and SIGTERM.
"""

from __future__ import annotations

import errno
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from anyshape.errors import AnyshapeError, DeclarationError, SavingError
from anyshape.results.result import ExportError

if TYPE_CHECKING:
    from anyshape.results.attempt import Attempt


DONE, SAYS_NO, USAGE, NOTHING_WRITTEN, BUG, INTERRUPTED, TERMINATED = 0, 1, 2, 3, 4, 130, 143
PACKAGES = ("torch", "onnxscript", "onnxruntime")
"""What the extras install; `anyshape` alone is a right installation, so their absence is no bug."""
_OF_THE_SYSTEM = {errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.EFBIG}
"""A full disk or a missing permission is nobody's bug; another error of the system in our own code is ours."""


class Terminated(SystemExit):
    """SIGTERM, turned into an exception so that temporary folders vanish."""


@dataclass(frozen=True)
class Ending:
    """What a command leaves behind: a result, or an error."""

    code: int
    text: str
    """The result, or one sentence about the error."""
    document: dict[str, Any]
    is_result: bool = True
    error: BaseException | None = field(default=None, repr=False)
    attempts: tuple[Attempt, ...] = ()
    """What the strategies did, for `--debug`."""
    summary: str = ""
    """What stderr tells beside a JSON document; without one, the first line of the text."""

    @property
    def headline(self) -> str:
        return self.summary or self.text.splitlines()[0]


def done(result: Any) -> Ending:
    """The ending of a command that does what it was asked for."""
    return Ending(DONE, str(result), result.to_dict(), attempts=getattr(result, "attempts", ()))


def ending_of(error: BaseException, *, refusal: int) -> Ending:
    """The ending that an exception means; `refusal` is the code where the model or the file is to blame."""
    if isinstance(error, ExportError):
        return Ending(refusal, str(error), error.result.to_dict(), error=error, attempts=error.result.attempts)
    code, kind, sentence = _code_kind_and_sentence(error, refusal)
    return Ending(code, sentence, error_document(kind, sentence), is_result=False, error=error)


def _code_kind_and_sentence(error: BaseException, refusal: int) -> tuple[int, str, str]:
    match error:
        case DeclarationError():
            judged = USAGE, "declaration", str(error)
        case SavingError():
            judged = refusal, "system", str(error)
        case AnyshapeError():
            judged = USAGE, "environment", str(error)
        case ModuleNotFoundError(name=str(name)) if name.split(".")[0] in PACKAGES:
            judged = USAGE, "environment", f"{name} is not installed: pip install 'anyshape[cpu]' (or 'anyshape[gpu]')"
        case OSError() if error.errno in _OF_THE_SYSTEM:
            judged = refusal, "system", f"the system refuses: {error}"
        case KeyboardInterrupt() | click.Abort():
            judged = INTERRUPTED, "interrupted", "stopped"
        case Terminated():
            judged = TERMINATED, "interrupted", "terminated"
        case SystemExit():
            judged = USAGE, "declaration", "the model's own code ended the program with sys.exit"
        case _:
            said = " ".join(f"{type(error).__name__}: {error}".split())
            judged = BUG, "bug", f"this is a bug in anyshape: {said}; --debug shows the traceback"
    return judged


def error_document(kind: str, message: str) -> dict[str, Any]:
    return {"error": {"kind": kind, "message": message}}


def for_debug(ending: Ending) -> Iterator[str]:
    """For `--debug`: what every strategy did beyond the ordinary, or the traceback of the error."""
    for attempt in ending.attempts:
        if attempt.forced_by:
            yield f"---- {attempt.strategy}: all in simpler operators because of {', '.join(attempt.forced_by)}"
        if attempt.inlined:
            yield f"---- {attempt.strategy}: in simpler operators {', '.join(attempt.inlined)}"
        if attempt.error is not None:
            yield f"---- {attempt.strategy}\n{''.join(traceback.format_exception(attempt.error))}"
    if ending.error is not None and not isinstance(ending.error, ExportError):
        yield "".join(traceback.format_exception(ending.error))
