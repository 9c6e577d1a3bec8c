"""A file that somebody gives, how the user wants it checked, and its check where there is no model to compare with.

Alone, a file is run at many sizes on made-up inputs, and held to what it says of itself. There is no other reference
than its declared axes and its contract, so only shapes are checked: whether the file runs at every size that it
declares, and keeps the shapes that it declares there.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir

from anyshape.errors import DeclarationError
from anyshape.model.limits import Boundaries, Limit
from anyshape.onnxfile.baked_sizes import Baked, find_baked, size_literals, sizes_written
from anyshape.onnxfile.contract import Contract
from anyshape.onnxfile.contradictions import CHANGED, UNREADABLE, contract_of
from anyshape.onnxfile.interface import Interface, expected_size, read_interface
from anyshape.onnxfile.untrusted import load_checked
from anyshape.results.finding import Finding
from anyshape.results.verification import Check, Failure, Verification
from anyshape.runtime.custom_ops import CustomOps
from anyshape.runtime.made_up_inputs import CONTENTS, Calls, axes_by_input
from anyshape.runtime.session import Feeds, RuntimeFailureError, Session
from anyshape.sizes import budgets
from anyshape.sizes.conditions import fitting_sizes, parse_where
from anyshape.sizes.effort import Effort, Forecast
from anyshape.sizes.notation import Condition, Expression, SizeRange, Sizes, did_you_mean, parse_sizes
from anyshape.sizes.spelling import argument
from anyshape.source.spans import Span
from anyshape.testbench.batches import batch_dims, first_mixed_output
from anyshape.testbench.checker import ALONE, BenchReference, Checker, Examined, Judged, verify
from anyshape.testbench.judgement import Tolerance
from anyshape.testbench.plan import Budget, Plan, Tier, horizon, sizes_at_literals, trace_sizes

# ---- what is given


@dataclass(frozen=True)
class CheckOptions:
    """How to check, as the user asked for it."""

    tolerance: Tolerance = field(default_factory=Tolerance)
    seconds: float | None = None
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
    """What of it is about this file."""
    untrue: tuple[str, ...] = ()
    """What else it says, a clause each."""

    @property
    def doubts(self) -> Iterator[str]:
        for clause in self.untrue:
            yield f"the file's own contract {clause}{'' if clause in (UNREADABLE, CHANGED) else ', which is not asked'}"

    @property
    def compares_values(self) -> bool:
        """Whether its values can be compared: not where it draws them, as its contract says."""
        return self.contract is None or not self.contract.random

    @cached_property
    def baked(self) -> tuple[Baked, ...]:
        """Sizes that its nodes hold fast; to be asked last, since it clears the weights."""
        return find_baked(self.proto, self.interface)

    def open(self, options: CheckOptions) -> Session:
        return options.custom_ops.open(self.path, options.providers)


def read_given_file(f: Any) -> GivenFile:
    """The file at a path, nothing in it run; a sentence where there is none, or what is there is no model."""
    if not isinstance(f, (str, os.PathLike)):
        raise DeclarationError(f"`f` is a {type(f).__name__}: pass the path of an ONNX file")
    proto = load_checked(f)
    interface = read_interface(proto)
    contract, untrue = contract_of(proto, interface, Path(f).parent)
    return GivenFile(Path(f).absolute(), proto, interface, contract, untrue)  # the model may change the current folder


def plan_of_check(
    ranges: Mapping[str, SizeRange],
    base: Sizes,
    constants: tuple[int, ...],
    admit: Callable[[Sizes], Sizes | None],
    options: CheckOptions,
    literals: Iterable[int] = (),
) -> Plan:
    """Sizes from all that is declared, with those around the file's own numbers; or the one that is asked for.

    `literals` are the numbers that have to do with sizes: these are run beyond the horizon of an open range, too.
    """
    if options.at is None:
        box = {dim: horizon(declared, base[dim]) for dim, declared in ranges.items()}
        closed = not any(declared.is_open for declared in ranges.values())
        last = tuple(sizes_at_literals(literals, ranges, base, options.tier))
        return Plan(
            box, base, constants, admit=admit, tier=options.tier, seed=options.seed, last=last, is_closed=closed
        )
    if unknown := [dim for dim in options.at if dim not in base]:
        raise DeclarationError(f"no dim is called `{unknown[0]}`{did_you_mean(unknown[0], base)}")
    sizes = {dim: options.at.get(dim, size) for dim, size in base.items()}
    box = {dim: SizeRange(size, size) for dim, size in sizes.items()}
    return Plan(box, sizes, admit=admit, tier=options.tier, seed=options.seed)


def refuse_excluded(file: GivenFile, ranges: Mapping[str, SizeRange], where: Sequence[Condition], at: Sizes) -> None:
    """One sentence where a single size is asked for that the file, or the user, says it is not for."""
    by_contract = file.contract is not None and all(ranges.get(dim) == kept for dim, kept in file.contract.dims.items())
    excluding = f"the contract of `{file.path.name}` excludes" if by_contract else "what was declared excludes"
    for dim, size in at.items():
        if dim in ranges and size not in ranges[dim] and (by_contract or ranges[dim] != SizeRange()):
            raise DeclarationError(f"{excluding} {dim} = {size}: it is for {dim} {ranges[dim]}")
    for condition in where:
        if set(condition.names) <= set(at) and not condition.holds(at):
            place = ", ".join(f"{dim} = {at[dim]}" for dim in condition.names)
            raise DeclarationError(f"{excluding} {place}: it is for {condition}")


# ---- the file alone on the bench


@dataclass(frozen=True)
class MadeUpCall:
    """One call of the file on inputs that were made up."""

    sizes: Sizes
    content: int
    shapes: Mapping[str, tuple[int, ...]]

    error: Exception | None = None
    outputs: tuple[()] = ()
    gradients: bool = False


@dataclass(frozen=True)
class FileReference(BenchReference[MadeUpCall]):
    """What a file promises: its declared axes, and the formulas of its contract."""

    calls: Calls
    contract: Contract | None
    forecast: Forecast | None = None

    def effort(self, sizes: Mapping[str, int]) -> Effort:
        found = None if self.forecast is None else self.forecast.at(sizes)
        return super().effort(sizes) if found is None else found.with_values("inputs", self.volume(sizes))

    def run(self, sizes: Mapping[str, int], content: int = 0) -> MadeUpCall:
        return MadeUpCall(dict(sizes), content, self.calls.shapes(sizes) or {})

    def volume(self, sizes: Mapping[str, int]) -> int:
        shapes = self.calls.shapes(sizes) or {}
        return sum(math.prod(max(size, 1) for size in shape) for shape in shapes.values())

    def refuses(self, sizes: Mapping[str, int]) -> str | None:
        too_large = self.volume(sizes) > budgets.MOST_ELEMENTS_MADE_UP
        return f"more than {budgets.MOST_ELEMENTS_MADE_UP:,} elements to make up" if too_large else None

    def inputs(self, run: MadeUpCall) -> Feeds:
        return self.calls.make(run.shapes, run.content)

    def input_shapes(self, run: MadeUpCall) -> Mapping[str, tuple[int, ...]]:
        return run.shapes

    def broken_promise(self, run: MadeUpCall, shapes: Sequence[tuple[int, ...]]) -> tuple[str, str] | None:
        """The contract may hold more than the labels: the formula behind each of them."""
        formulas = self.contract.outputs if self.contract is not None else {}
        for port, shape in zip(self.calls.interface.outputs, shapes, strict=True):
            for axis, (formula, size) in enumerate(zip(formulas.get(port.name, ()), shape, strict=False)):
                if (expected := expected_size(formula, run.sizes)) not in (None, size):
                    return port.name, f"is promised `{formula}` = {expected} on axis {axis} but has shape {shape}"
        return None


@dataclass(frozen=True)
class FileChecker(Checker[MadeUpCall]):
    """The bench with a file alone on it; one size is judged by the first content that the file takes."""

    reference: FileReference
    known: dict[tuple[int, ...], Judged] = field(default_factory=dict)

    def examine(self, sizes: Sizes, contents: Iterable[int]) -> Examined:
        del contents
        return Examined((self.judge_at(sizes),))

    def judge_at(self, sizes: Sizes) -> Judged:
        """The file at one size, remembered: limits ask for the same sizes again."""
        key = tuple(sizes.values())
        if key not in self.known:
            self.known[key] = self._judge_contents(dict(sizes))
        return self.known[key]

    def _judge_contents(self, sizes: Sizes) -> Judged:
        if self.reference.calls.shapes(sizes) is None or self.reference.refuses(sizes) is not None:
            return Failure(sizes, 0, "runtime-error", None, "has no inputs of this size that could be made")
        first: Failure | None = None
        # indices, lengths and flags have values that a file refuses; which ones it takes, only it knows
        for content in range(CONTENTS):
            judged = self.judge(self.reference.run(sizes, content))
            if not (isinstance(judged, Failure) and judged.rule == "runtime-error"):
                return judged
            first = first or judged
        assert first is not None
        return first

    def count_at(self, sizes: Sizes) -> Effort | None:
        judged = self.judge_at(sizes)
        if isinstance(judged, Failure) and judged.rule == "runtime-error":
            return None
        return self.session.effort(self.reference.inputs(self.reference.run(sizes, judged.content)))

    def error_at(self, sizes: Sizes) -> Exception | None:
        judged = self.judge_at(sizes)
        if isinstance(judged, Failure) and judged.rule == "runtime-error":
            return RuntimeFailureError(judged.sentence)
        return None


# ---- what is declared


@dataclass(frozen=True)
class FileDeclaration:
    """What a file says of itself, and what the user says of it."""

    calls: Calls
    ranges: Mapping[str, SizeRange]
    where: tuple[Condition, ...]
    limits: tuple[Condition, ...]
    """What the contract calls limits of the model."""
    held: tuple[Condition, ...]
    """All conditions of the contract that are about these dims."""


def declare_by_file(
    file: GivenFile, sizes: Mapping[str, object] | None, where: Sequence[str], seed: int
) -> FileDeclaration:
    """The dims that the file names, their sizes as the user or the contract gives them."""
    interface, contract = file.interface, file.contract
    calls = Calls(axes_by_input(interface.inputs), interface, seed)
    ranges = _ranges_of(calls.dims, contract, sizes or {})
    limits, conditions = (contract.limits, contract.conditions) if contract is not None else ((), ())
    held = tuple(condition for condition in (*limits, *conditions) if set(condition.names) <= set(ranges))
    return FileDeclaration(calls, ranges, _relations_of(where, contract, ranges), limits, held)


def _ranges_of(dims: Sequence[str], contract: Contract | None, sizes: Mapping[str, object]) -> dict[str, SizeRange]:
    if len(dims) > (most := budgets.MOST_DIMS_ALONE):
        raise DeclarationError(f"the file names {len(dims)} dims, more than the {most} that can be checked alone")
    for name in sizes:
        if name not in dims:
            named = (", ".join(f"`{dim}`" for dim in dims) or "none") + did_you_mean(name, dims)
            raise DeclarationError(f"{argument('sizes')} given for `{name}`, but the file only names {named}")
    return {dim: parse_sizes(sizes[dim], dim=dim) if dim in sizes else _promised_range(dim, contract) for dim in dims}


def _promised_range(dim: str, contract: Contract | None) -> SizeRange:
    """What the contract says; its numbers may be anything, so it ends where no size could be run anyway."""
    promised = (contract.dims if contract is not None else {}).get(dim, SizeRange())
    is_runnable = promised.hi is None or promised.hi <= budgets.LARGEST_SIZE_ALONE
    return promised if is_runnable else promised.up_to(budgets.LARGEST_SIZE_ALONE)


def _relations_of(
    where: Sequence[str], contract: Contract | None, ranges: Mapping[str, SizeRange]
) -> tuple[Condition, ...]:
    """What the user says, else what the contract says; a file's relations may be anything, and are asked, too."""
    if where or contract is None:
        return parse_where(where, ranges)
    return tuple(condition for condition in contract.where if set(condition.names) <= set(ranges))


