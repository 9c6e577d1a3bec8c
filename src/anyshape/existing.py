"""`check`: a file, by whomever, against its model at sizes of our own choosing; or, without a model, against itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import onnx

from anyshape.declaration.notation import SizeRange, did_you_mean
from anyshape.diagnosis.findings import Finding, Span
from anyshape.errors import DeclarationError, ExportError
from anyshape.onnxfile.contract import Contract, read_contract
from anyshape.onnxfile.interface import Interface, Port, read_interface
from anyshape.onnxfile.loading import load_checked
from anyshape.result import Result

if TYPE_CHECKING:
    from anyshape.declaration.requests import Request
    from anyshape.verification.checking import Checker, Verification
    from anyshape.verification.sizes import Plan

_LOSS_FACTOR = 4.0
"""How much more than at the example's size a narrow file may lose at another size."""


def check(
    f: str | os.PathLike[str],
    model: Any = None,
    args: Any = (),
    *,
    kwargs: Mapping[str, Any] | None = None,
    dims: Mapping[str, Any] | None = None,
    sizes: Mapping[str, Any] | None = None,
    make_inputs: Callable[..., Any] | None = None,
    atol: float | None = None,
    rtol: float | None = None,
    budget: float | None = None,
    quick: bool = False,
    thorough: bool = False,
    at: Mapping[str, int] | None = None,
    seed: int = 0,
    providers: Sequence[str] | None = None,
    custom_ops: Sequence[str] = (),
) -> Result:
    """Verify a file; ExportError with the finding where it is wrong, so that a test can simply call this.

    Without `dims`, the file's own names say what varies. Without `model`, the file is run at many sizes and held to the
    shapes that it declares itself. `at` runs one size only.
    """
    path = Path(f)
    proto = load_checked(path)
    if model is None:
        from anyshape.onnxfile.selfcheck import check_alone

        tier: Any = "quick" if quick else "thorough" if thorough else "normal"
        result = check_alone(path, proto, sizes=sizes, budget=budget, at=at, seed=seed, providers=providers, tier=tier)
    else:
        from anyshape.declaration.requests import understand
        from anyshape.pipeline import choose_tier

        declared = dims if dims is not None else _dims_of_file(read_interface(proto), model, args, kwargs, make_inputs)
        ranges = sizes if sizes is not None else _sizes_of_contract(read_contract(proto), declared)
        request = understand(model, args, kwargs, dims=declared, sizes=ranges, make_inputs=make_inputs)
        tier = choose_tier(quick=quick, thorough=thorough)
        result = _check_against(
            path, proto, request, tolerance=(atol, rtol), budget=budget, tier=tier, at=at, seed=seed,
            providers=providers, libraries=custom_ops,
        )  # fmt: skip
    if result.verdict == "refused":
        raise ExportError(result)
    return result


def _dims_of_file(interface: Interface, model: Any, args: Any, kwargs: Any, make_inputs: Any) -> dict[str, Any]:
    """The file's own declaration, keyed by the leaves of the call."""
    from anyshape.declaration.requests import understand

    bare = understand(model, args, kwargs, dims={}, make_inputs=make_inputs)
    leaves = [leaf for leaf in bare.signature.leaves if leaf.is_tensor]
    ports = match_ports(interface.inputs, [leaf.name for leaf in leaves])
    return {leaf: _axes_text(port, leaf) for leaf, port in ports.items() if port.axes}


def _axes_text(port: Port, leaf: str) -> dict[int, str]:
    from anyshape.declaration.dims import unnamed

    found = {}
    for axis, declared in enumerate(port.axes or ()):
        if isinstance(declared, str):
            plain = "".join(c if c.isalnum() or c in "_+-*/%() " else "_" for c in declared)
            found[axis] = plain
        elif declared is None:
            found[axis] = unnamed(leaf, axis)
    return found


def _sizes_of_contract(contract: Contract | None, declared: Mapping[str, Any]) -> dict[str, SizeRange] | None:
    if contract is None:
        return None
    text = " ".join(str(value) for value in declared.values())
    return {dim: sizes for dim, sizes in contract.dims.items() if dim in text}


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


