"""Functions of torch answered by others, wherever they are called from during a trace.

A name is replaced where it stands (`F.avg_pool2d`), which torch's own functions see, too; and calls of the function
itself are answered, which reaches code that imported it under a name of its own.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from anyshape.torchkit.patches import Answering, patched

Answer = Callable[..., Any]
"""Called like the function it answers for; NotImplemented where torch shall do it."""


@contextlib.contextmanager
def answered(answers: Mapping[tuple[Any, str], Answer]) -> Iterator[None]:
    """Inside, calls of `owner.name` go to the answer first."""
    known = {place: answer for place, answer in answers.items() if hasattr(*place)}
    with contextlib.ExitStack() as stack:
        by_function = {getattr(owner, name): answer for (owner, name), answer in known.items()}
        for (owner, name), answer in known.items():
            stack.enter_context(patched(owner, name, _first(answer, getattr(owner, name))))
        stack.enter_context(Answering(by_function))
        yield


def _first(answer: Answer, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(otherwise)
    def function(*args: Any, **kwargs: Any) -> Any:
        result = answer(*args, **kwargs)
        return otherwise(*args, **kwargs) if result is NotImplemented else result

    return function