# ---- which sizes

_START_SIZES = (3, 16, 64, 224)


@dataclass(frozen=True)
class FileBench:
    """A loaded file, ready to be run at the planned sizes."""

    checker: FileChecker
    boundaries: Boundaries
    plan: Plan
    options: CheckOptions
    declaration: FileDeclaration

    def verify(self) -> Verification:
        return verify(self.checker, self.plan, self.boundaries, Budget(self.options.seconds))


def bench_alone(session: Session, file: GivenFile, declaration: FileDeclaration, options: CheckOptions) -> FileBench:
    """The file with itself for a reference."""
    checker = FileChecker(session, file.interface, FileReference(declaration.calls, file.contract), ALONE)
    base = _first_that_runs(checker, declaration)
    checker = replace(checker, reference=replace(checker.reference, forecast=Forecast(checker.count_at, base)))
    boundaries = Boundaries(checker.error_at, declaration.ranges, base, (), where=declaration.where)
    boundaries = boundaries.with_limits(map(Limit, declaration.held))
    # a single size is run wherever it lies
    admit = boundaries.admit if options.at is None else lambda sizes: sizes
    literals = size_literals(ir.from_proto(file.proto))
    plan = plan_of_check(declaration.ranges, base, sizes_written(file.proto), admit, options, literals)
    return FileBench(checker, boundaries, plan, options, declaration)


