"""`check`: a file, by whomever, against its model at sizes of our own choosing; or, without a model, against itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import onnx
import onnx_ir as ir
import torch

from anyshape.bench.bench import Budget, Checker, smallest_failure, tolerance_for, verify
from anyshape.bench.judgement import Tolerance
from anyshape.bench.plan import Plan, Tier, choose_tier, horizon
from anyshape.declaration.dims import unnamed
from anyshape.declaration.options import check_options
from anyshape.declaration.torch_forms import as_identifier
from anyshape.diagnosis import wording
from anyshape.errors import DeclarationError
from anyshape.model.limits import Boundaries, Limit
from anyshape.model.oracle import Outcome, Reference
from anyshape.model.request import Request, understand
from anyshape.model.survey import make_boundaries, make_reference, start_sizes
from anyshape.onnxfile.contract import read_contract
from anyshape.onnxfile.integers import integers_of
from anyshape.onnxfile.interface import Interface, Port, read_interface, unused_inputs
from anyshape.onnxfile.untrusted import load_checked
from anyshape.results.finding import Finding
from anyshape.results.result import ExportError, Result
from anyshape.results.unknown_operators import not_loaded
from anyshape.results.verification import Failure, Verification
from anyshape.runtime.custom_ops import CustomOps, understand_custom_ops
from anyshape.runtime.session import RuntimeFailureError, Session
from anyshape.sizes.notation import Condition, SizeRange, Sizes, did_you_mean, parse_expression
from anyshape.source.stacks import span_of_definition
from anyshape.torchkit import capture
from anyshape.torchkit.state import untouched
from anyshape.verification.first_wrong_node import first_difference


def check(
    f: str | os.PathLike[str],
    model: Any = None,
    args: Any = (),
    *,
    kwargs: Mapping[str, Any] | None = None,
    examples: Any = None,
    dims: Mapping[str, Any] | None = None,
    sizes: Mapping[str, Any] | None = None,
    where: Sequence[str] = (),
    make_inputs: Callable[..., Any] | None = None,
    atol: float | None = None,
    rtol: float | None = None,
    budget: float | None = None,
    quick: bool = False,
    thorough: bool = False,
    at: Mapping[str, int] | None = None,
    seed: int = 0,
    providers: Sequence[str] | None = None,
    custom_ops: Sequence[Any] | Mapping[str, Callable[..., Any]] = (),
) -> Result:
    """Verify a file; ExportError with the finding where it is wrong, so that a test can simply call this.

    Without `dims`, the file's own names say what varies. Without `model`, the file is run at many sizes and held to the
    shapes that it declares itself. `at` runs one size only.
    """
    check_options(
        atol=atol,
        rtol=rtol,
        budget=budget,
        seed=seed,
        make_inputs=make_inputs,
        providers=providers,
    )
    computed_by = understand_custom_ops(custom_ops)
    if not isinstance(f, (str, os.PathLike)):
        raise DeclarationError(f"`f` is a {type(f).__name__}: pass the path of an ONNX file")
    path = Path(f)
    proto = load_checked(path)
    tier = choose_tier(quick=quick, thorough=thorough)
    if model is None:
        from anyshape.verification.file_alone import check_alone

        _refuse_what_needs_a_model(
            dims=dims, make_inputs=make_inputs, examples=examples, atol=atol, rtol=rtol, kwargs=kwargs
        )
        result = check_alone(
            path, proto, sizes=sizes, where=where, budget=budget, at=at, seed=seed, providers=providers, tier=tier,
            custom_ops=computed_by,
        )  # fmt: skip
    else:
        from anyshape.bench.judgement import Tolerance

        request = request_for(proto, model, args, kwargs, dims, sizes, where, make_inputs, examples)
        wishes = CheckWishes(Tolerance(atol, rtol), budget, tier, at, seed, providers, computed_by)
        result = check_against(path, proto, request, wishes)
    if result.verdict == "refused":
        raise ExportError(result)
    return result


def _refuse_what_needs_a_model(**arguments: Any) -> None:
    given = [name for name, value in arguments.items() if value is not None]
    if given:
        raise DeclarationError(f"{given[0]}= is about the model, but no model is given: pass it as the second argument")


_DEFAULT_SECONDS = 10.0
_LOSS_FACTOR = 4.0
"""How much more than at the example's size a narrow file may lose at another size."""
_TOO_COARSE = (
    "the file computes in a narrower type and loses more than a tenth of the largest value at the example's own size: "
    "too coarse to tell a size bug from the loss of precision"
)
_LARGEST_LOSS = 0.1
"""Of the largest value: a file that loses more at the example's own size is too coarse to tell a size bug."""


