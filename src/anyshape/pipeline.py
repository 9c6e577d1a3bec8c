"""`export`: declare -> trace -> translate -> verify -> save. The stages in order; read this first.

A converter's success is never trusted: a file is written to a temporary folder, checked there against the untouched module at
sizes of our own choosing, and only then put in its place.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir
import torch

from anyshape._torch import capture
from anyshape._torch.state import untouched
from anyshape.conversion import finishing
from anyshape.conversion.strategies import STRATEGIES, Attempt, Candidate, Job
from anyshape.conversion.widening import holds_bfloat16, widened
from anyshape.declaration.calls import Adapter
from anyshape.declaration.notation import Expression, SizeRange
from anyshape.declaration.requests import Request, understand
from anyshape.declaration.targets import training_parts
from anyshape.declaration.torch_arguments import notes_on
from anyshape.diagnosis import rules
from anyshape.diagnosis.findings import Finding, Span
from anyshape.diagnosis.locating import Place, first_difference
from anyshape.diagnosis.provenance import span_of_definition
from anyshape.errors import DeclarationError, ExportError
from anyshape.narrowing import assumed_conditions, cut_ranges, without_dims
from anyshape.onnxfile.contract import KEY, Contract
from anyshape.onnxfile.interface import Interface, read_interface
from anyshape.onnxfile.saving import Stage, check_destination, staged
from anyshape.result import Result, Verdict
from anyshape.verification import reference as references
from anyshape.verification.blindness import blind_spots
from anyshape.verification.checking import Budget, Checker, Failure, Verification, smallest_failure, tolerance_for, verify, volume
from anyshape.verification.comparison import Tolerance
from anyshape.verification.limits import Boundaries, Limit, effective_range
from anyshape.verification.opsets import choose_opset
from anyshape.verification.reference import Outcome, Reference
from anyshape.verification.runtime import RuntimeFailure, Session
from anyshape.verification.shapes import FittedAxis, Observation, fit_outputs
from anyshape.verification.sizes import Plan, Sizes, Tier, horizon, trace_sizes

Progress = Callable[[str], None]


def export(
    model: Any,
    args: Any = (),
    f: str | os.PathLike[str] | None = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    dims: Mapping[str, Any] | None = None,
    sizes: Mapping[str, Any] | None = None,
    make_inputs: Callable[..., Any] | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    dynamic_axes: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    opset_version: int | None = None,
    target: str | None = None,
    external_data: bool | None = None,
    custom_translation_table: Mapping[Any, Any] | None = None,
    custom_ops: Sequence[str] = (),
    metadata: Mapping[str, str] | None = None,
    narrow: bool = False,
    unchecked: Sequence[str] = (),
    dtype: Any = None,
    atol: float | None = None,
    rtol: float | None = None,
    budget: float | None = None,
    quick: bool = False,
    thorough: bool = False,
    seed: int = 0,
    providers: Sequence[str] | None = None,
    progress: Progress | None = None,
    **torch_arguments: Any,
) -> Result:
    """Convert a model to an ONNX file that serves every declared size, or raise ExportError and write nothing.

    `dims` says which axes vary (`{"tokens": "batch seq"}`), `sizes` how far (`{"seq": "1..512"}`). `f=None` writes nothing. The
    arguments of `torch.onnx.export` are understood under their own names.
    """
    capture.require_torch()
    notes = notes_on(torch_arguments)
    destination = check_destination(f)
    request = understand(
        model, args, kwargs, dims=dims, sizes=sizes, make_inputs=make_inputs, dynamic_axes=dynamic_axes,
        dynamic_shapes=dynamic_shapes, input_names=input_names, output_names=output_names, dtype=dtype,
    )  # fmt: skip
    wishes = Wishes(
        destination=destination,
        opset=choose_opset(opset_version, target),
        opset_is_fixed=opset_version is not None,
        external_data=external_data,
        metadata=check_metadata(metadata),
        narrow=narrow,
        unchecked=tuple(unchecked),
        tolerance=Tolerance(atol, rtol),
        seconds=budget,
        tier=choose_tier(quick=quick, thorough=thorough),
        seed=seed,
        providers=providers,
        libraries=tuple(custom_ops),
        extra={} if custom_translation_table is None else {"custom_translation_table": dict(custom_translation_table)},
        notes=tuple(notes),
        tell=progress or (lambda _: None),
    )
    result = convert(request, wishes)
    if result.verdict == "refused":
        raise ExportError(result)
    return result


@dataclass(frozen=True)
class Wishes:
    """How to export and check, as the user asked for it."""

    destination: Path | None
    opset: int
    opset_is_fixed: bool
    external_data: bool | None
    metadata: Mapping[str, str]
    narrow: bool
    unchecked: tuple[str, ...]
    tolerance: Tolerance
    seconds: float | None
    tier: Tier
    seed: int
    providers: Sequence[str] | None
    libraries: tuple[str, ...]
    extra: Mapping[str, Any]
    notes: tuple[str, ...]
    tell: Progress


@dataclass(frozen=True)
class Ground:
    """What is known before the first strategy runs: the reference, the model's limits, the size to trace at."""

    request: Request
    wishes: Wishes
    reference: Reference
    boundaries: Boundaries
    traced: Sizes
    first: Outcome
    home: Span
    notes: tuple[str, ...]


