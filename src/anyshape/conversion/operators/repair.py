"""What a repair is: a replacement for the time of a trace; how several are put on, and taken off again.

What runs at every size in PyTorch should export as it is. Each family's file says what its repairs recognise, what they
put there, and why that is the same.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import torch
from torch.fx.experimental import symbolic_shapes

from anyshape.torchkit.patches import Answering, patched
from anyshape.torchkit.private_names import lookup


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


# ---- functions of torch answered by others

Answer = Callable[..., Any]
"""Called like the function it answers for; NotImplemented where torch shall do it."""


@contextlib.contextmanager
def answered(answers: Mapping[tuple[Any, str], Answer]) -> Iterator[None]:
    """Inside, calls of `owner.name` go to the answer first, wherever they come from."""
    known = {place: answer for place, answer in answers.items() if hasattr(*place)}
    by_function = {getattr(*place): answer for place, answer in known.items()}
    # by its name the function is found by torch's own code, too
    by_name = ((*place, _answered_first(answer, getattr(*place))) for place, answer in known.items())
    # by itself it is found by code that has imported it under a name of its own
    with all_patched(by_name), Answering(by_function):
        yield


def answering(answers: Mapping[tuple[Any, str], Answer]) -> Callable[[Used], AbstractContextManager[None]]:
    """What puts a repair on that consists of such answers; each is given `used` before the arguments of the call."""
    return lambda used: answered({place: partial(answer, used) for place, answer in answers.items()})


@contextlib.contextmanager
def all_patched(places: Iterable[tuple[Any, str, Any]]) -> Iterator[None]:
    """Inside, each `owner.name` is its value."""
    with contextlib.ExitStack() as stack:
        for place in places:
            stack.enter_context(patched(*place))
        yield


def _answered_first(answer: Answer, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(otherwise)
    def function(*args: Any, **kwargs: Any) -> Any:
        result = answer(*args, **kwargs)
        return otherwise(*args, **kwargs) if result is NotImplemented else result

    return function


# ---- words about sizes

arange: Callable[..., torch.Tensor] = torch.arange  # typed for plain numbers


def is_size(value: Any) -> bool:
    return isinstance(value, torch.SymInt)


def holds_size(*groups: Iterable[Any]) -> bool:
    """Whether a size is among the numbers of some shapes or lists."""
    return any(is_size(number) for group in groups for number in group)


def know(condition: Any) -> None:
    """Torch may take this condition on sizes for granted."""
    check = lookup("torch._check")
    if check is not None:
        check(condition)


def is_known(condition: Any) -> bool:
    """Whether this condition on sizes holds whatever they are."""
    return symbolic_shapes.statically_known_true(condition)