def _first_that_runs(checker: FileChecker, declaration: FileDeclaration) -> Sizes:
    """Sizes to start from: small, pairwise different, and such that the file runs where any of a few do."""
    ranges = declaration.ranges
    apart = [trace_sizes(dict.fromkeys(ranges, size), ranges, (), lambda _: True) for size in _START_SIZES]
    rows = [fitting_sizes(row, ranges, declaration.where) for row in apart]
    return next((row for row in rows if isinstance(checker.judge_at(row), Check)), rows[0])


# ---- what is found


def findings_alone(bench: FileBench, verification: Verification, file: GivenFile, home: Span) -> tuple[Finding, ...]:
    """What is wrong; where nothing is, a warning for each batch whose samples are mixed."""
    wrong = _wrong_shapes(bench, verification, home, file.baked)
    return wrong or tuple(_mixed_batches(bench, home) if bench.options.at is None else ())


def _wrong_shapes(
    bench: FileBench, verification: Verification, home: Span, baked: Sequence[Baked]
) -> tuple[Finding, ...]:
    """One finding: a shape that is not kept says more than a run that fails, which is then a note."""
    failures, contract = verification.failures, bench.checker.reference.contract
    if not failures:
        return () if verification.checks else (Finding("runtime-error", "no size could be run", home),)
    failing = [failure for failure in failures if failure.rule == "runtime-error"]
    broken = [failure for failure in failures if failure.rule != "runtime-error"]
    shown = min(broken or failing, key=lambda failure: sum(failure.sizes.values()))
    message = shown.sentence if shown.output else f"the file {shown.sentence}"
    total = len(verification.checks) + len(failures)
    place = ", ".join(f"{dim} = {size}" for dim, size in shown.sizes.items())
    notes = [f"smallest of {len(broken or failing)} such sizes: {place}; {total} were run"] if place else []
    if broken and failing:
        notes.append(f"at {len(failing)} of these sizes it {failing[0].sentence}")
    notes += _where_it_runs(failing, bench)
    notes += [f"its {one}" for one in baked if one.operator][: budgets.MOST_BAKED_SIZES_TOLD]
    notes += _doubts(verification, contract)
    return (Finding(shown.rule, message, home, notes=tuple(notes), helps=_helps(failing, contract)),)


