"""`export`: declare -> survey -> convert and verify -> save. The stages in order, in `_run_stages`; read this first.

A converter's success is never trusted: a file is written to a temporary folder, checked there against the untouched
module at sizes of our own choosing, and only then put in its place.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from anyshape.conversion.preparation import prepare
from anyshape.conversion.translation import translations
from anyshape.declaration.options import check_options, notes_on
from anyshape.declaration.targets import training_parts
from anyshape.diagnosis import wording
from anyshape.diagnosis.doubts import pinned
from anyshape.errors import DeclarationError
from anyshape.garbage import uncollected
from anyshape.model.oracle import RandomOutputError
from anyshape.model.random_inputs import depends_on_draws, with_plain_draws, with_random_inputs
from anyshape.model.request import Request, understand
from anyshape.model.survey import ExportOptions, Progress, Survey, take_survey
from anyshape.onnxfile.destination import check_destination
from anyshape.onnxfile.saving import staged
from anyshape.results.finding import Finding, usable_edits
from anyshape.results.progress import told
from anyshape.results.result import ExportError, Result
from anyshape.runtime.custom_ops import understand_custom_ops
from anyshape.runtime.releases import choose_opset, understand_target
from anyshape.source.edits import Edit
from anyshape.source.live_code import edited
from anyshape.stages.conclusion import conclude, refuse
from anyshape.stages.offers import with_offer
from anyshape.stages.strategy_walk import walk_strategies
from anyshape.testbench.judgement import Tolerance
from anyshape.testbench.plan import choose_tier
from anyshape.torchkit import capture, private_names
from anyshape.torchkit.custom_operators import function_of
from anyshape.torchkit.silence import heard_thread
from anyshape.torchkit.state import evaluating, notes_on_surroundings


def export(
    model: Any,
    args: Any = (),
    f: str | os.PathLike[str] | None = None,
    *,
    kwargs: Mapping[str, Any] | None = None,
    examples: Any = None,
    dims: Mapping[str, Any] | None = None,
    sizes: Mapping[str, Any] | None = None,
    where: Sequence[str] = (),
    make_inputs: Callable[..., Any] | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    dynamic_axes: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    opset_version: int | None = None,
    target: str | None = None,
    external_data: bool | None = None,
    optimize: bool = True,
    custom_translation_table: Mapping[Any, Any] | None = None,
    custom_ops: Sequence[Any] | Mapping[str, Callable[..., Any]] = (),
    metadata: Mapping[str, str] | None = None,
    narrow: bool = False,
    repair: str | None = None,
    random: str | None = None,
    unchecked: Sequence[str] = (),
    dtype: Any = None,
    atol: float | None = None,
    rtol: float | None = None,
    budget: float | None = None,
    quick: bool = False,
    thorough: bool = False,
    seed: int = 0,
    providers: Sequence[str] | None = None,
    progress: bool | Progress | None = None,
    **torch_arguments: Any,
) -> Result:
    """Convert a model to an ONNX file that serves every declared size, or raise ExportError and write nothing.

    - `model`: a module, a bound method, a function, an `ExportedProgram` or TorchScript; `f`: the file, or None
    - `args`, `kwargs`: one call of it; instead, `examples`: several calls, or `make_inputs`: a function of dims
    - `dims`: which axes vary, `{"tokens": "batch seq"}`; `sizes`: how far, `{"seq": "1..512"}`; `where`: how they
      belong together, `["src >= tgt"]`; without any of them the model is asked
    - `input_names`, `output_names`, `dynamic_axes`, `dynamic_shapes`, `opset_version`, `external_data`,
      `custom_translation_table` and other `torch_arguments`: as in `torch.onnx.export`
    - `target`: the oldest runtime to serve, `"onnxruntime==1.18"`; `dtype`: convert a copy of the model to it first
    - `optimize`: False leaves the graph as it was translated; `metadata`: entries for the file
    - `custom_ops`: what computes operators that ONNX Runtime lacks; `unchecked`: such operators to write all the same
    - `narrow`: write the widest declaration that is right, if the whole is not; `repair="edits"`: convert with the safe
      edits of the findings in place, in memory alone
    - `random="inputs"`: make an input of every draw of random numbers; `random="shapes"`: leave the values unchecked
    - `atol`, `rtol`: a tolerance of your own instead of the model's rounding noise
    - `quick`, `thorough`: fewer or more sizes; `budget`: seconds for checking; `seed`: of sizes and contents
    - `providers`: of ONNX Runtime, the CPU by default; `progress`: True, or a function that is told each stage

    >>> result = anyshape.export(torch.nn.Linear(4, 2), torch.randn(3, 4), "linear.onnx", dims={"input": "batch 4"})
    >>> result.verdict, str(result.outputs[0])
    ('checked', 'output: float32[batch, 2]')
    """
    capture.require_torch()
    notes = notes_on(torch_arguments)
    check_options(
        atol=atol, rtol=rtol, budget=budget, seed=seed, make_inputs=make_inputs, progress=progress, target=target,
        metadata=metadata, unchecked=unchecked, providers=providers, repair=repair, random=random,
    )  # fmt: skip
    destination = check_destination(f)
    request = understand(
        model, args, kwargs, examples=examples, dims=dims, sizes=sizes, where=where, make_inputs=make_inputs,
        dynamic_axes=dynamic_axes, dynamic_shapes=dynamic_shapes, input_names=input_names, output_names=output_names,
        dtype=dtype,
    )  # fmt: skip
    if random == "inputs":
        request = with_random_inputs(request, seed)
    if random == "shapes":
        request = with_plain_draws(request)
    runtime = None if target is None else understand_target(target)
    with uncollected():
        options = ExportOptions(
            destination=destination,
            opset=choose_opset(opset_version, runtime, capture.newest_translated_opset()),
            opset_is_fixed=opset_version is not None,
            runtime=runtime,
            external_data=external_data,
            metadata=check_metadata(metadata),
            narrow=narrow,
            may_edit=repair == "edits",
            compares_values=random != "shapes",
            unchecked=tuple(unchecked),
            tolerance=Tolerance(atol, rtol),
            seconds=budget,
            tier=choose_tier(quick=quick, thorough=thorough),
            seed=seed,
            providers=providers,
            custom_ops=understand_custom_ops(custom_ops, function_of),
            own_translations=tuple(map(str, custom_translation_table or ())),
            extra={"custom_translation_table": translations(custom_translation_table), "optimize": optimize},
            notes=tuple(notes),
        )
        prepare(options.opset)  # after all that can be said without
    with told(progress) as tell:
        result = convert(request, replace(options, tell=_aloud(tell)))
    if result.verdict == "refused":
        raise ExportError(result)
    return result


def check_metadata(metadata: Mapping[str, str] | None) -> dict[str, str]:
    for key, value in (metadata or {}).items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise DeclarationError(f"metadata {key!r}: {value!r} must map text to text")
        if key.startswith("anyshape."):
            raise DeclarationError(f"metadata `{key}`: names that begin with `anyshape.` are anyshape's own")
    return dict(metadata or {})


def _aloud(progress: Progress) -> Progress:
    """Progress is told on the streams of whoever called, although the model's and torch's output is kept back."""

    def tell(text: str) -> None:
        with heard_thread():
            progress(text)

    return tell


def convert(request: Request, options: ExportOptions) -> Result:
    """The whole way, with the module put back as it was whatever happens."""
    around = notes_on_surroundings()
    with capture.quiet():
        # what a model was in is lost once it is in eval mode, so a second try is told
        options = replace(options, training=options.training or tuple(training_parts(request.target.module)))
        with evaluating(request.target.module):
            result = _run_stages(request, options)
            edits = usable_edits(result.findings) if options.may_edit and result.verdict == "refused" else []
            result = _with_edits(request, options, edits) if edits else result
            if result.verdict == "refused":
                result = _with_unserved_dims_static(request, options, result)
            if result.verdict == "refused" and not options.narrow:
                trial = replace(options, destination=None, prints=False, tier=choose_tier(quick=True, thorough=False))
                result = with_offer(request, result, lambda one: _run_stages(one, trial))
            if result.verdict == "refused" and options.own_translations:
                result = _with_word_on_translations(result, options.own_translations)
            return replace(result, notes=(*result.notes, *private_names.losses(), *around))


def _with_word_on_translations(refused: Result, operators: Sequence[str]) -> Result:
    """A file that differs from PyTorch may do so by the user's own translations: they are named first."""
    if not refused.findings or not refused.findings[0].rule.startswith("wrong-"):
        return refused
    first, *others = refused.findings
    named = ", ".join(f"`{operator}`" for operator in operators)
    word = f"custom_translation_table translates {named}: compare what it gives with PyTorch"
    return replace(refused, findings=(replace(first, helps=(word, *first.helps)), *others))