def _check_against(
    path: Path,
    proto: onnx.ModelProto,
    request: Request,
    *,
    tolerance: tuple[float | None, float | None],
    budget: float | None,
    tier: Any,
    at: Mapping[str, int] | None,
    seed: int,
    providers: Sequence[str] | None,
    libraries: Sequence[str],
) -> Result:
    import onnx_ir as ir

    from anyshape._torch import capture
    from anyshape._torch.state import untouched
    from anyshape.conversion.finishing import integers_of
    from anyshape.diagnosis.provenance import span_of_definition
    from anyshape.survey import make_boundaries, make_reference, start_sizes
    from anyshape.verification.checking import Budget, Checker, tolerance_for, verify
    from anyshape.verification.comparison import Tolerance
    from anyshape.verification.runtime import RuntimeFailureError, Session
    from anyshape.verification.sizes import Plan, horizon

    spec = request.spec
    interface = read_interface(proto)
    home = span_of_definition(request.target.source)
    ports = match_ports(interface.inputs, [request.input_names[leaf] for leaf in spec.inputs(request.signature)])
    leaf_of = {port.name: leaf for leaf, port in ports.items()}
    with untouched(request.target.module), capture.quiet():
        reference = make_reference(request, seed)
        start, example = start_sizes(reference, request)
        try:
            session = Session(path, providers=providers, libraries=libraries)
        except RuntimeFailureError as failure:
            finding = Finding("runtime-error", f"ONNX Runtime does not load the file: {failure}", home)
            return Result(
                "refused",
                interface.inputs,
                interface.outputs,
                spec.ranges,
                findings=(finding,),
                path=path,
                what="check",
            )
        boundaries = make_boundaries(reference, request, start)
        boundaries.probe()
        leaves = tuple(leaf_of[port.name] for port in interface.inputs)
        allowed = tolerance_for((node.op_type for node in proto.graph.node), Tolerance(*tolerance))
        checker = Checker(session, interface, reference, leaves, allowed)
        box = {d: horizon(r, start[d]) for d, r in spec.ranges.items()}
        model = ir.from_proto(proto)
        closed = not any(r.is_open for r in spec.ranges.values())
        plan = Plan(box, start, integers_of(model), (), boundaries.admit, tier, seed, closed)
        if at is not None:
            plan = _only(plan, at)
        seconds = Budget(budget if budget is not None else 10.0)
        verification = verify(checker, plan, boundaries, seconds)
        notes = list(request.notes)
        if verification.failures and (loss := _loss(checker, example, proto)):
            checker = Checker(session, interface, reference, leaves, Tolerance(of_largest=loss * _LOSS_FACTOR))
            verification = verify(checker, plan, boundaries, Budget(seconds.seconds))
            notes.append(
                f"the file computes in a narrower type: at the example's size it loses {loss:.1e} of the largest "
                f"value, and {_LOSS_FACTOR:g} times that is allowed elsewhere"
            )
        findings = _findings(proto, checker, verification, plan, home)
    return Result(
        "refused" if findings else "checked",
        interface.inputs,
        interface.outputs,
        spec.ranges,
        tuple(str(limit) for limit in boundaries.limits),
        spec.constants,
        verification=verification,
        findings=tuple(findings),
        notes=tuple(notes),
        path=path,
        opset=next((o.version for o in proto.opset_import if o.domain == ""), None),
        what="check",
    )


def _only(plan: Plan, at: Mapping[str, int]) -> Plan:
    from dataclasses import replace

    unknown = [dim for dim in at if dim not in plan.box]
    if unknown:
        raise DeclarationError(f"no dim is called `{unknown[0]}`{did_you_mean(unknown[0], plan.box)}")
    fixed = {dim: SizeRange(lo=at.get(dim, plan.traced[dim]), hi=at.get(dim, plan.traced[dim])) for dim in plan.box}
    return replace(plan, box=fixed, traced={dim: box.lo for dim, box in fixed.items()})


def _loss(checker: Checker, example: Any, proto: onnx.ModelProto) -> float | None:
    """What a narrow file loses at the example's own size, relative to the largest value; None for any other file."""
    if not _is_narrow(proto):
        return None
    import torch

    from anyshape.verification.checking import Failure
    from anyshape.verification.comparison import Tolerance

    wide = Tolerance(of_largest=0.25)
    tolerant = type(checker)(checker.session, checker.interface, checker.reference, checker.leaves, wide)
    judged = tolerant.judge(example)
    if isinstance(judged, Failure):
        return None  # a quarter of the largest value is no rounding
    return max(judged.ratio * 0.25, torch.finfo(torch.float16).eps)


_NARROW_TYPES = {
    onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16, onnx.TensorProto.INT8, onnx.TensorProto.UINT8,
    onnx.TensorProto.INT4, onnx.TensorProto.UINT4,
}  # fmt: skip


def _is_narrow(proto: onnx.ModelProto) -> bool:
    quantised = ("QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulNBits", "MatMulInteger")
    if any(node.op_type in quantised for node in proto.graph.node):
        return True
    return any(tensor.data_type in _NARROW_TYPES for tensor in proto.graph.initializer)


def _findings(
    proto: onnx.ModelProto, checker: Checker, verification: Verification, plan: Plan, home: Span
) -> list[Finding]:
    from anyshape.diagnosis import rules
    from anyshape.diagnosis.locating import first_difference
    from anyshape.verification.checking import Budget, smallest_failure

    if not verification.failures:
        if verification.checks:
            return []
        return [Finding("runtime-error", "no size could be run", home)]
    smallest = smallest_failure(checker, verification.failures, plan, Budget(2.0))
    where = first_difference(proto, checker, smallest)
    return [rules.wrong_file(smallest, verification, (), home, where)]
