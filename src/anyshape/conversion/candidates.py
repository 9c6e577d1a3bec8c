"""What passes between the ways to an ONNX model and the checker: the job, a candidate, and how an attempt ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

from anyshape.declaration.dims import Spec
from anyshape.declaration.outputs import Adapter
from anyshape.results.attempt import Attempt, Guard
from anyshape.sizes.notation import Expression, Sizes


@dataclass(frozen=True)
class Job:
    """What every strategy starts from: the adapter, its inputs at the traced sizes, and the declaration."""

    adapter: Adapter
    leaves: tuple[tuple[str, Any], ...]
    spec: Spec
    opset: int
    opset_is_fixed: bool = False
    """Whether the user asked for this opset."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of torch's translation that the user gave, such as `custom_translation_table`."""
    spread: Callable[[], Sequence[Sizes]] = tuple
    """Sizes that stand for all that were declared, those of the leaves first: where branches may part."""
    values_at: Callable[[Sizes], tuple[Any, ...] | None] = lambda _: None
    """The leaves' values at other sizes, with the module as it was handed over; None where the module does not run."""
    rewrites: bool = True
    """Whether the graph is rewritten to run faster, if the user lets it be optimised."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.leaves)


@dataclass(frozen=True)
class Candidate:
    """An ONNX model that nobody has checked yet, and what its trace assumed."""

    model: ir.Model
    opset: int
    guards: tuple[Guard, ...] = ()
    branches: tuple[Guard, ...] = ()
    """Conditions of which the file serves both sides."""
    operators: Counter[str] = field(default_factory=Counter)
    """What the traced program computes with, and how often; empty where there is none."""
    outputs: tuple[tuple[Expression | None, ...], ...] | None = None
    records_guards: bool = True
    """Whether the strategy would have noticed a decision on values; a trace of real tensors does not."""
    repairs: tuple[str, ...] = ()
    """What was replaced during the trace, a sentence each."""
    suspects: tuple[int, ...] = ()
    """Sizes at which a repair may not hold."""
    simpler: Callable[[], tuple[Candidate | None, Attempt]] | None = None
    """The same trace written more plainly: without operators that runtimes implement narrowly, or without rewrites;
    worth a try where this model is wrong."""


Try = Callable[[], tuple[Candidate | None, Attempt]]
Strategy = Callable[[Job], tuple[Candidate | None, Attempt]]