def _with_edits(request: Request, options: ExportOptions, edits: Sequence[Edit]) -> Result:
    """The same export with the model's code changed in memory, and put back."""
    with contextlib.ExitStack() as stack:
        for edit in edits:
            stack.enter_context(edited(edit.path, edit.source))
        result = _run_stages(request, replace(options, prints=False))
    read = (
        f"{edit.name}:{change.line}: `{change.old}` read as `{change.new}`" for edit in edits for change in edit.changes
    )
    return replace(result, repairs=(*read, *result.repairs))


def _run_stages(request: Request, options: ExportOptions, *, known_random: bool = False) -> Result:
    """What was declared, made a file; on trouble a refusal with its findings, or less than was declared at the user's
    wish.
    """
    # survey: how the model behaves in PyTorch, its limits, the sizes to trace at
    survey = take_survey(request, options)
    is_random = known_random or survey.reference.is_random(survey.first)
    if is_random and options.compares_values:
        return refuse(
            survey,
            (),
            [wording.random_output(survey.first, survey.home, survey.reference.drawing_places(survey.first))],
        )
    # what is not random is compared, whatever was allowed
    survey = replace(survey, options=replace(survey.options, compares_values=not is_random))
    if survey.boundaries.pins:
        options.tell("looking for what pins a dim")
        findings = pinned(survey)
        dims = [pin.dim for pin in survey.boundaries.pins]
        return _with_fixed_dims(survey, dims, findings) if options.narrow else refuse(survey, (), findings)
    try:
        with staged(options.destination) as stage:
            # convert and verify: by one strategy of the table after the other, until a file is right
            tries = walk_strategies(survey, stage)
            # save: the file that is right with its contract, or what is wrong with those that were tried
            conclusion = conclude(survey, stage, tries)
    except RandomOutputError as error:
        if not options.compares_values:  # a permutation of three rows is often the same
            return _run_stages(request, options, known_random=True)
        places = survey.reference.drawing_places(error.outcome)
        return refuse(survey, (), [wording.random_output(error.outcome, survey.home, places, elsewhere=True)])
    result = conclusion.result
    if conclusion.pinned:
        result = _with_fixed_dims(survey, conclusion.pinned, result.findings)
    if result.verdict == "refused" and not is_random:
        result = _with_word_on_seeds(survey, result)
    return replace(result, notes=(*result.notes, *stage.notes))


