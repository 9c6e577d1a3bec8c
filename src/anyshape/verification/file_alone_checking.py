"""A file without its model: run it at many sizes on made-up inputs, and hold it to the shapes that it declares itself.

No torch: what is compared are shapes. Values have nothing to be compared with.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx

from anyshape.bench.bench import Budget
from anyshape.bench.plan import Plan, Sizes, Tier, choose, horizon, trace_sizes
from anyshape.errors import DeclarationError
from anyshape.model.limits import Boundaries, Limit
from anyshape.onnxfile.baked_sizes import find_baked
from anyshape.onnxfile.baked_sizes_constants import telling_sizes
from anyshape.onnxfile.contract import Contract, read_contract
from anyshape.onnxfile.interface import read_interface
from anyshape.results.finding import Span
from anyshape.results.result import Result
from anyshape.results.unknown_operators import not_loaded
from anyshape.results.verification import Check, Failure, Verification
from anyshape.runtime.custom_ops import CustomOps
from anyshape.runtime.made_up_inputs_calls import Calls, axes_of
from anyshape.runtime.session import RuntimeFailureError, runtime_version
from anyshape.sizes.conditions import fitting_sizes, parse_where
from anyshape.sizes.notation import Condition, SizeRange, did_you_mean, parse_sizes
from anyshape.verification.file_alone_findings import findings_of
from anyshape.verification.file_alone_samples import sample_findings
from anyshape.verification.file_alone_subject import MOST_ELEMENTS, Subject, as_error

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
    plan = _plan(ranges, base, telling_sizes(proto), boundaries, tier, seed) if at is None else _only(at, base, tier)
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
        opset=next((o.version for o in proto.opset_import if o.domain in ("", "ai.onnx")), None),
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