def _where_it_runs(failing: Sequence[Failure], bench: FileBench) -> list[str]:
    """The limits behind failing sizes, where rules are found: `height >= 7`."""
    boundaries = bench.boundaries
    if not failing or not isinstance(bench.checker.judge_at(boundaries.base), Check):
        return []
    known = len(boundaries.limits)
    for failure in sorted(failing, key=lambda failure: sum(failure.sizes.values()))[: budgets.MOST_SIZES_EXPLAINED]:
        if boundaries.holds(failure.sizes):
            boundaries.explain(dict(failure.sizes))
    found = " and ".join(f"`{limit}`" for limit in boundaries.limits[known:])
    return [f"it runs where {found}"] if found else []


def _doubts(verification: Verification, contract: Contract | None) -> list[str]:
    """What a failing run does not prove."""
    if all(failure.rule == "runtime-error" for failure in verification.failures) and not verification.checks:
        return ["it fails at every size that was run; the inputs were made up, and it may need particular values"]
    if any(failure.rule == "runtime-error" for failure in verification.failures) and contract is None:
        return ["the file has no contract: whether its model can do these sizes is not known"]
    return []


def _helps(failing: Sequence[Failure], contract: Contract | None) -> tuple[str, ...]:
    if not failing or contract is not None:
        return ()
    return ("give the model to compare with, or the sizes that the file is made for",)


