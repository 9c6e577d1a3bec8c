"""A site: where the model's own code stands at a moment, with the names that it knows there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

from anyshape.results.finding import Span
from anyshape.source.stacks import is_outer, is_users, span_of_code


@dataclass(frozen=True)
class Site:
    """One instruction of the model's code, and the values of its names when it ran."""

    code: CodeType
    instruction: int
    line: int
    names: Mapping[str, Any] = field(compare=False, repr=False)
    globals: Mapping[str, Any] = field(compare=False, repr=False)
    caller: Site | None = field(default=None, compare=False, repr=False)
    """The next place of the model's further out."""

    @property
    def span(self) -> Span:
        return span_of_code(self.code, self.instruction, self.line)


def site_of_error(error: BaseException) -> Site | None:
    """The innermost place of the model's that an exception passed through."""
    found: Site | None = None
    step = error.__traceback__
    while step is not None:
        code = step.tb_frame.f_code
        if is_users(code.co_filename):
            found = Site(code, step.tb_lasti, step.tb_lineno, {}, step.tb_frame.f_globals, found)
        step = step.tb_next
    return found


def site_of_stack(frame: FrameType | None) -> Site | None:
    """The innermost place of the model's, seen from `frame` outwards, with those further out behind it."""
    users: list[FrameType] = []
    while frame is not None and not is_outer(frame.f_code.co_filename):
        if is_users(frame.f_code.co_filename):
            users.append(frame)
        frame = frame.f_back
    site: Site | None = None
    for one in reversed(users):
        site = Site(one.f_code, one.f_lasti, one.f_lineno, dict(one.f_locals), one.f_globals, site)
    return site
