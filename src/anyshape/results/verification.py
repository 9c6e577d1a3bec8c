"""What became of the runs of one file: values that need no torch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from anyshape.onnxfile.contract import RANDOM_VALUES, Assumption, Evidence
from anyshape.sizes.fit import Observation
from anyshape.sizes.notation import Sizes

THIS_MACHINE = "this machine"
"""How reasons begin that would be others on another machine, or on another day."""


@dataclass(frozen=True)
class Check:
    """One run that was right; `ratio` is its largest error in units of rounding noise."""

    sizes: Sizes
    content: int
    ratio: float
    gradients: bool = False
    """Whether it agrees with PyTorch with gradients on only: fast paths give another result."""
    values: str = ""
    """Which inputs held other values than those that were drawn: `x` negated."""


@dataclass(frozen=True)
class Failure:
    """One run that was wrong."""

    sizes: Sizes
    content: int
    rule: str
    output: str | None
    sentence: str
    note: str = ""
    """What else is known of it, as a sentence of its own."""
    values: str = ""
    """As of a check."""


@dataclass(frozen=True)
class Verification:
    """All runs of one file."""

    checks: tuple[Check, ...] = ()
    failures: tuple[Failure, ...] = ()
    invalid: tuple[Sizes, ...] = ()
    """Sizes at which PyTorch itself fails."""
    skipped: tuple[tuple[Sizes, str], ...] = ()
    """Sizes that were planned but not run, and why."""
    observations: tuple[Observation, ...] = ()
    seconds: float = 0.0
    runtime: str = ""
    factor: float = 0.0
    """How many times the measure was allowed; 0 where values were not compared at all."""
    measure: str = "the model's own rounding noise"
    """What errors are counted in."""
    computed_in: str | None = None
    """The wider type in which the graph was run, where the runtime cannot run its own."""
    own_type: str | None = None
    """The type of the file that was not run, where another one was."""
    notes: tuple[str, ...] = ()
    """What no run has shown, a sentence each."""
    against: str = "PyTorch"
    """What the values were compared with."""
    how: Mapping[str, str] = field(default_factory=dict)
    """Dim -> at which sizes and in which way it was checked, where there is no model to compare with."""

    assumptions: tuple[Assumption, ...] = ()
    """What became of each assumption about sizes that was made on the way to the file."""

    @property
    def sizes_run(self) -> tuple[Sizes, ...]:
        unique = {tuple(c.sizes.items()): c.sizes for c in self.checks}
        return tuple(unique.values())

    @property
    def largest_ratio(self) -> float:
        """The largest error, in the measure.

        Rounded here, once: rounded again elsewhere, text, JSON and the contract would differ in a digit.
        """
        return round(max((check.ratio for check in self.checks), default=0.0), 2)

    @property
    def is_right(self) -> bool:
        return bool(self.checks) and not self.failures

    @property
    def is_cut_by_machine(self) -> bool:
        """Whether another machine would have run more sizes."""
        return any(reason.startswith(THIS_MACHINE) for _, reason in self.skipped)

    @property
    def compares_values(self) -> bool:
        return self.factor > 0

    @property
    def has_reference(self) -> bool:
        """Whether anything stood beside the file; of a random model shapes and types alone are compared."""
        return self.compares_values or self.measure == RANDOM_VALUES


def evidence_of(verification: Verification, graph: str = "") -> Evidence:
    """What a file's contract says of its check."""
    run = verification.sizes_run
    dims = run[0] if run else {}
    ratio = verification.largest_ratio
    return Evidence(
        len(run),
        {dim: (min(sizes[dim] for sizes in run), max(sizes[dim] for sizes in run)) for dim in dims},
        verification.runtime,
        verification.against,
        ratio if verification.compares_values and math.isfinite(ratio) else None,
        verification.factor,
        verification.measure,
        verification.computed_in,
        graph,
    )
