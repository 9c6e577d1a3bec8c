"""`check` without a model: a file is run at many sizes on made-up inputs, and held to what it says of itself."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from anyshape.bench.batches import axis_of, batch_dims
from anyshape.bench.bench import Budget
from anyshape.bench.closeness import are_close, moved_by_rounding
from anyshape.bench.plan import Plan, Tier, choose, horizon, trace_sizes
from anyshape.errors import DeclarationError
from anyshape.model.limits import Boundaries, Limit
from anyshape.onnxfile.baked_sizes import Baked, find_baked
from anyshape.onnxfile.contract import Contract, read_contract
from anyshape.onnxfile.integers import sizes_written
from anyshape.onnxfile.interface import Interface, broken_promise, read_interface
from anyshape.onnxfile.metadata import opset_of
from anyshape.results.finding import Finding
from anyshape.results.result import Result
from anyshape.results.unknown_operators import not_loaded
from anyshape.results.verification import Check, Failure, Verification
from anyshape.runtime.custom_ops import CustomOps
from anyshape.runtime.made_up_inputs import Calls, axes_of
from anyshape.runtime.session import Array, Feeds, RuntimeFailureError, Session, runtime_version
from anyshape.sizes.conditions import fitting_sizes, parse_where
from anyshape.sizes.notation import Condition, Expression, SizeRange, Sizes, did_you_mean, parse_expression, parse_sizes
from anyshape.source.spans import Span

__all__ = ["check_alone"]

MOST_ELEMENTS = 2**26
"""Of all inputs together: the sizes stand in a file that nobody vouches for."""
_CONTENTS = 3


@dataclass(frozen=True)
class Subject:
    """The loaded file and what it promises."""

    session: Session
    interface: Interface
    calls: Calls
    contract: Contract | None
    judged: dict[tuple[int, ...], Check | Failure] = field(default_factory=dict)

    def volume(self, sizes: Sizes) -> int:
        shapes = self.calls.shapes(sizes) or {}
        return sum(math.prod(max(size, 1) for size in shape) for shape in shapes.values())

    def judge(self, sizes: Sizes) -> Check | Failure:
        """The file at one size, remembered: limits ask for the same sizes again."""
        key = tuple(sizes.values())
        if key not in self.judged:
            self.judged[key] = self._judge(dict(sizes))
        return self.judged[key]

    def _judge(self, sizes: Sizes) -> Check | Failure:
        shapes = self.calls.shapes(sizes)
        if shapes is None or self.volume(sizes) > MOST_ELEMENTS:
            return Failure(sizes, 0, "runtime-error", None, "has no inputs of this size that could be made")
        first: Failure | None = None
        for content in range(_CONTENTS):
            judged = self._judge_content(sizes, shapes, content)
            if not (isinstance(judged, Failure) and judged.rule == "runtime-error"):
                return judged
            first = first or judged
        assert first is not None
        return first

    def _judge_content(self, sizes: Sizes, shapes: Mapping[str, tuple[int, ...]], content: int) -> Check | Failure:
        try:
            results = self.session.run(self.calls.make(shapes, content))
        except RuntimeFailureError as failure:
            return Failure(sizes, content, "runtime-error", None, f"fails in ONNX Runtime: {failure}")
        given = [tuple(getattr(result, "shape", ())) for result in results]  # a sequence or a map has no shape
        broken = broken_promise(self.interface, shapes, given) or self._broken_formula(sizes, given)
        if broken is not None:
            return Failure(sizes, content, "mislabelled-dim", broken[0], f"`{broken[0]}` {broken[1]}")
        return Check(sizes, content, 0.0)

    def _broken_formula(self, sizes: Sizes, given: Sequence[tuple[int, ...]]) -> tuple[str, str] | None:
        """The contract may hold more than the labels: the formula behind each of them."""
        formulas = self.contract.outputs if self.contract is not None else {}
        for port, shape in zip(self.interface.outputs, given, strict=True):
            for axis, (formula, size) in enumerate(zip(formulas.get(port.name, ()), shape, strict=False)):
                if (expected := _value(formula, sizes)) not in (None, size):
                    return port.name, f"is promised `{formula}` = {expected} on axis {axis} but has shape {shape}"
        return None


def _value(formula: str, sizes: Sizes) -> int | None:
    try:
        return parse_expression(formula).value(sizes)
    except (DeclarationError, KeyError, ZeroDivisionError):
        return None


def as_error(judged: Check | Failure) -> Exception | None:
    return (
        RuntimeFailureError(judged.sentence) if isinstance(judged, Failure) and judged.rule == "runtime-error" else None
    )


_PARTS = ((2, 1), (3, 2))
"""Small, and unlike each other; then for a file that refuses one sample."""


def sample_findings(subject: Subject, ranges: Mapping[str, SizeRange], base: Sizes, home: Span) -> list[Finding]:
    """A warning for each batch whose samples are mixed."""
    rows = _rows(subject)
    found = (_mixed(subject, ranges, base, dim) for dim in batch_dims(ranges, list(rows.values())))
    return [_finding(*mixed, home) for mixed in found if mixed is not None]


def _rows(subject: Subject) -> dict[str, tuple[Expression | None, ...]]:
    return {
        name: tuple(axis if isinstance(axis, Expression) else None for axis in axes)
        for name, axes in subject.calls.axes.items()
    }


def _mixed(
    subject: Subject, ranges: Mapping[str, SizeRange], base: Sizes, dim: str
) -> tuple[str, str, Mapping[str, int]] | None:
    """The dim, an output in which its samples are mixed, and where; None where there is none or none can be found."""
    for first, second in _PARTS:
        total = first + second
        shapes = subject.calls.shapes({**base, dim: total})
        if shapes is None or not all(size in ranges[dim] for size in (first, second, total)):
            continue
        whole = subject.calls.make(shapes, 0)
        parts = [_cut(subject, whole, dim, slice(0, first)), _cut(subject, whole, dim, slice(first, total))]
        try:
            outputs = _mixed_outputs(subject, whole, parts, (first, second))
        except RuntimeFailureError:
            continue
        return next(((dim, name, {**base, dim: total}) for name in outputs), None)
    return None


def _cut(subject: Subject, feeds: Feeds, dim: str, part: slice) -> Feeds:
    axes = {name: axis_of(dim, row) for name, row in _rows(subject).items()}
    return {
        name: value if (axis := axes[name]) is None else value[(slice(None),) * axis + (part,)]
        for name, value in feeds.items()
    }


def _mixed_outputs(subject: Subject, whole: Feeds, parts: Sequence[Feeds], sizes: tuple[int, int]) -> Iterator[str]:
    together = subject.session.run(whole)
    apart = [subject.session.run(part) for part in parts]
    for index, port in enumerate(subject.interface.outputs):
        axis = _axis_of_samples(together[index], [run[index] for run in apart], sizes)
        if axis is None:
            continue
        joined = np.concatenate([run[index] for run in apart], axis)

        def moved(number: int, index: int = index) -> Array:
            return subject.session.run(moved_by_rounding(whole, number))[index]

        if not are_close(joined, together[index], moved):
            yield port.name


def _axis_of_samples(whole: Array, parts: Sequence[Array], sizes: tuple[int, int]) -> int | None:
    """The only axis along which an output has one entry, or several, for each sample."""
    shapes = [getattr(one, "shape", ()) for one in (whole, *parts)]
    if len({len(shape) for shape in shapes}) != 1:
        return None
    moving = [axis for axis, found in enumerate(zip(*shapes, strict=True)) if len(set(found)) > 1]
    if len(moving) != 1:
        return None
    each = [
        shapes[0][moving[0]] / sum(sizes),
        *(shape[moving[0]] / n for shape, n in zip(shapes[1:], sizes, strict=True)),
    ]
    return moving[0] if each[0] == each[1] == each[2] else None


def _finding(dim: str, output: str, sizes: Mapping[str, int], home: Span) -> Finding:
    return Finding(
        "mixed-batch",
        f"samples of `{dim}` are mixed",
        home,
        notes=(
            f"f(cat(a, b)) differs from cat(f(a), f(b)): `{output}` of a sample changes when another stands beside it",
        ),
        level="warning",
        dims=(dim,),
        breaks_at=dict(sizes),
    )


_MOST_EXPLAINED = 8
_MOST_BAKED = 3


def findings_of(
    verification: Verification, subject: Subject, boundaries: Boundaries, home: Span, baked: Sequence[Baked]
) -> tuple[Finding, ...]:
    """One finding: a shape that is not kept says more than a run that fails, which is then a note."""
    failures = verification.failures
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
    notes += _where_it_runs(failing, subject, boundaries)
    notes += [f"its {one}" for one in baked if one.operator][:_MOST_BAKED]
    return (
        Finding(
            shown.rule, message, home, notes=(*notes, *_doubts(verification, subject)), helps=_helps(failing, subject)
        ),
    )


def _where_it_runs(failing: Sequence[Failure], subject: Subject, boundaries: Boundaries) -> list[str]:
    """The limits behind failing sizes, where rules are found: `height >= 7`."""
    if not failing or not isinstance(subject.judge(boundaries.base), Check):
        return []
    known = len(boundaries.limits)
    for failure in sorted(failing, key=lambda failure: sum(failure.sizes.values()))[:_MOST_EXPLAINED]:
        if boundaries.holds(failure.sizes):
            boundaries.explain(dict(failure.sizes))
    found = " and ".join(f"`{limit}`" for limit in boundaries.limits[known:])
    return [f"it runs where {found}"] if found else []


def _doubts(verification: Verification, subject: Subject) -> list[str]:
    """What a failing run does not prove."""
    if all(failure.rule == "runtime-error" for failure in verification.failures) and not verification.checks:
        return ["it fails at every size that was run; the inputs were made up, and it may need particular values"]
    if any(failure.rule == "runtime-error" for failure in verification.failures) and subject.contract is None:
        return ["the file has no contract: whether its model can do these sizes is not known"]
    return []


def _helps(failing: Sequence[Failure], subject: Subject) -> tuple[str, ...]:
    if not failing or subject.contract is not None:
        return ()
    return ("give the model to compare with, or the sizes that the file is made for",)


_SECONDS = 10.0
_ALWAYS_RUN = 4
_LARGEST_SIZE = 2**31
_MOST_DIMS = 32
_START_SIZES = (3, 16, 64, 224)
_SHAPES_ALONE = "only shapes were checked: without the model there are no values to compare with"


def check_alone(
    path: Path,
    proto: onnx.ModelProto,
    *,
    sizes: Mapping[str, Any] | None,
    where: Sequence[str] = (),
    budget: float | None,
    at: Mapping[str, int] | None,
    seed: int,
    providers: Sequence[str] | None,
    tier: Tier = "normal",
    custom_ops: CustomOps | None = None,
) -> Result:
    """Whether a file runs at every size that it declares, and keeps the shapes that it declares there."""
    interface = read_interface(proto)
    contract = read_contract(proto)
    calls = Calls({port.name: axes_of(port) for port in interface.inputs}, interface, seed)
    ranges = _ranges(calls.dims, contract, sizes or {})
    relations = _relations(where, contract, ranges)
    home = Span(path.name, 1)
    told = tuple(map(str, relations))
    outcome = Result("refused", interface.inputs, interface.outputs, ranges, path=path, what="check", where=told)
    custom_ops = custom_ops or CustomOps()
    try:
        subject = Subject(custom_ops.open(path, providers), interface, calls, contract)
    except RuntimeFailureError as failure:
        return replace(outcome, findings=not_loaded(failure, proto, custom_ops, home))
    limits = contract.limits if contract is not None else ()
    held = (*limits, *(contract.conditions if contract is not None else ()))
    base = _first_that_runs(subject, ranges, relations)
    boundaries = Boundaries(lambda s: as_error(subject.judge(s)), ranges, base, (), where=relations)
    boundaries.limits.extend(Limit(limit) for limit in held if set(limit.names) <= set(ranges))
    plan = _plan(ranges, base, sizes_written(proto), boundaries, tier, seed) if at is None else _only(at, base, tier)
    verification = _run(subject, plan, Budget(_SECONDS if budget is None else budget))
    baked = find_baked(proto, interface)
    wrong = findings_of(verification, subject, boundaries, home, baked)
    return replace(
        outcome,
        verdict="refused" if wrong else "checked",
        limits=tuple(map(str, limits)),
        verification=verification,
        findings=wrong or tuple(sample_findings(subject, ranges, base, home) if at is None else ()),
        notes=(*_notes(contract), *(str(one) for one in baked if not one.operator), *custom_ops.notes_on(proto)),
        opset=opset_of(proto),
    )


# ---- what varies


def _ranges(dims: Sequence[str], contract: Contract | None, sizes: Mapping[str, Any]) -> dict[str, SizeRange]:
    if len(dims) > _MOST_DIMS:
        raise DeclarationError(f"the file names {len(dims)} dims, more than the {_MOST_DIMS} that can be checked alone")
    for name in sizes:
        if name not in dims:
            named = ", ".join(f"`{dim}`" for dim in dims) or "none"
            raise DeclarationError(
                f"sizes given for `{name}`, but the file only names {named}{did_you_mean(name, dims)}"
            )
    return {dim: parse_sizes(sizes[dim], dim=dim) if dim in sizes else _promised(dim, contract) for dim in dims}


def _promised(dim: str, contract: Contract | None) -> SizeRange:
    """What the contract says; its numbers may be anything, so it ends where no size could be run anyway."""
    promised = (contract.dims if contract is not None else {}).get(dim, SizeRange())
    return promised if promised.hi is None or promised.hi <= _LARGEST_SIZE else promised.up_to(_LARGEST_SIZE)


def _relations(
    where: Sequence[str], contract: Contract | None, ranges: Mapping[str, SizeRange]
) -> tuple[Condition, ...]:
    """What the user says, else what the contract says; a file's relations may be anything, and are asked, too."""
    if where or contract is None:
        return parse_where(where, ranges)
    return tuple(condition for condition in contract.where if set(condition.names) <= set(ranges))


