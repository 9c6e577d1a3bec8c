"""An attempt: how one strategy's try at a model ended, what its trace assumed, and which operator stopped it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

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
    made: tuple[MadeOfDim, ...] = field(default=(), compare=False, repr=False)
    """What the model's code made of sizes, other than what the trace followed."""
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
    decides: bool = False
    """Whether the user's own code asked, to choose a path: beyond it, others may be chosen."""

    def holds(self, sizes: Mapping[str, int]) -> bool | None:
        """None where it cannot be told."""
        return expressions.holds(self.expression, self.meaning, sizes)

    @cached_property
    def text(self) -> str:
        """As people read it, in dims."""
        return str(self.condition) if self.condition else expressions.in_words(self.expression, self.meaning)

    @cached_property
    def opposite(self) -> Guard:
        expression = sympy.Not(self.expression)
        return replace(self, expression=expression, condition=expressions.to_condition(expression, self.meaning))

    @property
    def claim(self) -> tuple[sympy.Basic, expressions.Meaning]:
        return self.expression, self.meaning

    @property
    def place(self) -> str:
        return f"{self.span.path}:{self.span.line}" if self.span is not None else ""

    @property
    def is_about_sizes(self) -> bool:
        """Whether it speaks of nothing else: what values decide is no size that could be run."""
        return expressions.symbols_of(self.expression) <= set(self.meaning)

    @property
    def says_nothing(self) -> bool:
        """Whether both sides are the same, as in `batch == batch`."""
        one = self.condition
        return one is not None and one.left == one.right and one.relation in ("==", "<=", ">=")

    @property
    def constants(self) -> set[int]:
        return expressions.integers(self.expression)

    @property
    def dims(self) -> tuple[str, ...]:
        """The dims that it speaks of."""
        spoken = [self.meaning[symbol] for symbol in self.expression.free_symbols if symbol in self.meaning]
        return tuple(sorted({name for expression in spoken for name in expression.names}))


def hold(guards: Iterable[Guard], sizes: Mapping[str, int]) -> bool:
    """Whether all that a trace assumed is so at these sizes, as far as it can be told."""
    return all(guard.holds(sizes) is not False for guard in guards)


@dataclass(frozen=True)
class PinnedByTrace:
    """A dim that tracing turned into a number."""

    dim: str
    size: int
    span: Span | None
    literals: frozenset[int] = frozenset()


@dataclass(frozen=True)
class MadeOfDim:
    """A number or a text that the model's code made of a dim's size, or a use of it that no trace has recorded."""

    what: str
    dim: str
    span: Span | None
    literals: frozenset[int]
    """Integers in the code that made it: where it may decide."""


class NewerOpsetError(Exception):
    """Operators that are not to be had in the opset that was asked for, each with the smallest in which it is, and the
    user's line of the one that needs the newest.
    """

    def __init__(self, asked: int, needed: tuple[tuple[str, int], ...], span: Span | None) -> None:
        self.asked, self.needed, self.span = asked, needed, span
        self.smallest = max(opset for _, opset in needed)
        names = ", ".join(f"`{operator}`" for operator, opset in needed if opset == self.smallest)
        super().__init__(f"{names} needs opset {self.smallest}")


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
