"""`check`: a file, by whomever, against its model at sizes of our own choosing; or, without a model, against itself.

The stages are the same: read the file -> declare -> choose the reference -> bench -> findings -> result.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyshape.declaration.options import check_options
from anyshape.errors import DeclarationError
from anyshape.onnxfile.contradictions import contract_of
from anyshape.onnxfile.interface import opset_of, read_interface
from anyshape.onnxfile.untrusted import load_checked
from anyshape.results.progress import Tell, told
from anyshape.results.result import ExportError, Result
from anyshape.results.unknown_operators import not_loaded
from anyshape.runtime.confinement import confined
from anyshape.runtime.custom_ops import understand_custom_ops
from anyshape.runtime.session import RuntimeFailureError
from anyshape.source.spans import Span
from anyshape.testbench.judgement import Tolerance
from anyshape.testbench.plan import choose_tier
from anyshape.verification import given_file as alone
from anyshape.verification.given_file import CheckOptions, GivenFile

if TYPE_CHECKING:
    from anyshape.model.request import Request
    from anyshape.sizes.notation import Condition, SizeRange


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
    trusted: bool = False,
    progress: bool | Tell | None = None,
) -> Result:
    """Verify a file; ExportError with the finding where it is wrong, so that a test can simply call this.

    Without `dims`, the file's own names say what varies. Without `model`, the file is run at many sizes and held to the
    shapes that it declares itself, in a process of its own unless the file is `trusted`. `at` runs one size only.
    """
    check_options(
        atol=atol, rtol=rtol, budget=budget, seed=seed, make_inputs=make_inputs, providers=providers, progress=progress
    )
    computed_by = understand_custom_ops(custom_ops, _function_of)
    file = read_file(f)
    tier = choose_tier(quick=quick, thorough=thorough)
    options = CheckOptions(Tolerance(atol, rtol), budget, tier, at, seed, providers, computed_by)
    if model is None:
        _refuse_what_needs_a_model(
            dims=dims, make_inputs=make_inputs, examples=examples, atol=atol, rtol=rtol, kwargs=kwargs
        )
        work = partial(_check_alone, file, sizes, where, options)
    else:
        # only here is torch needed
        from anyshape.stages.model_comparison import declare_by_model

        given = {"make_inputs": make_inputs, "examples": examples}
        request = declare_by_model(file, model, args, kwargs, dims, sizes, where, seed=seed, **given)
        work = partial(_check_beside_model, file, request, options)
    # a file beside its model is its owner's
    with told(progress) as tell, confined(file.path, file.proto, trusted=trusted or model is not None):
        tell(f"checking {file.path.name}")
        result = work()
    if result.verdict == "refused":
        raise ExportError(result)
    return result


def _check_alone(
    file: GivenFile, sizes: Mapping[str, Any] | None, where: Sequence[str], options: CheckOptions
) -> Result:
    """Whether the file runs at every size that it declares, and keeps the shapes that it declares there."""
    if any(port.dtype == "bfloat16" for port in file.interface.inputs):  # of which no call can be made up
        _refuse_unrunnable(file, options)
    declared = alone.declare_by_file(file, sizes, where, options.seed)
    alone.refuse_excluded(file, declared.ranges, (*declared.where, *declared.held), options.at or {})
    result = replace(_refusal(file, declared.ranges, declared.where), opset=None)
    home = Span(file.path.name, 1)
    try:
        session = file.open(options)
    except RuntimeFailureError as failure:
        return replace(result, findings=not_loaded(failure, file.proto, options.custom_ops, home))
    bench = alone.bench_alone(session, file, declared, options)
    verification = bench.verify()
    findings = alone.findings_alone(bench, verification, file, home)
    return replace(
        result,
        verdict="refused" if any(finding.level == "error" for finding in findings) else "checked",
        limits=tuple(map(str, declared.limits)),
        verification=verification,
        findings=findings,
        notes=(*alone.notes_alone(file), *verification.notes, *options.custom_ops.notes_on(file.proto)),
        opset=opset_of(file.proto),
    )


def _refuse_unrunnable(file: GivenFile, options: CheckOptions) -> None:
    """Raise where the runtime cannot run the file's type."""
    try:
        file.open(options)
    except RuntimeFailureError as failure:
        not_loaded(failure, file.proto, options.custom_ops, Span(file.path.name, 1))


def _check_beside_model(file: GivenFile, request: Request, options: CheckOptions) -> Result:
    """Whether the file gives what the model gives, at sizes that both can do."""
    from anyshape.stages import model_comparison as stage
    from anyshape.torchkit import capture
    from anyshape.torchkit.state import evaluating, notes_on_surroundings

    result = replace(_refusal(file, request.spec.ranges, request.spec.where), constants=request.spec.constants)
    claimed = (*file.contract.limits, *file.contract.conditions) if file.contract is not None else ()
    alone.refuse_excluded(file, request.spec.ranges, (*request.spec.where, *claimed), options.at or {})
    around = notes_on_surroundings()
    # the user's module runs hundreds of times: what it prints is not ours to show, and what it keeps is put back
    with capture.quiet(), evaluating(request.target.module):
        subject = stage.run_example(request, options.seed)
        try:
            opened = stage.open_beside_model(file, options)
        except RuntimeFailureError as failure:
            return replace(result, findings=not_loaded(failure, file.proto, options.custom_ops, subject.home))
        if reasons := stage.incomparable(subject, file.interface, compares_values=file.compares_values):
            return replace(result, findings=reasons)
        bench = stage.bench_beside_model(opened, file, subject, options)
        bench, verification, findings, notes = stage.compare_with_model(bench)
    limits = bench.boundaries.limits
    said = (*notes, *(verification.notes if verification is not None else ()), *bench.boundaries.notes)
    return replace(
        result,
        verdict="refused" if findings else "checked",
        limits=tuple(str(limit) for limit in limits if not limit.of_export),
        limits_at=bench.boundaries.places,
        given_up=tuple(f"only where {limit}" for limit in limits if limit.of_export),
        verification=verification,
        findings=findings,
        notes=(*request.notes, *file.doubts, *said, *options.custom_ops.notes_on(file.proto), *around),
    )


# ---- what is given


def read_file(f: Any) -> GivenFile:
    if not isinstance(f, (str, os.PathLike)):
        raise DeclarationError(f"`f` is a {type(f).__name__}: pass the path of an ONNX file")
    proto = load_checked(f)
    interface = read_interface(proto)
    contract, untrue = contract_of(proto, interface)
    return GivenFile(Path(f).absolute(), proto, interface, contract, untrue)  # the model may change the current folder


def _function_of(value: Any) -> Callable[..., Any] | None:
    """An operator of torch as a function of arrays: whoever gives one has loaded torch."""
    if "torch" not in sys.modules:
        return None
    from anyshape.torchkit.custom_operators import function_of

    return function_of(value)


def _refuse_what_needs_a_model(**arguments: Any) -> None:
    given = [name for name, value in arguments.items() if value is not None]
    if given:
        raise DeclarationError(f"{given[0]}= is about the model, but no model is given: pass it as the second argument")


def _refusal(file: GivenFile, ranges: Mapping[str, SizeRange], where: Sequence[Condition]) -> Result:
    """The result of a file of which nothing is known yet."""
    return Result(
        "refused", file.interface.inputs, file.interface.outputs, ranges, path=file.path, opset=opset_of(file.proto),
        what="check", where=tuple(map(str, where)),
    )  # fmt: skip
