"""A file without its model: run it at many sizes on made-up inputs, and hold it to the shapes that it declares itself.

No torch: what is compared are shapes. Values have nothing to be compared with.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from anyshape.declaration.conditions import fitting_sizes, parse_where
from anyshape.declaration.notation import Condition, Expression, SizeRange, did_you_mean, parse_expression, parse_sizes
from anyshape.diagnosis.findings import Finding, Span
from anyshape.diagnosis.unknown import not_loaded
from anyshape.errors import DeclarationError
from anyshape.onnxfile.baked import Baked, find_baked
from anyshape.onnxfile.constants import telling_sizes
from anyshape.onnxfile.contract import Contract, read_contract
from anyshape.onnxfile.interface import Interface, Port, broken_promise, read_interface
from anyshape.result import Result
from anyshape.verification.budget import Budget
from anyshape.verification.custom_ops import CustomOps
from anyshape.verification.limits import Boundaries, Limit
from anyshape.verification.records import Check, Failure, Verification
from anyshape.verification.runtime import RuntimeFailureError, Session, runtime_version
from anyshape.verification.sizes import Plan, Sizes, Tier, choose, horizon, trace_sizes

_SECONDS = 10.0
_ALWAYS_RUN = 4
_MOST_ELEMENTS = 2**26
"""Of all inputs together: the sizes stand in a file that nobody vouches for."""
_LARGEST_SIZE = 2**31
_MOST_DIMS = 32
_CONTENTS = 3
_MOST_EXPLAINED = 8
_MOST_BAKED = 3
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
    calls = _Calls({port.name: _axes_of(port) for port in interface.inputs}, interface, seed)
    ranges = _ranges(calls.dims, contract, sizes or {})
    relations = _relations(where, contract, ranges)
    home = Span(path.name, 1)
    told = tuple(map(str, relations))
    outcome = Result("refused", interface.inputs, interface.outputs, ranges, path=path, what="check", where=told)
    custom_ops = custom_ops or CustomOps()
    try:
        subject = _Subject(custom_ops.open(path, providers), interface, calls, contract)
    except RuntimeFailureError as failure:
        return replace(outcome, findings=not_loaded(failure, proto, custom_ops, home))
    limits = contract.limits if contract is not None else ()
    held = (*limits, *(contract.conditions if contract is not None else ()))
    base = _first_that_runs(subject, ranges, relations)
    boundaries = Boundaries(lambda s: _as_error(subject.judge(s)), ranges, base, (), where=relations)
    boundaries.limits.extend(Limit(limit) for limit in held if set(limit.names) <= set(ranges))
    plan = _plan(ranges, base, telling_sizes(proto), boundaries, tier, seed) if at is None else _only(at, base, tier)
    verification = _run(subject, plan, Budget(_SECONDS if budget is None else budget))
    findings = _findings(verification, subject, boundaries, home, find_baked(proto, interface))
    return replace(
        outcome,
        verdict="refused" if findings else "checked",
        limits=tuple(map(str, limits)),
        verification=verification,
        findings=findings,
        notes=(*_notes(contract), *custom_ops.notes_on(proto)),
        opset=next((o.version for o in proto.opset_import if o.domain in ("", "ai.onnx")), None),
    )


# ---- what varies


def _axes_of(port: Port) -> tuple[Expression | int, ...]:
    """Every axis as a number or an expression; one that is open and unnamed gets a name."""
    if port.axes is None:
        raise DeclarationError(f"input `{port.name}` declares no axes, so no call can be made up: give the model, too")
    if port.dtype not in _MAKERS:
        raise DeclarationError(f"input `{port.name}` is {port.dtype}, so no call can be made up: give the model, too")
    if negative := [axis for axis in port.axes if isinstance(axis, int) and axis < 0]:
        raise DeclarationError(f"input `{port.name}` declares the size {negative[0]}")
    return tuple(_axis(port.name, index, axis) for index, axis in enumerate(port.axes))


def _axis(name: str, index: int, axis: int | str | None) -> Expression | int:
    if isinstance(axis, int):
        return axis
    try:
        return parse_expression(axis if axis is not None else _plain(f"{name}_dim{index}"))
    except DeclarationError:
        return parse_expression(_plain(axis or ""))  # a name such as `batch size`


def _plain(name: str) -> str:
    """A dim's name from any text."""
    return re.sub(r"\W", "_", name if name[:1].isalpha() or name[:1] == "_" else f"_{name}")


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