@dataclass(frozen=True)
class CheckWishes:
    """How to check, as the user asked for it."""

    tolerance: Tolerance = field(default_factory=Tolerance)
    seconds: float | None = None
    tier: Tier = "normal"
    at: Mapping[str, int] | None = None
    seed: int = 0
    providers: Sequence[str] | None = None
    custom_ops: CustomOps = field(default_factory=CustomOps)


@dataclass(frozen=True)
class Bench:
    """The file and its model side by side, ready to be run."""

    checker: Checker
    boundaries: Boundaries
    plan: Plan
    example: Outcome


def request_for(
    proto: onnx.ModelProto,
    model: Any,
    args: Any,
    kwargs: Mapping[str, Any] | None,
    dims: Mapping[str, Any] | None,
    sizes: Mapping[str, Any] | None,
    where: Sequence[str],
    make_inputs: Callable[..., Any] | None,
    examples: Any = None,
) -> Request:
    """The user's declaration; what is missing is read from the file: names from its inputs, sizes from its contract."""
    interface = read_interface(proto)
    read = partial(understand, model, args, kwargs, make_inputs=make_inputs, examples=examples)
    if dims is None:
        bare = read(dims={})
        names = {port.name for port in interface.inputs}
        leaves = [leaf for leaf in bare.signature.leaves if leaf.is_tensor or leaf.name in names]
        present = _in_file(interface, [leaf.name for leaf in leaves])  # whether the others matter is asked later
        leaves = [leaf for leaf in leaves if leaf.name in present]
        ports = match_ports(interface.inputs, present)
        alone = {axis for port in interface.inputs for axis in port.axes or () if isinstance(axis, str)}
        dims = {leaf.name: _axes(ports[leaf.name], leaf.name, alone) for leaf in leaves}
    request = read(dims=dims, sizes=sizes, where=where)
    contract = read_contract(proto)
    if contract is None or (sizes is not None and where):
        return request
    known = request.spec.ranges
    if sizes is None:
        sizes = {dim: declared for dim, declared in contract.dims.items() if dim in known}
    where = where or [str(condition) for condition in contract.where if set(condition.names) <= set(known)]
    return read(dims=dims, sizes=sizes, where=where)


def _readable(name: str, alone: set[str]) -> str:
    """A file may call a dim anything: an expression if its names stand alone on other axes, else underscores."""
    try:
        expression = parse_expression(name)
    except DeclarationError:
        return as_identifier(name)
    return expression.text if set(expression.names) <= alone else as_identifier(name)


def _axes(port: Port, leaf: str, alone: set[str]) -> dict[int, str] | str:
    """An input's axes as a declaration; an unnamed one gets a name, an odd name underscores."""
    if port.axes == ():
        return ""
    found = {}
    for axis, declared in enumerate(port.axes or ()):
        if isinstance(declared, str):
            found[axis] = _readable(declared, alone)
        elif declared is None:
            found[axis] = unnamed(leaf, axis)
    return found


def match_ports(ports: Sequence[Port], leaves: Sequence[str]) -> dict[str, Port]:
    """Leaf -> input of the file: by name where all names agree, else in order."""
    by_name = {port.name: port for port in ports}
    if set(by_name) == set(leaves):
        return {leaf: by_name[leaf] for leaf in leaves}
    if len(ports) != len(leaves):
        missing = next((leaf for leaf in leaves if leaf not in by_name), None)
        more = f"; the call's `{missing}` is not in the file{did_you_mean(missing, by_name)}" if missing else ""
        raise DeclarationError(f"the file has {len(ports)} inputs ({', '.join(by_name)}), the call {len(leaves)}{more}")
    return dict(zip(leaves, ports, strict=True))


