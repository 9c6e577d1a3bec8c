"""What a repair is, and how several are put on for the time of a trace and taken off again."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol


class Used(Protocol):
    """Called by a repair when it acts, with the sentence for the result: `nn.RNN: native ONNX operators`."""

    def __call__(self, sentence: str, /, suspects: Iterable[int] = ()) -> None:
        """`suspects` are sizes at which the repair may not hold: the check runs them."""


@dataclass(frozen=True)
class Repair:
    """A replacement that keeps results and frees sizes, put on only while torch traces the model."""

    name: str
    apply: Callable[[Used], AbstractContextManager[None]]
    """Puts the replacement on; leaving the context takes it off, whatever happened."""
    always: bool = False
    """Whether it is always right and as fast as the plain way; others wait until the plain way has failed."""


@dataclass
class Acted:
    """What the repairs of one trace did."""

    sentences: list[str] = field(default_factory=list)
    beyond_the_plain_way: bool = False
    """Whether one acted that is not always on."""
    suspects: set[int] = field(default_factory=set)
    """Sizes at which one of them may not hold."""

    def note(self, sentence: str) -> None:
        if sentence not in self.sentences:
            self.sentences.append(sentence)


@contextlib.contextmanager
def applied(repairs: Iterable[Repair]) -> Iterator[Acted]:
    """Inside, the repairs are on."""
    acted = Acted()

    def used(repair: Repair, sentence: str, /, suspects: Iterable[int] = ()) -> None:
        acted.beyond_the_plain_way |= not repair.always
        acted.suspects.update(suspects)
        acted.note(sentence)

    with contextlib.ExitStack() as stack:
        for repair in repairs:
            stack.enter_context(repair.apply(partial(used, repair)))
        yield acted
