"""`make_dynamic`: a static ONNX file made to serve other sizes, checked against the file itself; no torch.

The stages: read the file -> declare -> run it -> free it, one reading after the other, each checked -> write -> result.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx

from anyshape.declaration.options import check_options
from anyshape.errors import DeclarationError
from anyshape.freeing.observation import guesses
from anyshape.freeing.suspects import chosen_by_size
from anyshape.freeing.wanted import Declaration, declare_free
from anyshape.onnxfile.destination import check_destination
from anyshape.onnxfile.interface import opset_of, read_interface
from anyshape.onnxfile.saving import Stage, staged
from anyshape.onnxfile.untrusted import load_checked
from anyshape.results.finding import Finding
from anyshape.results.progress import Tell, told
from anyshape.results.result import ExportError, Result
from anyshape.results.unknown_operators import not_loaded
from anyshape.runtime.confinement import confined
from anyshape.runtime.custom_ops import CustomOps
from anyshape.runtime.made_up_inputs import find_contents
from anyshape.runtime.session import RuntimeFailureError, Session
from anyshape.sizes.notation import did_you_mean
from anyshape.sizes.spelling import argument
from anyshape.stages.free_readings import first_that_is_right
from anyshape.testbench.plan import choose_tier
from anyshape.verification.freed_file import FreeOptions, RunningFile, StaticFile, Trial


def make_dynamic(
    path: str | os.PathLike[str],
    dims: Mapping[str, Any] | None = None,
    *,
    out: str | os.PathLike[str] | None = None,
    sizes: Mapping[str, Any] | None = None,
    unchecked: Sequence[str] = (),
    constants: Mapping[str, str] | None = None,
    model: Any = None,
    args: Any = (),
    kwargs: Mapping[str, Any] | None = None,
    make_inputs: Callable[..., Any] | None = None,
    budget: float | None = None,
    quick: bool = False,
    thorough: bool = False,
    seed: int = 0,
    progress: bool | Tell | None = None,
    trusted: bool = False,
) -> Result:
    """Free the declared dims of a static file and write it to `out`, if it is right; ExportError with the finding else.

    The file itself is the reference: sample by sample for a batch, by its prefixes for a sequence, by its parts for
    height and width.

    - `path`: the static file; `out`: where to write, `path` itself, too; None writes nothing
    - `dims`: the axes that are to be free, `batch` on axis 0 by default; `sizes`: how far they go
    - `unchecked`: dims that may be free although no check applies to them
    - `constants`: what a number of the file is that may follow from a size: `{"node_7": "1/batch"}`, or "fixed"
    - `model`, `args`, `kwargs`, `make_inputs`: check against PyTorch instead
    - `budget`, `quick`, `thorough`, `seed`, `progress`: as in `export`
    - `trusted`: run the file in this process, not in one of its own with limits

    >>> torch.onnx.export(torch.nn.Linear(4, 2), (torch.randn(1, 4),), "static.onnx", dynamo=False, input_names=["x"])
    >>> anyshape.make_dynamic("static.onnx", {"x": "batch 4"}, out="dynamic.onnx").inputs[0].axes
    ('batch', 4)
    """
    check_options(budget=budget, seed=seed, make_inputs=make_inputs, progress=progress, unchecked=unchecked)
    if not isinstance(path, (str, os.PathLike)):
        raise DeclarationError(f"`path` is a {type(path).__name__}: pass the path of an ONNX file")
    proto = load_checked(path)
    path = Path(path).absolute()  # the model may change the current folder
    interface = read_interface(proto)
    declaration = declare_free(interface, dims, sizes)
    _refuse_unknown_dims(unchecked, declaration)
    _refuse_odd_constants(constants)
    against_model = None if model is None else _check_against(
        model, args=args, kwargs=kwargs, make_inputs=make_inputs, sizes=sizes, budget=budget, quick=quick,
        thorough=thorough, seed=seed,
    )  # fmt: skip
    destination = check_destination(out)
    with told(progress) as tell, confined(path, proto, trusted=trusted or model is not None):
        options = FreeOptions(
            tuple(unchecked), budget,
            choose_tier(quick=quick, thorough=thorough), seed, against_model, tell, dict(constants or {}),
        )  # fmt: skip
        result = _free_and_check(StaticFile(path, proto, interface, declaration, options), destination)
    if result.verdict == "refused":
        raise ExportError(result)
    return result


def _free_and_check(file: StaticFile, destination: Path | None) -> Result:
    """The result; where it is not refused, the file has been written."""
    start = time.monotonic()
    file.options.tell(f"running {file.path.name}")
    refused = Result(
        "refused", file.interface.inputs, file.interface.outputs, file.declaration.ranges,
        notes=file.declaration.notes, what="make-dynamic",
    )  # fmt: skip
    running = _run_static_file(file)
    if not isinstance(running, RunningFile):
        return replace(refused, findings=running)
    with staged(destination) as stage:
        trial = first_that_is_right(running, stage)
        refused = replace(refused, verification=trial.verification, notes=(*refused.notes, *stage.notes))
        if trial.findings:
            return replace(refused, findings=trial.findings)
        assert trial.judged is not None
        if (fault := trial.judged.finding(stage.path, file.home)) is not None:
            return replace(refused, findings=(fault,))
        return _result_of_written(running.file, trial, stage, time.monotonic() - start)


# ---- what is given


def _refuse_unknown_dims(unchecked: Iterable[str], declaration: Declaration) -> None:
    for dim in unchecked:
        if dim not in declaration.ranges:
            known = ", ".join(f"`{one}`" for one in declaration.ranges) + did_you_mean(dim, declaration.ranges)
            raise DeclarationError(f"{argument('unchecked')} names `{dim}`, but the dims are {known}")


def _refuse_odd_constants(constants: Any) -> None:
    if constants is not None and not isinstance(constants, Mapping):
        raise DeclarationError(f'`constants` is a {type(constants).__name__}: give {{"node": "1/batch"}}')
    for key, text in (constants or {}).items():
        if not isinstance(key, str) or not isinstance(text, str):
            raise DeclarationError(
                f'`constants` has {key!r}: {text!r}: give the name of a node and a text, as "1/batch"'
            )


def _check_against(model: Any, **given: Any) -> Callable[[Path], Result]:
    """What checks a file against the model, as `anyshape.check` does."""
    from anyshape.verbs.check import check

    def against(path: Path) -> Result:
        try:
            return check(path, model, **given)
        except ExportError as error:
            return error.result

    return against


# ---- the static file runs


def _run_static_file(file: StaticFile) -> RunningFile | tuple[Finding, ...]:
    """The static file, loaded, with values that it takes; or why not."""
    try:
        session = Session(file.path)
    except RuntimeFailureError as failure:
        return not_loaded(failure, file.proto, CustomOps(), file.home)
    trouble: RuntimeFailureError | None = None
    for sizes in guesses(file.declaration.open_dims):
        sized = _with_sizes(file, sizes)
        try:
            return RunningFile(sized, session, find_contents(session, sized.interface.inputs, file.options.seed))
        except RuntimeFailureError as failure:
            trouble = trouble or failure
            if not file.declaration.open_dims:
                break  # all guesses are the same where nothing is open
    message = f"the file does not run on inputs that were made up: {trouble}"
    return (Finding("runtime-error", message, file.home),)


def _with_sizes(file: StaticFile, sizes: Mapping[str, int]) -> StaticFile:
    """With sizes for what the file leaves open: at these it is run and compared."""
    ranges = file.declaration.ranges
    declaration = file.declaration.at({dim: ranges[dim].nearest(size) for dim, size in sizes.items()})
    inputs = tuple(replace(port, axes=declaration.shape(port)) for port in file.interface.inputs)
    return replace(file, declaration=declaration, interface=replace(file.interface, inputs=inputs))


# ---- what is written


def _notes_on_unseen(file: StaticFile, trial: Trial) -> Iterator[str]:
    """Which readings of the static file nothing can exclude, other than its model."""
    if file.options.against_model is not None or trial.freed is None:
        return
    frozen, name = file.declaration.frozen_sizes, file.path.name
    for key, text in file.options.constants.items():
        yield f"`{key}` is {text}, as you say"
    ones = [f"`{dim}`" if size == 1 else f"`{dim} - 1`" for dim, size in frozen.items() if size <= 2]
    factors = f", nor what {' and '.join(ones)} multiplied or divided, being 1 there" if ones else ""
    yield f"{name} cannot show which branches {' and '.join(f'`{dim}`' for dim in frozen)} decided{factors}"
    yield from (f"{told}: that cannot be seen" for _, told in chosen_by_size(file.proto, frozen, "Pad"))
    for bound in trial.freed.bounds:
        if bound.most == frozen.get(bound.dim):
            yield f"{bound.why}, as many as `{bound.dim}` in {name}: whether they follow from it cannot be seen"


def _result_of_written(file: StaticFile, trial: Trial, stage: Stage, seconds: float) -> Result:
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
        findings=trial.warnings,
        repairs=tuple(f"{one.operator} `{one.node}`: {one.what}" for one in trial.freed.rewrites),
        verification=verification,
        notes=(*file.declaration.notes, *trial.notes, *_notes_on_unseen(file, trial), *stage.notes),
        path=stage.destination,
        opset=opset_of(file.proto),
        seconds=max(0.0, seconds - (verification.seconds if verification else 0.0)),
        what="make-dynamic",
        _model=trial.freed.model,
    )