# ---- which sizes


def _first_that_runs(subject: Subject, ranges: Mapping[str, SizeRange], where: Sequence[Condition]) -> Sizes:
    """Sizes to start from: small, pairwise different, and such that the file runs where any of a few do."""
    apart = [trace_sizes(dict.fromkeys(ranges, size), ranges, (), lambda _: True) for size in _START_SIZES]
    rows = [fitting_sizes(row, ranges, where) for row in apart]
    return next((row for row in rows if isinstance(subject.judge(row), Check)), rows[0])


def _plan(
    ranges: Mapping[str, SizeRange],
    base: Sizes,
    constants: tuple[int, ...],
    boundaries: Boundaries,
    tier: Tier,
    seed: int,
) -> Plan:
    box = {dim: horizon(declared, base[dim]) for dim, declared in ranges.items()}
    closed = not any(declared.is_open for declared in ranges.values())
    return Plan(box, base, constants, (), boundaries.admit, tier, seed, is_closed=closed)


def _only(at: Mapping[str, int], base: Sizes, tier: Tier) -> Plan:
    for dim in at:
        if dim not in base:
            raise DeclarationError(f"no dim is called `{dim}`{did_you_mean(dim, base)}")
    sizes = {dim: at.get(dim, size) for dim, size in base.items()}
    return Plan({dim: SizeRange(lo=size, hi=size) for dim, size in sizes.items()}, sizes, tier=tier)


def _run(subject: Subject, plan: Plan, budget: Budget) -> Verification:
    start = time.monotonic()
    judged: list[Check | Failure] = []
    skipped: list[tuple[Sizes, str]] = []
    for sizes in choose(plan):
        volume = subject.volume(sizes)
        reason = _too_large(volume) or (budget.refuses(volume, 0) if len(judged) >= _ALWAYS_RUN else None)
        if reason is not None:
            skipped.append((sizes, reason))
            continue
        started = time.monotonic()
        judged.append(subject.judge(sizes))
        budget.measured(volume, time.monotonic() - started)
    return Verification(
        tuple(one for one in judged if isinstance(one, Check)),
        tuple(one for one in judged if isinstance(one, Failure)),
        skipped=tuple(skipped),
        seconds=time.monotonic() - start,
        runtime=runtime_version(),
    )


def _too_large(volume: int) -> str | None:
    return f"more than {MOST_ELEMENTS:,} elements to make up" if volume > MOST_ELEMENTS else None


def _notes(contract: Contract | None) -> tuple[str, ...]:
    if contract is None or contract.verdict == "checked":
        return (_SHAPES_ALONE,)
    return (_SHAPES_ALONE, f"the file's own contract says `{contract.verdict}`")
