"""What a repair is, and how several are put on for the time of a trace and taken off again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

Used = Callable[[str], None]
"""Called by a repair when it acts, with the sentence for the result: `nn.RNN: native ONNX operators`."""


@dataclass(frozen=True)
class Repair:
    """A replacement that keeps results and frees sizes, put on only while torch traces the model."""

    name: str
    apply: Callable[[Used], AbstractContextManager[None]]
    """Puts the replacement on; leaving the context takes it off, whatever happened."""
    always: bool = False
    """Whether it is always right and as fast as the plain way; others wait until the plain way has failed."""


@contextlib.contextmanager
def applied(repairs: Iterable[Repair]) -> Iterator[list[str]]:
    """Inside, the repairs are on; what is given lists, each once, the sentences of those that acted."""
    sentences: list[str] = []

    def used(sentence: str) -> None:
        if sentence not in sentences:
            sentences.append(sentence)

    with contextlib.ExitStack() as stack:
        for repair in repairs:
            stack.enter_context(repair.apply(used))
        yield sentences
