"""From a static file to one that is right: reading after reading of what is ambiguous in it, each one checked."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import onnx
import onnx_ir as ir

import anyshape
from anyshape.errors import AnyshapeError, first_line
from anyshape.freeing.engine import free, named, with_outputs
from anyshape.freeing.observation import prepared
from anyshape.freeing.records import Bound, Freed, PinnedError
from anyshape.freeing.suspects import Suspect
from anyshape.freeing.told_numbers import ToldNumbers, read_told, with_formulas
from anyshape.onnxfile.contract import KEY, Contract
from anyshape.onnxfile.interface import read_interface
from anyshape.onnxfile.saving import Stage
from anyshape.results.finding import Finding
from anyshape.results.result import Verdict
from anyshape.results.verification import evidence_of
from anyshape.runtime.session import RuntimeFailureError, Session
from anyshape.sizes import budgets
from anyshape.sizes.notation import SizeRange, parse_condition
from anyshape.verification.final_file import JudgedFile
from anyshape.verification.freed_file import RunningFile, StaticFile, Trial, with_verdict
from anyshape.verification.static_twin import Pair
from anyshape.verification.suspect_trials import Doubt, doubts_about

Choices = tuple[int, ...]


class UnwritableError(AnyshapeError):
    """A freed model holds something that no file can hold, such as a name that is no text."""


@dataclass(frozen=True)
class _Job:
    """What every reading starts from."""

    running: RunningFile
    model: ir.Model
    stage: Stage
    told: ToldNumbers = field(default_factory=ToldNumbers)
    twin: Session | None = None
    """The static file with inputs in place of the numbers that are told."""

    @property
    def file(self) -> StaticFile:
        return self.running.file


def first_that_is_right(running: RunningFile, stage: Stage) -> Trial:
    """The first reading that passes its checks; else names alone, if they do; else the likeliest reading, refused."""
    file = running.file
    try:
        model = ir.load(file.path)
    except Exception as error:  # noqa: BLE001  a file is data: the runtime took it, the parser need not
        message = f"the file cannot be read: {_first_cause(error)}"
        return Trial(findings=(Finding("not-converted", message, file.home),))
    # those that a caller gives: others may hold weights
    given = [value for value in model.graph.inputs if value.name not in model.graph.initializers]
    for value, port in zip(given, file.interface.inputs, strict=True):
        value.shape = ir.Shape([int(axis or 0) for axis in port.axes or ()])  # open axes as they are run
    job = _with_told_numbers(_Job(running, model, stage), file.options.constants)
    trial = _by_any_way(job)
    suspects = _open_suspects(job, trial)
    if trial.findings:
        by_model = _by_model(job, model, suspects) if file.options.against_model is not None else None
        return by_model or _with_hints(trial, suspects)
    return _with_questions(job, model, trial, suspects) if suspects and file.options.against_model is None else trial


def _by_any_way(job: _Job) -> Trial:
    trial = _by_readings(job)
    if trial.findings:
        renamed = _by_names_alone(job)
        trial = renamed if renamed is not None and renamed.verdict == "checked" else trial
    return trial


def _by_readings(job: _Job) -> Trial:
    first: Trial | None = None
    tried = 0
    for choices in (readings := _Readings()):
        tried += 1
        job.file.options.tell(f"freeing {job.file.path.name}" + (f", reading {tried}" if tried > 1 else ""))
        trial = _by_engine(job, choices)
        first = first or trial
        if not trial.findings:
            return _with_fewest_limits(job, trial)
        if trial.is_settled:
            return trial
        readings.add_others(trial.freed)
    assert first is not None
    return first if tried == 1 else replace(first, findings=_with_count(first.findings, tried))


def _first_cause(error: BaseException) -> str:
    """What went wrong first: a parser wraps it once for each level of the file."""
    while error.__cause__ is not None:
        error = error.__cause__
    return first_line(error) or type(error).__name__


class _Readings:
    """The readings still to be tried: the likeliest first, then those that differ from one that failed in one place."""

    def __init__(self) -> None:
        self._waiting: list[Choices] = [()]
        self._seen: set[Choices] = set()

    def __iter__(self) -> Iterator[Choices]:
        while self._waiting and len(self._seen) < budgets.MOST_READINGS_OF_A_FILE:
            choices = self._waiting.pop(0)
            if choices not in self._seen:
                self._seen.add(choices)
                yield choices

    def add_others(self, freed: Freed | None) -> None:
        choices, taken = (freed.choices, freed.taken) if freed is not None else ((), ())
        for place, count in reversed(list(enumerate(choices))):
            others = [one for one in range(count) if one != taken[place]][: budgets.MOST_OTHER_READINGS]
            self._waiting += [(*taken[:place], other) for other in others]


def _with_fewest_limits(job: _Job, right: Trial) -> Trial:
    """A reading that is right but cuts a table may have mistaken a constant for a dim: another is likelier."""
    best = right
    if right.limits and right.freed is not None and right.freed.choices:
        readings = _Readings()
        readings.add_others(right.freed)
        for choices in itertools.islice(readings, 1, 1 + budgets.MOST_SECOND_LOOKS):
            trial = _by_engine(job, choices)
            if not trial.findings and trial.verdict == right.verdict and len(trial.limits) < len(best.limits):
                best = trial
        # what was judged last lies in the stage
        assert best.freed is not None
        best = _by_engine(job, best.freed.taken)
    return best


def _with_count(findings: Sequence[Finding], tried: int) -> tuple[Finding, ...]:
    note = f"{tried} readings of what is ambiguous in the file were tried, and none is right"
    return tuple(replace(finding, notes=(*finding.notes, note)) for finding in findings)


# ---- numbers that may follow from a size


def _with_told_numbers(job: _Job, constants: Mapping[str, str]) -> _Job:
    """What the user says about numbers, written into the model."""
    if not constants:
        return job
    declaration = job.file.declaration
    base = prepared(job.model)
    told = read_told(base, constants, declaration.frozen_sizes)
    twin = job.running.session
    if told.numbers:
        model = ir.to_proto(told.as_inputs(base)).SerializeToString()
        twin = Session(model, folder=job.file.path.parent)
    return replace(job, model=with_formulas(base, told, declaration.wanted), told=told, twin=twin)


def _open_suspects(job: _Job, trial: Trial) -> list[Suspect]:
    """The suspects of which the user has not spoken, as far as they may follow a size that the file does not have."""
    frozen = set(job.file.declaration.frozen_sizes)
    found = []
    for number in trial.freed.suspects if trial.freed is not None else ():
        readings = tuple(formula for formula in number.readings if frozen.issuperset(formula.names))
        if readings and not job.told.covers(number.names):
            found.append(replace(number, readings=readings))
    return found


def _with_hints(trial: Trial, suspects: Sequence[Suspect]) -> Trial:
    """Where a file is refused, a number may be why."""
    notes = tuple(f"{one.text} in {one.operator} node `{one.node}` may be `{one.readings[0].text}`" for one in suspects)
    found = [replace(one, notes=(*one.notes, *notes[: budgets.MOST_NAMES_TOLD])) for one in trial.findings]
    return replace(trial, findings=tuple(found))


def _by_model(job: _Job, model: ir.Model, suspects: Sequence[Suspect]) -> Trial | None:
    """With a model that says no, numbers are tried as sizes: all of them, then each alone."""
    for chosen in (suspects, *([one] for one in suspects[: budgets.MOST_NAMES_TOLD] if len(suspects) > 1)):
        told = _first_readings(chosen)
        trial = _trial_with(job, model, told) if told else None
        if trial is not None and not trial.findings:
            notes = tuple(f"`{key}` is {text}, as PyTorch has it" for key, text in told.items())
            return replace(trial, notes=(*trial.notes, *notes))
    return None


def _first_readings(numbers: Sequence[Suspect]) -> dict[str, str]:
    """What the user would say if each number were the first of its readings; an attribute cannot be."""
    numbers = [one for one in numbers if one.use[1] >= 0]
    nodes = [one.node for one in numbers]
    return {
        one.node if nodes.count(one.node) == 1 else one.constant: one.whole.format(one.readings[0].text)
        for one in numbers
    }


def _trial_with(job: _Job, model: ir.Model, told: Mapping[str, str]) -> Trial | None:
    try:
        return _by_any_way(_with_told_numbers(replace(job, model=model), {**job.file.options.constants, **told}))
    except AnyshapeError:
        return None


def _with_questions(job: _Job, model: ir.Model, trial: Trial, suspects: Sequence[Suspect]) -> Trial:
    """A trial that is right is refused all the same where a number that matters can be read in two ways."""
    file = job.file
    assert trial.freed is not None
    assert trial.verification is not None
    file.options.tell(f"trying {len(suspects)} numbers of {file.path.name} in two ways")
    doubts = doubts_about(trial.freed, suspects, _pair_with_staged(job), trial.verification, file.path.parent)
    accepted = [doubt for doubt in doubts if set(doubt.dims) <= set(file.options.unchecked)]
    asked = accepted if len(accepted) == len(doubts) else doubts
    tried = _tried_first_readings(job, model, asked) if asked and asked is not accepted else ""
    findings = tuple(
        doubt.finding([other for other in asked if other is not doubt], file.declaration.sizes, file.home, tried)
        for doubt in asked
    )
    if asked is accepted:  # written unchecked, at the user's wish
        warnings = tuple(replace(finding, level="warning") for finding in findings)
        trial = replace(trial, warnings=warnings, verdict="unchecked" if warnings else trial.verdict)
        _write_to_stage(trial, job.stage, trial.verdict)
        return trial
    return replace(trial, findings=findings, is_settled=True)


def _tried_first_readings(job: _Job, model: ir.Model, doubts: Sequence[Doubt]) -> str:
    """What came of the file in which all these numbers follow the sizes."""
    numbers = [replace(one, readings=doubt.readings) for doubt in doubts for one in doubt.numbers]
    trial = _trial_with(job, model, _first_readings(numbers))
    right = trial.verification if trial is not None and not trial.findings else None
    return "" if right is None else f"   [tried: right at {len(right.sizes_run)} sizes]"


# ---- one reading


def _by_engine(job: _Job, choices: Choices) -> Trial:
    file = job.file
    job.running.session.rest()  # the engine looks at every tensor of the file itself
    try:
        freed = free(job.model, file.declaration.wanted, choices, folder=file.path.parent)
    except PinnedError as error:
        dims = (error.dim,) if error.dim is not None else ()
        return Trial(findings=(Finding("pinned-dim", str(error), file.home, dims=dims),))
    except AnyshapeError as error:
        return Trial(findings=(Finding("not-converted", str(error), file.home),))
    try:
        return _checked_reading(job, freed)
    except UnwritableError as error:
        return Trial(findings=(Finding("not-converted", str(error), file.home),))


def _by_names_alone(job: _Job) -> Trial | None:
    """Operators that the engine does not know may be free as they are; the checks must then cover every dim."""
    declaration = job.file.declaration
    try:
        freed = named(job.model, declaration.wanted, declaration.sizes)
    except Exception:  # noqa: BLE001  a file is data: what was read need not be fit to be copied
        return None
    try:
        _write_to_stage(Trial(freed, ranges=declaration.ranges), job.stage, "checked")
        pair = _pair_with_staged(job)

        def shapes_at(sizes: Mapping[str, int]) -> list[tuple[int, ...]]:
            return [output.shape for output in pair.dynamic.run(pair.feeds(sizes, 0))]

        freed = with_outputs(freed, shapes_at)
    except AnyshapeError:  # it does not run at other sizes
        return None
    return _checked_reading(job, freed)


def _checked_reading(job: _Job, freed: Freed) -> Trial:
    """A freed model, written to the stage and checked there."""
    file, stage = job.file, job.stage
    ranges = {dim: _range_within(declared, dim, freed.bounds) for dim, declared in file.declaration.ranges.items()}
    limits = tuple(f"{one.dim} <= {one.most}: {one.why}" for one in freed.bounds)
    trial = Trial(freed, ranges=ranges, limits=limits)
    _write_to_stage(trial, stage, "checked")
    trouble = "ONNX Runtime does not load the freed file"
    try:
        pair = _pair_with_staged(job)
        # when it runs, what fails is the static file: failures of the freed one are what is looked for
        trouble = "the static file does not run on inputs that were made up"
        trial = with_verdict(file, trial, pair, stage.path)
    except RuntimeFailureError as failure:
        return replace(trial, findings=(Finding("runtime-error", f"{trouble}: {failure}", file.home),))
    if not trial.findings:
        trial = replace(trial, judged=JudgedFile.of(stage.path))
        _write_to_stage(trial, stage, trial.verdict)  # with what was run; weights stay where they are
    return trial


def _pair_with_staged(job: _Job) -> Pair:
    """The static file and what lies in the stage."""
    declaration, running, path = job.file.declaration, job.running, job.stage.path
    dynamic = Session(path)
    interface = read_interface(onnx.load(path, load_external_data=False))
    return Pair(
        job.twin or running.session, dynamic, interface, declaration.wanted, declaration.sizes, running.contents,
        kept=declaration.kept, told=job.told.at,
    )  # fmt: skip


def _range_within(declared: SizeRange, dim: str, bounds: Sequence[Bound]) -> SizeRange:
    most = min((bound.most for bound in bounds if bound.dim == dim), default=None)
    return declared if most is None else declared.up_to(most)


def _write_to_stage(trial: Trial, stage: Stage, verdict: Verdict) -> None:
    """The freed model with its contract, in the stage."""
    freed = trial.freed
    assert freed is not None
    outputs = {
        str(value.name): tuple("?" if axis is None else axis for axis in axes)
        for value, axes in zip(freed.model.graph.outputs, freed.outputs, strict=True)
    }
    conditions = tuple(parse_condition(f"{one.dim} <= {one.most}") for one in freed.bounds)
    graph = "" if trial.judged is None else trial.judged.fingerprint
    evidence = None if trial.verification is None else evidence_of(trial.verification, graph)
    contract = Contract(trial.ranges, (), conditions, outputs, {}, verdict, anyshape.__version__, evidence=evidence)
    freed.model.metadata_props[KEY] = contract.to_text()
    try:
        _take_weights_in(freed.model)
        stage.write(freed.model)
    except OSError:
        raise
    except Exception as error:  # a file is data: what the runtime took need not be fit to be written again
        raise UnwritableError(f"the freed file cannot be written: {_first_cause(error)}") from error


def _take_weights_in(model: ir.Model) -> None:
    """Weights that will not lie beside the new file must not point to the old one's data."""
    values = [value for graph in model.graphs() for value in graph.initializers.values()]
    total = sum(value.const_value.nbytes for value in values if value.const_value is not None)
    for value in values:
        tensor = value.const_value
        if isinstance(tensor, ir.ExternalTensor) and (
            total <= budgets.EXTERNAL_FROM_BYTES or tensor.nbytes <= budgets.SMALL_WEIGHT
        ):
            value.const_value = ir.tensor(tensor.numpy().copy(), tensor.dtype, name=tensor.name)