def choose_tier(*, quick: bool, thorough: bool) -> Tier:
    if quick and thorough:
        raise DeclarationError("quick and thorough exclude each other")
    return "quick" if quick else "thorough" if thorough else "normal"


def check_metadata(metadata: Mapping[str, str] | None) -> dict[str, str]:
    for key, value in (metadata or {}).items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise DeclarationError(f"metadata {key!r}: {value!r} must map text to text")
        if key.startswith("anyshape."):
            raise DeclarationError(f"metadata `{key}`: names that begin with `anyshape.` are anyshape's own")
    return dict(metadata or {})


def convert(request: Request, wishes: Wishes) -> Result:
    """The whole way, with the module put back as it was whatever happens."""
    training = training_parts(request.target.module)
    with untouched(request.target.module), capture.quiet():
        ground = _survey(request, wishes, training)
        if ground.reference.is_random(ground.first):
            return _refused(ground, (), [rules.random_output(ground.first.names, ground.home)])
        if ground.boundaries.pins:
            findings = rules.pinned_in_pytorch(ground.boundaries.pins, ground.home)
            pinned = [pin.dim for pin in ground.boundaries.pins]
            return _without(ground, pinned, findings) if wishes.narrow else _refused(ground, (), findings)
        with staged(wishes.destination) as stage:
            result, pinned = _try_strategies(ground, stage)
    return _without(ground, pinned, result.findings) if pinned else result


def _without(ground: Ground, dims: Sequence[str], findings: Sequence[Finding]) -> Result:
    """The same export with dims that cannot vary left static: for `narrow=True` only."""
    request = ground.request
    narrower = replace(request, spec=without_dims(request.spec, dims), make_inputs=_fixed(request, dims))
    result = convert(narrower, ground.wishes)
    if result.verdict == "refused":
        return result
    fixed = tuple(f"{dim} is fixed at {request.spec.example[dim]}" for dim in dims)
    return replace(
        result, verdict="narrowed", findings=(*findings, *result.findings), given_up=(*fixed, *result.given_up)
    )


def _fixed(request: Request, dims: Sequence[str]) -> Callable[..., Any] | None:
    if request.make_inputs is None:
        return None
    return partial(request.make_inputs, **{dim: request.spec.example[dim] for dim in dims})


# ---- before the first strategy


def _survey(request: Request, wishes: Wishes, training: Sequence[str]) -> Ground:
    """Run the example, find which dims move, and choose the sizes to trace at."""
    wishes.tell("running the model")
    reference = make_reference(request, wishes.seed)
    start, example = start_sizes(reference, request)
    boundaries = make_boundaries(reference, request, start)
    boundaries.probe()
    traced = start if boundaries.pins else _trace_sizes(reference, request, boundaries, start)
    boundaries.base = traced
    started = time.monotonic()
    first = reference.run(traced) if traced != start else example
    if not boundaries.pins:
        boundaries.probe_tables(_affordable(reference, traced, time.monotonic() - started))
    notes = [*wishes.notes, *request.notes, *blind_spots(request.target.module)]
    if training:
        parts = ", ".join(f"`{name or request.target.name}`" for name in training[:3])
        more = f" and {len(training) - 3} more" if len(training) > 3 else ""
        notes.append(f"{parts}{more} in training mode: exported and compared in eval mode")
    home = span_of_definition(request.target.source)
    return Ground(request, wishes, reference, boundaries, traced, first, home, tuple(notes))