# ---- calls


def _floats(generator: np.random.Generator, shape: tuple[int, ...], content: int) -> np.ndarray[Any, Any]:
    return (generator.standard_normal(shape), generator.random(shape), np.ones(shape))[content]


def _integers(generator: np.random.Generator, shape: tuple[int, ...], content: int) -> np.ndarray[Any, Any]:
    """0 and 1 are valid as an index, a mask and a flag; all ones as a length, too."""
    return (generator.integers(0, 2, shape), np.ones(shape), np.zeros(shape))[content]


_FLOATS = ("float16", "float32", "float64")
_INTEGERS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_MAKERS = dict.fromkeys(_FLOATS, _floats) | dict.fromkeys(_INTEGERS, _integers)


@dataclass(frozen=True)
class _Calls:
    """Makes the inputs of a file at any size."""

    axes: Mapping[str, tuple[Expression | int, ...]]
    interface: Interface
    seed: int

    @property
    def dims(self) -> tuple[str, ...]:
        entries = (axis for row in self.axes.values() for axis in row if isinstance(axis, Expression))
        return tuple(dict.fromkeys(name for entry in entries for name in entry.names))

    def shapes(self, sizes: Mapping[str, int]) -> dict[str, tuple[int, ...]] | None:
        """The shape of every input; None where an expression has no size."""
        try:
            found = {n: tuple(a if isinstance(a, int) else a.value(sizes) for a in row) for n, row in self.axes.items()}
        except ZeroDivisionError:
            return None
        return found if all(size >= 0 for shape in found.values() for size in shape) else None

    def make(self, shapes: Mapping[str, tuple[int, ...]], content: int) -> dict[str, np.ndarray[Any, Any]]:
        generator = np.random.default_rng(self.seed)
        return {
            port.name: _MAKERS[port.dtype](generator, shapes[port.name], content).astype(port.dtype)
            for port in self.interface.inputs
        }


@dataclass(frozen=True)
class _Subject:
    """The loaded file and what it promises."""

    session: Session
    interface: Interface
    calls: _Calls
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
        if shapes is None or self.volume(sizes) > _MOST_ELEMENTS:
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


def _as_error(judged: Check | Failure) -> Exception | None:
    return (
        RuntimeFailureError(judged.sentence) if isinstance(judged, Failure) and judged.rule == "runtime-error" else None
    )


# ---- which sizes


def _first_that_runs(subject: _Subject, ranges: Mapping[str, SizeRange], where: Sequence[Condition]) -> Sizes:
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


def _run(subject: _Subject, plan: Plan, budget: Budget) -> Verification:
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
    return f"more than {_MOST_ELEMENTS:,} elements to make up" if volume > _MOST_ELEMENTS else None


# ---- what was found


def _findings(
    verification: Verification, subject: _Subject, boundaries: Boundaries, home: Span, baked: Sequence[Baked]
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


def _where_it_runs(failing: Sequence[Failure], subject: _Subject, boundaries: Boundaries) -> list[str]:
    """The limits behind failing sizes, where rules are found: `height >= 7`."""
    if not failing or not isinstance(subject.judge(boundaries.base), Check):
        return []
    known = len(boundaries.limits)
    for failure in sorted(failing, key=lambda failure: sum(failure.sizes.values()))[:_MOST_EXPLAINED]:
        if boundaries.holds(failure.sizes):
            boundaries.explain(dict(failure.sizes))
    found = " and ".join(f"`{limit}`" for limit in boundaries.limits[known:])
    return [f"it runs where {found}"] if found else []


def _doubts(verification: Verification, subject: _Subject) -> list[str]:
    """What a failing run does not prove."""
    if all(failure.rule == "runtime-error" for failure in verification.failures) and not verification.checks:
        return ["it fails at every size that was run; the inputs were made up, and it may need particular values"]
    if any(failure.rule == "runtime-error" for failure in verification.failures) and subject.contract is None:
        return ["the file has no contract: whether its model can do these sizes is not known"]
    return []


def _helps(failing: Sequence[Failure], subject: _Subject) -> tuple[str, ...]:
    if not failing or subject.contract is not None:
        return ()
    return ("give the model to compare with, or the sizes that the file is made for",)


def _notes(contract: Contract | None) -> tuple[str, ...]:
    if contract is None or contract.verdict == "checked":
        return (_SHAPES_ALONE,)
    return (_SHAPES_ALONE, f"the file's own contract says `{contract.verdict}`")
