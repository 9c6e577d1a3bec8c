"""An attempt: how one strategy's try at a model ended, what its trace assumed, and which operator stopped it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import sympy

from anyshape.sizes import expressions
from anyshape.sizes.notation import Condition, Sizes
from anyshape.source.spans import Span


@dataclass(frozen=True)
class Attempt:
    """One strategy's try: how it ended, why, and how long it took."""

    strategy: str
    outcome: str
    """`checked`, `narrowed`, `wrong`, `failed` or `skipped`."""
    reason: str = ""
    seconds: float = 0.0
    error: BaseException | None = field(default=None, compare=False, repr=False)
    pins: tuple[PinnedByTrace, ...] = ()
    guards: tuple[Guard, ...] = field(default=(), compare=False, repr=False)
    """What the trace assumed: a further strategy may have no record of its own."""
    forced_by: tuple[str, ...] = ()
    """Operators for whose sake the whole program was written in simpler ones, which takes longer than the trace."""
    inlined: tuple[str, ...] = ()
    """Operators that were replaced, each by itself, by what they are made of."""
    copied: tuple[str, ...] = ()
    """Classes of parts whose nodes were copied from parts like them."""
    wrong_at: tuple[Sizes, ...] = field(default=(), compare=False, repr=False)
    """Sizes at which its file was wrong."""
    ran_right: bool = field(default=False, compare=False, repr=False)
    """Whether its file was right at every size that was run, whatever became of it for other reasons."""
    decisions: tuple[Span, ...] = field(default=(), compare=False, repr=False)
    """Places at which the model decides by values, and the file would not."""


@dataclass(frozen=True)
class Guard:
    """A condition on sizes that tracing assumed: a suspect, not a verdict."""

    expression: sympy.Basic
    meaning: expressions.Meaning
    condition: Condition | None
    span: Span | None

    def holds(self, sizes: Mapping[str, int]) -> bool:
        return expressions.holds(self.expression, self.meaning, sizes)

    @property
    def constants(self) -> set[int]:
        return expressions.integers(self.expression)

    @property
    def dims(self) -> tuple[str, ...]:
        """The dims that it speaks of."""
        spoken = [self.meaning[symbol] for symbol in self.expression.free_symbols if symbol in self.meaning]
        return tuple(sorted({name for expression in spoken for name in expression.names}))


def hold(guards: Iterable[Guard], sizes: Mapping[str, int]) -> bool:
    """Whether all that a trace assumed is so at these sizes."""
    return all(guard.holds(sizes) for guard in guards)


@dataclass(frozen=True)
class PinnedByTrace:
    """A dim that tracing turned into a number."""

    dim: str
    size: int
    span: Span | None


class UntranslatedOperatorError(Exception):
    """An operator that can be neither traced nor translated, the user's call of it, and why.

    Where it is `shapeless`, it has a translation, but torch cannot tell the shape of its result.
    """

    def __init__(
        self, name: str, overload: str, arguments: tuple[str, ...], span: Span | None, why: str, *, shapeless: bool
    ) -> None:
        super().__init__(f"`{name}` has no {'shape' if shapeless else 'ONNX translation'}; {why}")
        self.name = name
        self.overload = overload
        """As it is found below `torch.ops`."""
        self.arguments = arguments
        """As in a `def`: `x`, `factor=2.0`."""
        self.span, self.why, self.shapeless = span, why, shapeless
