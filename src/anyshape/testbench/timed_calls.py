"""What is timed at a size: the inputs of one call, what it should give, and the ways to run the model on them.

Files are held to a coarse measure here: whether two of them do the same at all. How right a file is, `check` tells.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from anyshape.runtime.session import Array, Feeds
from anyshape.sizes.notation import Sizes
from anyshape.testbench.judgement import MovedRuns, Tolerance, judge
from anyshape.testbench.timed_sizes import SizesOffered

_SAME, _SAME_IF_NARROW = 1e-3, 0.1
"""Of the largest value: another order of sums is within the one, quantised weights within the other."""


@dataclass(frozen=True)
class TimedWay:
    """A way to run the model on the inputs of one call."""

    call: Callable[[], Any]
    outputs: Callable[[], list[Array] | str]
    """What it gives, or why it fails."""


@dataclass(frozen=True)
class TimedCall:
    """One call at one size."""

    feeds: Feeds
    expected: Sequence[Array] | None = None
    """What the model gives; None where there is none."""
    ways: Mapping[str, TimedWay] = field(default_factory=dict)
    """The model itself on these inputs, by name."""


@dataclass(frozen=True)
class TimedCalls:
    """Where calls come from: a file's own declaration, or its model."""

    offered: SizesOffered
    call_at: Callable[[Sizes], TimedCall | str]
    """The call at a size, or why there is none."""
    compares_values: bool = True
    notes: tuple[str, ...] = ()
    on_cpu: bool = True
    """Whether the model is: another device works on while a thread waits."""


@dataclass(frozen=True)
class Agreement:
    """What counts as the same numbers."""

    whose: str
    """By whom they are given, whom the others are compared with."""
    moved: Callable[[int], Sequence[Array]]
    """All outputs where each float among the inputs has moved by a rounding, the n-th time: integers may tip then."""
    tolerance: Tolerance = field(default_factory=Tolerance)
    compares_values: bool = True

    def broken_by(self, results: Sequence[Any], expected: Sequence[Array], *, is_narrow: bool) -> str | None:
        """What is not the same, as a sentence without the file's name; None where all is."""
        if len(results) != len(expected):
            return f"gives {len(results)} output{'s' if len(results) != 1 else ''}, {self.whose} {len(expected)}"
        allowed = Tolerance(of_largest=_SAME_IF_NARROW if is_narrow else _SAME)
        tolerance = self.tolerance if self.tolerance.is_given else allowed
        for index, (result, wanted) in enumerate(zip(results, expected, strict=True)):
            if not isinstance(result, np.ndarray) or result.dtype.kind not in "fiub":
                continue  # texts and sequences: nobody measures these by their numbers
            noise = MovedRuns(lambda number, place=index: self.moved(number)[place], self.whose, is_narrow)  # type: ignore[misc]
            judgement = judge(result, wanted, noise, tolerance, values=self.compares_values)
            if judgement.difference is not None:
                return f"gives other numbers than {self.whose}: output {index} {judgement.difference.sentence}"
        return None