def check_against(path: Path, proto: onnx.ModelProto, request: Request, wishes: CheckWishes) -> Result:
    """Run the file and the model at the planned sizes; the verdict is `checked` or `refused`."""
    interface = read_interface(proto)
    home = span_of_definition(request.target.source)
    result = Result(
        "refused", interface.inputs, interface.outputs, request.spec.ranges, constants=request.spec.constants,
        path=path, opset=next((o.version for o in proto.opset_import if o.domain == ""), None), what="check",
        where=tuple(map(str, request.spec.where)),
    )  # fmt: skip
    with capture.quiet(), untouched(request.target.module):
        reference = make_reference(request, wishes.seed)
        start, example = start_sizes(reference, request)
        try:
            session = wishes.custom_ops.open(path, wishes.providers)
        except RuntimeFailureError as failure:
            return replace(result, findings=not_loaded(failure, proto, wishes.custom_ops, home))
        if reference.is_random(example):
            return replace(result, findings=(wording.random_output(example.names, home),))
        if lost := _lost(interface, request, reference, example):
            return replace(result, findings=(wording.lost_input(lost, home),))
        bench = _prepare(proto, interface, request, wishes, session, reference, start, example)
        bench, verification, notes = _verify(bench, proto, wishes)
        findings = _findings(bench, proto, verification, request)
    return replace(
        result,
        verdict="refused" if findings else "checked",
        limits=tuple(str(limit) for limit in bench.boundaries.limits if not limit.of_export),
        given_up=tuple(f"only where {limit}" for limit in bench.boundaries.limits if limit.of_export),
        verification=verification,
        findings=tuple(findings),
        notes=(*request.notes, *notes, *wishes.custom_ops.notes_on(proto)),
    )


def _in_file(interface: Interface, names: Sequence[str]) -> list[str]:
    """The call's inputs that the file has, where it has no others: an exporter drops what the model ignores."""
    ports = {port.name for port in interface.inputs}
    return [name for name in names if name in ports] if ports < set(names) else list(names)


def _lost(interface: Interface, request: Request, reference: Reference, example: Outcome) -> list[str]:
    """Inputs of the call that the file does not have although they matter."""
    names = {request.input_names[leaf]: leaf for leaf in request.spec.inputs(request.signature)}
    missing = set(names) - set(_in_file(interface, list(names)))
    return [name for name, leaf in names.items() if name in missing and reference.depends_on(leaf, example)]


def _prepare(
    proto: onnx.ModelProto,
    interface: Interface,
    request: Request,
    wishes: CheckWishes,
    session: Session,
    reference: Reference,
    start: Sizes,
    example: Outcome,
) -> Bench:
    spec = request.spec
    names = [request.input_names[leaf] for leaf in spec.inputs(request.signature)]
    ports = match_ports(interface.inputs, _in_file(interface, names))
    leaf_of = {port.name: leaf for leaf, port in ports.items()}
    leaves = tuple(leaf_of[port.name] for port in interface.inputs)
    tolerance = tolerance_for((node.op_type for node in proto.graph.node), wishes.tolerance)
    boundaries = make_boundaries(reference, request, start)
    contract = read_contract(proto)
    if contract is not None:
        claimed = [c for c in (*contract.limits, *contract.conditions) if set(c.names) <= set(spec.ranges)]
        boundaries = boundaries.with_limits(_confirmed(c, reference, start) for c in claimed if c.holds(start))
    boundaries.probe()
    box = {dim: horizon(declared, start[dim]) for dim, declared in spec.ranges.items()}
    closed = not any(declared.is_open for declared in spec.ranges.values())
    constants = integers_of(ir.from_proto(proto))
    plan = Plan(box, start, constants, (), boundaries.admit, wishes.tier, wishes.seed, is_closed=closed)
    plan = plan if wishes.at is None else _only(plan, wishes.at)
    return Bench(Checker(session, interface, reference, leaves, tolerance), boundaries, plan, example)


