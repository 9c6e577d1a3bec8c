"""`make_dynamic`: a static ONNX file made to serve other sizes, checked against the file itself; no torch."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx

from anyshape.bench.plan import choose_tier
from anyshape.declaration.options import check_options
from anyshape.errors import DeclarationError
from anyshape.freeing.observation import guesses
from anyshape.freeing.wanted import Declaration, declare_free
from anyshape.onnxfile.interface import read_interface
from anyshape.onnxfile.metadata import opset_of
from anyshape.onnxfile.saving import Stage, check_destination, staged
from anyshape.onnxfile.untrusted import load_checked
from anyshape.results.finding import Finding
from anyshape.results.result import ExportError, Result
from anyshape.results.unknown_operators import not_loaded
from anyshape.runtime.custom_ops import CustomOps
from anyshape.runtime.made_up_inputs import Contents, find_contents
from anyshape.runtime.session import RuntimeFailureError, Session
from anyshape.sizes.notation import did_you_mean
from anyshape.stages.free_readings import first_that_is_right
from anyshape.verification.freed_file import SECONDS, Subject, Trial, Wishes


def make_dynamic(
    path: str | os.PathLike[str],
    dims: Mapping[str, Any] | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    sizes: Mapping[str, Any] | None = None,
    unchecked: Sequence[str] = (),
    model: Any = None,
    args: Any = (),
    kwargs: Mapping[str, Any] | None = None,
    make_inputs: Callable[..., Any] | None = None,
    budget: float | None = None,
    quick: bool = False,
    thorough: bool = False,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Result:
    """Free the declared dims of a static file and write it to `out`, if it is right; ExportError with the finding else.

    Without `dims`, `batch` on axis 0 is meant. The file itself is the reference: sample by sample for a batch, by its
    prefixes for a sequence, by its parts for height and width. A dim to which no check applies is refused, unless it is
    `unchecked`. With `model`, all is checked against PyTorch. `out` may be `path`; None writes nothing.
    """
    check_options(budget=budget, seed=seed, make_inputs=make_inputs, progress=progress, unchecked=unchecked)
    if not isinstance(path, (str, os.PathLike)):
        raise DeclarationError(f"`path` is a {type(path).__name__}: pass the path of an ONNX file")
    source = Path(path)
    proto = load_checked(source)
    interface = read_interface(proto)
    declaration = declare_free(interface, dims, sizes)
    _refuse_unknown_dims(unchecked, declaration)
    options = {"budget": budget, "quick": quick, "thorough": thorough, "seed": seed}
    call = {"args": args, "kwargs": kwargs, "make_inputs": make_inputs, "sizes": sizes}
    against = None if model is None else _checker(model, {**call, **options})
    wishes = Wishes(
        tuple(unchecked), SECONDS if budget is None else budget, choose_tier(quick=quick, thorough=thorough), seed,
        against, progress or (lambda _: None),
    )  # fmt: skip
    result = _made(Subject(source, proto, interface, declaration, wishes), check_destination(out))
    if result.verdict == "refused":
        raise ExportError(result)
    return result


def _refuse_unknown_dims(unchecked: Iterable[str], declaration: Declaration) -> None:
    for dim in unchecked:
        if dim not in declaration.ranges:
            known = ", ".join(f"`{one}`" for one in declaration.ranges)
            raise DeclarationError(
                f"unchecked names `{dim}`, but the dims are {known}{did_you_mean(dim, declaration.ranges)}"
            )


def _checker(model: Any, options: Mapping[str, Any]) -> Callable[[Path], Result]:
    """What checks a file against the model, as `anyshape.check` does."""
    from anyshape.verbs.check import check

    def against(path: Path) -> Result:
        try:
            return check(path, model, **options)
        except ExportError as error:
            return error.result

    return against


# ---- one file


def _made(subject: Subject, destination: Path | None) -> Result:
    """The result; where it is not refused, the file has been written."""
    start = time.monotonic()
    subject.wishes.tell(f"running {subject.path.name}")
    refused = Result(
        "refused", subject.interface.inputs, subject.interface.outputs, subject.declaration.ranges,
        notes=subject.declaration.notes, what="make-dynamic",
    )  # fmt: skip
    opened = _opened(subject)
    if not isinstance(opened, _Opened):
        return replace(refused, findings=opened)
    subject = opened.subject
    with staged(destination) as stage:
        trial = first_that_is_right(subject, opened.static, opened.contents, stage)
        if trial.findings:
            return replace(refused, findings=trial.findings, verification=trial.verification)
        return _written(subject, trial, stage, time.monotonic() - start)


@dataclass(frozen=True)
class _Opened:
    """A file that runs: every axis has a size, also those that the file leaves open."""

    subject: Subject
    static: Session
    contents: Contents


def _opened(subject: Subject) -> _Opened | tuple[Finding, ...]:
    """The static file, loaded, with values that it takes; or why not."""
    try:
        static = Session(subject.path)
    except RuntimeFailureError as failure:
        return not_loaded(failure, subject.proto, CustomOps(), subject.home)
    trouble: RuntimeFailureError | None = None
    for sizes in guesses(subject.declaration.open_dims):
        closed = _closed(subject, sizes)
        try:
            return _Opened(closed, static, find_contents(static, closed.interface.inputs, subject.wishes.seed))
        except RuntimeFailureError as failure:
            trouble = trouble or failure
            if not subject.declaration.open_dims:
                break
    message = f"the file does not run on inputs that were made up: {trouble}"
    return (Finding("runtime-error", message, subject.home),)


def _closed(subject: Subject, sizes: Mapping[str, int]) -> Subject:
    """With sizes for what the file leaves open: at these it is run and compared."""
    ranges = subject.declaration.ranges
    declaration = subject.declaration.at({dim: ranges[dim].nearest(size) for dim, size in sizes.items()})
    inputs = tuple(replace(port, axes=declaration.shape(port)) for port in subject.interface.inputs)
    return replace(subject, declaration=declaration, interface=replace(subject.interface, inputs=inputs))


def _written(subject: Subject, trial: Trial, stage: Stage, seconds: float) -> Result:
    """The file in its place, and what is told about it."""
    assert trial.freed is not None
    interface = read_interface(onnx.load(stage.path, load_external_data=False))
    stage.commit()
    verification = trial.verification
    return Result(
        trial.verdict,
        interface.inputs,
        interface.outputs,
        trial.ranges,
        limits=trial.limits,
        repairs=tuple(f"{one.operator} `{one.node}`: {one.what}" for one in trial.freed.rewrites),
        verification=verification,
        notes=(*subject.declaration.notes, *trial.notes),
        path=stage.destination,
        opset=opset_of(subject.proto),
        seconds=max(0.0, seconds - (verification.seconds if verification else 0.0)),
        what="make-dynamic",
        _model=trial.freed.model,
    )