_TABLE_SECONDS = 1.0
_TABLE_ELEMENTS = 2**22


def _affordable(reference: Reference, traced: Sizes, seconds: float) -> Callable[[Sizes], bool]:
    """Whether a size is predicted to run in about a second, without filling the memory."""

    def affordable(sizes: Sizes) -> bool:
        leaves = reference.signature.values
        wanted, base = volume(reference.spec, leaves, sizes), volume(reference.spec, leaves, traced)
        return wanted <= _TABLE_ELEMENTS and max(seconds, 1e-3) * (wanted / base) ** 1.5 <= _TABLE_SECONDS

    return affordable


def make_reference(request: Request, seed: int) -> Reference:
    if request.make_inputs is not None:
        return references.from_make_inputs(
            request.target, request.signature, request.spec, request.make_inputs, seed=seed
        )
    return references.from_example(request.target, request.signature, request.spec, seed=seed)


def start_sizes(reference: Reference, request: Request) -> tuple[Sizes, Outcome]:
    """The example's sizes, moved into the declared ones, and what the model does there."""
    start = {dim: request.spec.ranges[dim].nearest(size) for dim, size in request.spec.example.items()}
    return start, _run_example(reference, request, start)


def _run_example(reference: Reference, request: Request, start: Sizes) -> Outcome:
    outcome = reference.run(start)
    if outcome.error is not None:
        error = outcome.error
        text = (str(error).splitlines() or [""])[0]
        where = f" at {references.describe(start)}" if start else ""
        raise DeclarationError(f"the model fails on the example{where}: {type(error).__name__}: {text}") from error
    if not outcome.outputs:
        raise DeclarationError(f"`{request.target.name}` returns no tensor")
    for name, output in zip(outcome.names, outcome.outputs, strict=True):
        if output.is_complex():
            raise DeclarationError(f"output `{name}` is complex, ONNX outputs are real: return torch.view_as_real() of it")
        if output.layout is not torch.strided:
            raise DeclarationError(f"output `{name}` is sparse, ONNX outputs are dense: return .to_dense() of it")
    return outcome


def make_boundaries(reference: Reference, request: Request, base: Mapping[str, int]) -> Boundaries:
    return Boundaries(
        lambda sizes: reference.run(sizes).error, request.spec.ranges, base, model_constants(request.target.module)
    )


def model_constants(module: torch.nn.Module) -> set[int]:
    """The lengths of parameters and buffers: where tables end."""
    tensors = [*module.parameters(), *module.buffers()]
    return {int(size) for tensor in tensors for size in tensor.shape if size > 1}


def _trace_sizes(reference: Reference, request: Request, boundaries: Boundaries, start: Sizes) -> Sizes:
    def works(sizes: Sizes) -> bool:
        return boundaries.holds(sizes) and reference.run(sizes).runs

    return trace_sizes(start, request.spec.ranges, model_constants(request.target.module), works)


# ---- strategies, one after the other


@dataclass(frozen=True)
class Checked:
    """A candidate with all its runs."""

    candidate: Candidate
    verification: Verification
    strategy: str
    smallest: Failure | None = None
    where: Place | None = None