def _with_fixed_dims(survey: Survey, dims: Sequence[str], findings: Sequence[Finding]) -> Result:
    """The same export with dims that cannot vary left static: for `narrow=True` only."""
    lost = (f"{dim} is fixed at {survey.request.spec.example[dim]}" for dim in dims)
    options = replace(survey.options, given_up=(*survey.options.given_up, *lost), prints=False)
    result = _run_stages(survey.request.without(dims), options)
    return replace(result, findings=(*findings, *result.findings)) if result.verdict != "refused" else result


def _with_word_on_seeds(survey: Survey, refused: Result) -> Result:
    """Random numbers that the model seeds itself are alike in every call, and others in a file: they are told first."""
    if not any(finding.rule.startswith(("wrong-", "not-converted")) for finding in refused.findings):
        return refused
    first = survey.first
    place = next(iter(survey.reference.drawing_places(first)), None)
    if place is None or not depends_on_draws(survey.reference, first):
        return refused
    return replace(refused, findings=(wording.seeded_output(first, place),))


_WHATEVER_THE_SIZES = {"random-output", "unsupported-op", "newer-opset", "frozen-branch", "frozen-value"}
"""Rules of findings that are there in a static file, too."""


_MOST_ALONE = 3
"""Dims that are tried one by one: a size at which a file is wrong names all of its dims."""


def _with_unserved_dims_static(request: Request, options: ExportOptions, refused: Result) -> Result:
    """The same export without the dims that nobody asked for and that stand in its way; a note says which, and why."""
    findings = [finding for finding in refused.findings if finding.rule not in _WHATEVER_THE_SIZES]
    named = {dim for finding in findings for dim in finding.dims}
    pinned_by_model = {d for one in findings if one.rule == "pinned-dim" and one.origin == "model" for d in one.dims}
    blamed = named & (request.yielding | (pinned_by_model if request.are_labels else set()))
    if not findings or (named and not blamed):
        return refused
    result = refused
    alone = [frozenset({dim}) for dim in request.spec.dims if dim in blamed] if 1 < len(blamed) <= _MOST_ALONE else []
    for dims in dict.fromkeys((*alone, frozenset(blamed), request.yielding)):
        if dims:
            result = _run_stages(request.without(dims), replace(options, prints=False))
        if dims and result.verdict != "refused":
            kept = ", ".join(f"`{dim}` stays {request.spec.example[dim]}" for dim in request.spec.dims if dim in dims)
            why = f"since no file serves {'it' if len(dims) == 1 else 'them'}: {findings[0].message}"
            return replace(result, notes=(*result.notes, f"{kept}, {why}"))
    return result
