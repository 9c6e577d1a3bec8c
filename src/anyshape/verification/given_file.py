"""What a check starts from: a file that somebody gives, and how the user wants it checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import onnx

from anyshape.bench.judgement import Tolerance
from anyshape.bench.plan import Plan, Tier, horizon
from anyshape.errors import DeclarationError
from anyshape.onnxfile.baked_sizes import Baked, find_baked
from anyshape.onnxfile.contract import Contract
from anyshape.onnxfile.interface import Interface
from anyshape.runtime.custom_ops import CustomOps
from anyshape.runtime.session import Session
from anyshape.sizes import budgets
from anyshape.sizes.notation import SizeRange, Sizes, did_you_mean


@dataclass(frozen=True)
class CheckOptions:
    """How to check, as the user asked for it."""

    tolerance: Tolerance = field(default_factory=Tolerance)
    seconds: float = budgets.SECONDS_TO_CHECK
    tier: Tier = "normal"
    at: Mapping[str, int] | None = None
    """One size alone."""
    seed: int = 0
    providers: Sequence[str] | None = None
    custom_ops: CustomOps = field(default_factory=CustomOps)


@dataclass(frozen=True)
class GivenFile:
    """A file as it was read; nothing in it is believed."""

    path: Path
    proto: onnx.ModelProto
    """Without weights that lie beside the file."""
    interface: Interface
    contract: Contract | None

    @cached_property
    def baked(self) -> tuple[Baked, ...]:
        """Sizes that its nodes hold fast; to be asked last, since it clears the weights."""
        return find_baked(self.proto, self.interface)

    def open(self, options: CheckOptions) -> Session:
        return options.custom_ops.open(self.path, options.providers)


def plan_of_check(
    ranges: Mapping[str, SizeRange],
    base: Sizes,
    constants: tuple[int, ...],
    admit: Callable[[Sizes], Sizes | None],
    options: CheckOptions,
) -> Plan:
    """Sizes from all that is declared, with those around the file's own numbers; or the one that is asked for."""
    if options.at is None:
        box = {dim: horizon(declared, base[dim]) for dim, declared in ranges.items()}
        closed = not any(declared.is_open for declared in ranges.values())
        return Plan(box, base, constants, (), admit, options.tier, options.seed, is_closed=closed)
    if unknown := [dim for dim in options.at if dim not in base]:
        raise DeclarationError(f"no dim is called `{unknown[0]}`{did_you_mean(unknown[0], base)}")
    sizes = {dim: options.at.get(dim, size) for dim, size in base.items()}
    box = {dim: SizeRange(size, size) for dim, size in sizes.items()}
    return Plan(box, sizes, admit=admit, tier=options.tier, seed=options.seed)