def _try_strategies(ground: Ground, stage: Stage) -> tuple[Result, Sequence[str]]:
    """The first strategy whose file is right wins; what the others did stays in the result.

    With the result come the dims to try again without, where the user allows a narrower file.
    """
    attempts: list[Attempt] = []
    wrong: list[Checked] = []
    queue = [(name, partial(strategy, _job(ground))) for name, strategy in STRATEGIES]
    while queue:
        name, run = queue.pop(0)
        ground.wishes.tell(f"converting with {name}")
        candidate, attempt = run()
        if candidate is not None and not candidate.guards and (frozen := _frozen(ground, name)):
            candidate, attempt = None, replace(attempt, outcome="failed", reason=f"would freeze a decision at {frozen}")
        if candidate is None:
            attempts.append(attempt)
            continue
        ground.boundaries.suggest(guard.condition for guard in candidate.guards if guard.condition is not None)
        ground.wishes.tell(f"checking what {name} made")
        try:
            checked = _check(ground, stage, candidate, attempt)
        except _UnknownOperators as unknown:
            attempts.append(replace(attempt, outcome="failed", reason=str(unknown), error=unknown))
            if set(unknown.operators) <= set(ground.wishes.unchecked):
                return _written(ground, stage, candidate, attempts, None), ()
            return _refused(ground, attempts, [rules.unknown_operators(unknown.operators, ground.home)]), ()
        except RuntimeFailure as failure:
            attempts.append(replace(attempt, outcome="failed", reason=f"ONNX Runtime does not load it: {failure}"))
            checked = None
        if checked is not None and checked.verification.is_right:
            attempts.append(replace(attempt, outcome="checked"))
            return _accept(ground, stage, checked, attempts), ()
        if checked is not None:
            attempts.append(replace(attempt, outcome="wrong", reason=_wrong_reason(checked)))
            wrong.append(checked)
        if candidate.simpler is not None:
            queue.insert(0, (f"{name} in simpler operators", candidate.simpler))
    findings = _explain(ground, attempts, wrong)
    refusal = _refused(ground, attempts, findings, wrong[0].verification if wrong else None)
    if not ground.wishes.narrow:
        return refusal, ()
    if attempts[0].outcome == "failed" and attempts[0].pins:
        return refusal, sorted({pin.dim for pin in attempts[0].pins})
    for checked in wrong:
        if (result := _narrowed(ground, stage, checked, attempts, findings)) is not None:
            return result, ()
    return refusal, ()


_NARROWING_ROUNDS = 6


def _narrowed(
    ground: Ground, stage: Stage, checked: Checked, attempts: Sequence[Attempt], findings: Sequence[Finding]
) -> Result | None:
    """The widest part of the declaration for which this candidate is right, or None."""
    ranges = dict(ground.request.spec.ranges)
    conditions = [guard.condition for guard in checked.candidate.guards if guard.condition is not None]
    known = len(ground.boundaries.limits)
    for _ in range(_NARROWING_ROUNDS):
        assumed = assumed_conditions(checked.verification, conditions)
        if assumed:
            ground.boundaries.limits += [Limit(condition, of_export=True) for condition in assumed]
            conditions = [condition for condition in conditions if condition not in assumed]
        else:
            cut = cut_ranges(ranges, checked.verification, ground.traced)
            if cut == ranges:
                break
            ranges = cut
        attempt = next(a for a in attempts if a.strategy == checked.strategy)
        checked = _check(ground, stage, checked.candidate, attempt, ranges)
        if checked.verification.is_right:
            winner = checked.strategy
            told = [replace(a, outcome="narrowed") if a.strategy == winner else a for a in attempts]
            return _written(ground, stage, checked.candidate, told, checked.verification, "narrowed", findings, ranges)
    del ground.boundaries.limits[known:]
    return None


def _frozen(ground: Ground, strategy: str) -> str:
    """Where TorchScript would keep one path of a decision on values; it has no guards that would tell."""
    if strategy != "TorchScript":
        return ""
    places = ground.reference.value_decisions(ground.first)
    return ", ".join(str(place or ground.home) for place in places)


def _job(ground: Ground) -> Job:
    request = ground.request
    names = request.spec.inputs(request.signature)
    leaves = tuple((name, ground.first.leaves[name]) for name in names)
    adapter = Adapter(request.target, request.signature, names)
    return Job(adapter, leaves, request.spec, ground.wishes.opset, ground.wishes.opset_is_fixed, ground.wishes.extra)


class _UnknownOperators(Exception):
    def __init__(self, operators: Sequence[str]) -> None:
        super().__init__(f"ONNX Runtime has no {', '.join(operators)}")
        self.operators = list(operators)