def _confirmed(condition: Condition, reference: Reference, start: Sizes) -> Limit:
    """A file is not believed: what it calls the model's limit is the file's own, unless PyTorch fails beyond it."""
    for dim in condition.names:
        size = start[dim]
        for moved in (size + 1, size - 1, 2 * size, 4 * size + 1, *_just_beyond(condition)):
            sizes = {**start, dim: moved}
            if moved > 0 and not condition.holds(sizes) and (error := reference.run(sizes).error) is not None:
                return Limit(condition, error, sizes)
    return Limit(condition, of_export=True)


def _just_beyond(condition: Condition) -> tuple[int, ...]:
    if condition.right.names:
        return ()
    number = condition.right.value({})
    return (number + 1, number - 1)


def _only(plan: Plan, at: Mapping[str, int]) -> Plan:
    """The plan of one size."""
    unknown = [dim for dim in at if dim not in plan.box]
    if unknown:
        raise DeclarationError(f"no dim is called `{unknown[0]}`{did_you_mean(unknown[0], plan.box)}")
    sizes = {dim: at.get(dim, plan.traced[dim]) for dim in plan.box}
    return replace(plan, box={dim: SizeRange(size, size) for dim, size in sizes.items()}, traced=sizes)


def _verify(bench: Bench, proto: onnx.ModelProto, wishes: CheckWishes) -> tuple[Bench, Verification, list[str]]:
    """The full run; a file in a narrower type than its model is held to its own loss at the example's size."""
    seconds = wishes.seconds if wishes.seconds is not None else _DEFAULT_SECONDS
    verification = verify(bench.checker, bench.plan, bench.boundaries, Budget(seconds))
    loss = _loss(bench, proto) if verification.failures and not wishes.tolerance.is_given else None
    if loss is None:
        coarse = bool(verification.failures) and not wishes.tolerance.is_given and _is_narrow(proto)
        return bench, verification, [_TOO_COARSE] if coarse else []
    allowed = min(loss * _LOSS_FACTOR, 2 * _LARGEST_LOSS)
    bench = replace(bench, checker=replace(bench.checker, tolerance=Tolerance(of_largest=allowed)))
    note = f"the file computes in a narrower type: at the example's size it loses {loss:.1e} of the largest value"
    verification = verify(bench.checker, bench.plan, bench.boundaries, Budget(seconds))
    return bench, verification, [f"{note}, and {_LOSS_FACTOR:g} times that is allowed elsewhere"]


def _loss(bench: Bench, proto: onnx.ModelProto) -> float | None:
    """What a narrow file loses at the example's own size, relative to the largest value; None for any other file."""
    if not _is_narrow(proto):
        return None
    tolerant = replace(bench.checker, tolerance=Tolerance(of_largest=_LARGEST_LOSS))
    second = bench.checker.reference.run(bench.example.sizes, 1)
    judged = [tolerant.judge(outcome) for outcome in (bench.example, second)]
    if any(isinstance(one, Failure) for one in judged):
        return None
    return max(
        torch.finfo(torch.float16).eps, *(one.ratio * _LARGEST_LOSS for one in judged if not isinstance(one, Failure))
    )


_NARROW_TYPES = {
    onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16, onnx.TensorProto.INT8, onnx.TensorProto.UINT8,
    onnx.TensorProto.INT4, onnx.TensorProto.UINT4,
}  # fmt: skip
_QUANTISERS = {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulNBits", "MatMulInteger"}


def _is_narrow(proto: onnx.ModelProto) -> bool:
    quantised = any(node.op_type in _QUANTISERS for node in proto.graph.node)
    return quantised or any(tensor.data_type in _NARROW_TYPES for tensor in proto.graph.initializer)


def _findings(bench: Bench, proto: onnx.ModelProto, verification: Verification, request: Request) -> list[Finding]:
    home = span_of_definition(request.target.source)
    if not verification.failures:
        return [] if verification.checks else [Finding("runtime-error", "no size could be run", home)]
    smallest = smallest_failure(bench.checker, verification.failures, bench.plan, Budget(2.0))
    where = first_difference(proto, bench.checker, smallest)
    return [wording.wrong_file(smallest, verification, (), home, where, unused_inputs(proto))]