_PARTS = ((2, 1), (3, 2))
"""Small, and unlike each other; then for a file that refuses one sample."""


def _mixed_batches(bench: FileBench, home: Span) -> Iterator[Finding]:
    rows = {
        name: tuple(axis if isinstance(axis, Expression) else None for axis in axes)
        for name, axes in bench.declaration.calls.axes.items()
    }
    for dim in batch_dims(bench.declaration.ranges, list(rows.values())):
        yield from _mixed_batch(bench, dim, rows, home)


def _mixed_batch(
    bench: FileBench, dim: str, rows: Mapping[str, tuple[Expression | None, ...]], home: Span
) -> Iterator[Finding]:
    """A warning where the samples of this batch are mixed in some output."""
    calls, declared, session = bench.declaration.calls, bench.declaration.ranges[dim], bench.checker.session
    for parts in _PARTS:
        sizes = {**bench.boundaries.base, dim: sum(parts)}
        shapes = calls.shapes(sizes)
        if shapes is None or not all(size in declared for size in (*parts, sum(parts))):
            continue
        if sum(map(math.prod, shapes.values())) > budgets.MOST_ELEMENTS_MADE_UP:
            return
        try:
            index = first_mixed_output(session.run, calls.make(shapes, 0), dim, rows, parts)
        except RuntimeFailureError:
            continue
        if index is not None:
            yield _mixed_finding(dim, bench.checker.interface.outputs[index].name, sizes, home)
        return


def _mixed_finding(dim: str, output: str, sizes: Mapping[str, int], home: Span) -> Finding:
    note = f"f(cat(a, b)) differs from cat(f(a), f(b)): `{output}` of a sample changes when another stands beside it"
    message = f"samples of `{dim}` are mixed"
    return Finding("mixed-batch", message, home, notes=(note,), level="warning", dims=(dim,), breaks_at=dict(sizes))


def notes_alone(file: GivenFile) -> Iterator[str]:
    """What such a check does not show, and what the file itself says or has baked in."""
    yield "only shapes were checked: without the model there are no values to compare with"
    yield from file.doubts
    if file.contract is not None and file.contract.verdict != "checked":
        yield f"the file's own contract says `{file.contract.verdict}`"
    yield from (str(one) for one in file.baked if not one.operator)