def _check(
    ground: Ground,
    stage: Stage,
    candidate: Candidate,
    attempt: Attempt,
    ranges: Mapping[str, SizeRange] | None = None,
) -> Checked:
    """Write the candidate to the temporary folder and run the full policy on it."""
    wishes, request = ground.wishes, ground.request
    _finish(ground, candidate)
    stage.write(candidate.model, external_data=wishes.external_data)
    session, computed_in = _load(stage, candidate.model, wishes)
    proto = onnx.load(stage.path, load_external_data=False)
    leaves = tuple(request.spec.inputs(request.signature))
    tolerance = tolerance_for((node.op_type for node in proto.graph.node), wishes.tolerance)
    checker = Checker(session, read_interface(proto), ground.reference, leaves, tolerance, computed_in)
    ranges = ranges or request.spec.ranges
    box = closed_box(ranges, ground)
    in_guards = sorted({constant for guard in candidate.guards for constant in guard.constants})
    constants = (*in_guards, *finishing.integers_of(candidate.model))
    plan = Plan(
        box, ground.traced, constants, tuple(g.holds for g in candidate.guards), ground.boundaries.admit,
        wishes.tier, wishes.seed, not any(declared.is_open for declared in ranges.values()),
    )  # fmt: skip
    budget = Budget(wishes.seconds if wishes.seconds is not None else max(10.0, attempt.seconds), available_memory() // 4)
    verification = verify(checker, plan, ground.boundaries, budget)
    if not verification.failures:
        return Checked(candidate, verification, attempt.strategy)
    extra = Budget(max(2.0, budget.remaining))
    smallest = smallest_failure(checker, verification.failures, plan, extra)
    where = first_difference(proto, checker, smallest)
    return Checked(candidate, verification, attempt.strategy, smallest, where)


def closed_box(ranges: Mapping[str, SizeRange], ground: Ground) -> dict[str, SizeRange]:
    limits = ground.boundaries.limits
    return {
        dim: horizon(effective_range(declared, limits, dim), ground.traced[dim]) for dim, declared in ranges.items()
    }


def available_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 8 * 2**30


def _load(stage: Stage, model: ir.Model, wishes: Wishes) -> tuple[Session, torch.dtype | None]:
    """The file in ONNX Runtime; where it cannot run bfloat16, the same graph in float32."""
    try:
        return Session(stage.path, providers=wishes.providers, libraries=wishes.libraries), None
    except RuntimeFailure:
        if unknown := foreign_operators(model):
            raise _UnknownOperators(unknown) from None
        if not holds_bfloat16(model):
            raise
    path = stage.path.with_name("widened.onnx")
    ir.save(widened(model), path)
    return Session(path, providers=wishes.providers, libraries=wishes.libraries), torch.float32


_KNOWN_DOMAINS = ("", "ai.onnx", "ai.onnx.ml", "com.microsoft")


def foreign_operators(model: ir.Model) -> list[str]:
    """Operators of domains that ONNX Runtime does not come with."""
    defined = {(function.domain, function.name) for function in model.functions.values()}
    nodes = ir.traversal.RecursiveGraphIterator(model.graph)
    used = {(n.domain, n.op_type) for n in nodes if n.domain not in _KNOWN_DOMAINS}
    return sorted(f"{domain}::{name}" for domain, name in used - defined)


# ---- names and dims


def _finish(ground: Ground, candidate: Candidate) -> None:
    """Give the candidate the user's names; output axes that vary stay open until all runs have shown what they are."""
    request, spec = ground.request, ground.request.spec
    inputs = []
    for (leaf, value), port in zip(_job(ground).leaves, _input_ports(request), strict=True):
        if isinstance(value, torch.Tensor):
            axes: Sequence[int | Expression | None] = [
                n if e is None else e for e, n in zip(spec.axes[leaf], value.shape, strict=True)
            ]
        else:
            axes = []
        inputs.append((port, axes, _ir_dtype(value)))
    finishing.finish(candidate.model, candidate.opset, inputs, output_names(ground))


def _input_ports(request: Request) -> list[str]:
    return [request.input_names.get(leaf, leaf) for leaf in request.spec.inputs(request.signature)]


def _ir_dtype(value: Any) -> ir.DataType:
    if isinstance(value, torch.Tensor):
        return ir.DataType.from_numpy(torch.empty(0, dtype=value.dtype).numpy().dtype) if value.dtype != torch.bfloat16 else ir.DataType.BFLOAT16
    return ir.DataType.FLOAT if isinstance(value, float) else ir.DataType.INT64


def output_names(ground: Ground) -> list[str]:
    """The user's names or the leaves' own; input names are sacred, so a clashing output gets a suffix."""
    given, found = ground.request.output_names, ground.first.names
    if given is not None and len(given) > len(found):
        raise DeclarationError(f"output_names has {len(given)} names but the model returns {len(found)} outputs: {list(found)}")
    names = [*(given or ()), *found[len(given or ()) :]]
    taken = set(_input_ports(ground.request))
    unique = []
    for name in names:
        free = name
        while free in taken:
            free += "_out"
        taken.add(free)
        unique.append(free)
    return unique


# ---- the end


def _accept(ground: Ground, stage: Stage, checked: Checked, attempts: Sequence[Attempt]) -> Result:
    """The file is right where it was run: is that all that the user declared?"""
    findings = limits_against_declaration(ground)
    if findings and not ground.wishes.narrow:
        return _refused(ground, attempts, findings, checked.verification)
    verdict: Verdict = "narrowed" if findings else "checked"
    return _written(ground, stage, checked.candidate, attempts, checked.verification, verdict, findings)


def limits_against_declaration(ground: Ground) -> list[Finding]:
    """Limits that exclude sizes which the user wrote, or leave a dim a single size."""
    spec, boundaries = ground.request.spec, ground.boundaries
    findings = []
    for limit in boundaries.limits:
        names = limit.condition.names
        if len(names) != 1:
            continue
        dim = names[0]
        left = effective_range(spec.ranges[dim], boundaries.limits, dim)
        single = not left.is_open and len(left) == 1 and (spec.ranges[dim].is_open or len(spec.ranges[dim]) > 1)
        if dim in spec.explicit or single:
            findings.append(rules.limited_in_pytorch(limit, dim, spec.ranges[dim], ground.home))
    return findings


def _written(
    ground: Ground,
    stage: Stage,
    candidate: Candidate,
    attempts: Sequence[Attempt],
    verification: Verification | None,
    verdict: Verdict | None = None,
    findings: Sequence[Finding] = (),
    ranges: Mapping[str, SizeRange] | None = None,
) -> Result:
    """Write the final dims and the contract, and move the file to its place."""
    request, wishes, spec = ground.request, ground.wishes, ground.request.spec
    limits = ground.boundaries.limits
    if verification is None:
        verdict = "unchecked"
        _finish(ground, candidate)
    assert verdict is not None
    observations = verification.observations if verification else [_observe(ground.first)]
    notes = [*ground.notes, *_unexplained(ground)]
    fitted = fit_outputs(observations, candidate.outputs, _declared_expressions(request))
    axes, formulas = _output_axes(ground, fitted, notes)
    finishing.set_output_axes(candidate.model, axes)
    final_ranges = {d: effective_range(r, limits, d) for d, r in (ranges or spec.ranges).items()}
    contract = Contract(
        final_ranges, tuple(limit.condition for limit in limits), formulas, spec.constants, verdict, _version()
    )
    finishing.metadata(candidate.model, {**wishes.metadata, KEY: contract.to_text()})
    stage.write(candidate.model, external_data=wishes.external_data)
    if verification is not None and verification.computed_in is None:
        Session(stage.path, providers=wishes.providers, libraries=wishes.libraries)  # the final bytes load
    interface = read_interface(onnx.load(stage.path, load_external_data=False))
    stage.commit()
    return Result(
        verdict,
        interface.inputs,
        interface.outputs,
        final_ranges,
        tuple(str(limit) for limit in limits if not limit.of_export),
        spec.constants,
        tuple(attempts),
        (),
        verification,
        tuple(findings),
        tuple(notes),
        wishes.destination,
        candidate.opset,
        sum(attempt.seconds for attempt in attempts),
        given_up=_given_up(ground, final_ranges),
        _model=candidate.model,
    )


def _given_up(ground: Ground, ranges: Mapping[str, SizeRange]) -> tuple[str, ...]:
    """What a narrowed file does not serve although it was declared."""
    limits = ground.boundaries.limits
    wanted = {dim: effective_range(declared, [lim for lim in limits if not lim.of_export], dim) for dim, declared in ground.request.spec.ranges.items()}
    cut = [f"{dim} {ranges[dim]} instead of {declared}" for dim, declared in wanted.items() if ranges[dim] != declared]
    explicit = [f"{d} {r} instead of {ground.request.spec.ranges[d]}" for d, r in wanted.items() if d in ground.request.spec.explicit and r != ground.request.spec.ranges[d] and ranges[d] == r]
    return (*(f"only where {limit}" for limit in limits if limit.of_export), *cut, *explicit)


def _version() -> str:
    import anyshape

    return anyshape.__version__


def _observe(outcome: Outcome) -> Observation:
    return Observation(dict(outcome.sizes), tuple(tuple(o.shape) for o in outcome.outputs))


def _unexplained(ground: Ground) -> list[str]:
    found = ground.boundaries.unexplained
    if not found:
        return []
    sizes, error = found[0]
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    reason = (str(error).splitlines() or [""])[0]
    return [
        f"PyTorch fails at {references.describe(sizes)}{more} by no rule that was found "
        f"({type(error).__name__}: {reason}); if the call is to blame, give make_inputs="
    ]


def _declared_expressions(request: Request) -> list[Expression]:
    rows = [e for row in request.spec.axes.values() for e in row if e is not None]
    return list(dict.fromkeys([*rows, *request.spec.scalars.values()]))


def _output_axes(
    ground: Ground, fitted: Sequence[Sequence[FittedAxis] | None], notes: list[str]
) -> tuple[list[list[int | str] | None], dict[str, tuple[str, ...]]]:
    """What is written for every output axis, and its formula for the contract."""
    request = ground.request
    rows: list[list[int | str] | None] = []
    formulas = {}
    for name, row in zip(output_names(ground), fitted, strict=True):
        if row is None:
            rows.append(None)
            notes.append(f"the number of axes of output `{name}` depends on the sizes, so the file declares none")
            continue
        labels = {axis % max(len(row), 1): label for axis, label in request.labels.get(name, {}).items()}
        written: list[int | str] = []
        for axis, size in enumerate(row):
            written.append(_written_axis(name, axis, size, labels.get(axis), request, notes))
        rows.append(written)
        formulas[name] = tuple("?" if size is None else str(size) for size in row)
    return rows, formulas


def _written_axis(
    name: str, axis: int, size: FittedAxis, label: str | None, request: Request, notes: list[str]
) -> int | str:
    if isinstance(size, int):
        if label is not None:
            notes.append(f"axis {axis} of output `{name}` is always {size}; the label `{label}` is not written")
        return size
    own = "".join(c if c.isalnum() or c == "_" else "_" for c in name) + f"_dim{axis}"
    if label is None or size is not None and str(size) == label:
        return own if size is None else str(size)
    if label in request.spec.ranges:
        notes.append(f"axis {axis} of output `{name}` is `{size or own}`, not `{label}`")
        return own if size is None else str(size)
    return label


def _explain(ground: Ground, attempts: Sequence[Attempt], wrong: Sequence[Checked]) -> list[Finding]:
    """One finding per cause: the first wrong file, or the dims that tracing pinned, or why nothing was converted."""
    pinned = [finding for attempt in attempts[:1] for finding in rules.pinned_by_export(attempt, ground.home)]
    if attempts and attempts[0].outcome == "failed" and pinned:
        return pinned
    places = ground.reference.value_decisions(ground.first)
    if places and not wrong:
        return rules.frozen_decisions(places, ground.home)
    if wrong:
        first = wrong[0]
        assert first.smallest is not None
        return [rules.wrong_file(first.smallest, first.verification, first.candidate.guards, ground.home, first.where)]
    return pinned or [rules.not_converted(attempts, ground.home)]


def _wrong_reason(checked: Checked) -> str:
    failure = checked.smallest
    if failure is None:
        return "no size could be run"
    where = f" at {references.describe(failure.sizes)}" if failure.sizes else ""
    return f"{failure.sentence}{where}"


def _refused(
    ground: Ground, attempts: Sequence[Attempt], findings: Sequence[Finding], verification: Verification | None = None
) -> Result:
    spec = ground.request.spec
    return Result(
        "refused",
        dims=spec.ranges,
        limits=tuple(str(limit) for limit in ground.boundaries.limits),
        constants=spec.constants,
        attempts=tuple(attempts),
        verification=verification,
        findings=tuple(findings),
        notes=(*ground.notes, *_unexplained(ground)),
        seconds=sum(attempt.seconds for attempt in attempts),
    )


__all__ = ["Interface", "export"]
