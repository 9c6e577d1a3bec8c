"""The ways to an ONNX model, in one table, in the order in which they are tried. None is trusted: the checker decides.

A healthy model needs the first alone. A way is tried where what became of those before it makes it worth a try; a file
that is wrong although all holds that its trace assumed is first written again in plainer forms. What few models need is
imported when it is tried, so that the others do not wait for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import onnx_ir as ir

from anyshape.conversion.candidates import Candidate, Conversion, Job
from anyshape.conversion.graph.rewrites import is_rewritten
from anyshape.conversion.operators.repair import Repair
from anyshape.conversion.operators.table import REPAIRS
from anyshape.conversion.torch_export import assumptions_at, by_export, by_torchscript, operators_at, translate_again
from anyshape.results.attempt import Attempt, Guard, hold
from anyshape.sizes import budgets
from anyshape.sizes.notation import Sizes


@dataclass(frozen=True)
class Past:
    """How the ways before ended, in their order."""

    attempts: tuple[Attempt, ...]
    decides_on_values: Callable[[], bool]
    """Whether the model does; asked only by those who must know, since the model has to be run for it."""
    calls: float = 0
    """Of operators in one run: what a conversion takes grows with them."""


@dataclass(frozen=True)
class Strategy:
    """A way to an ONNX model: its name as results tell it, when it is tried, and what it does."""

    name: str
    when: str
    what: str
    convert: Callable[[Job], Conversion]
    applies: Callable[[Past], bool] = lambda _: True
    sizes: Callable[[Past], Sizes | None] = lambda _: None
    """Other sizes to trace at than those that were chosen for all; None for these."""
    has_forms: bool = True
    """Whether what it makes can be written in plainer forms."""


@dataclass(frozen=True)
class Form:
    """Another form of what a way has made, for a file that is wrong although its trace may be right."""

    name: str
    when: str
    what: str
    job: Callable[[Job, ir.Model], Job | None]
    """The job that writes this form; None where the model has it already."""


# ---- what became of the ways before


def breaks_assumptions(attempt: Attempt) -> bool:
    """Whether the file is wrong at sizes at which an assumption of its trace does not hold."""
    return any(not hold(attempt.guards, sizes) for sizes in attempt.wrong_at)


def may_be_badly_written(attempt: Attempt) -> bool:
    """Whether the trace may be right although the file is not; a file that is right is no better in another form."""
    return not attempt.ran_right and not breaks_assumptions(attempt)


def _only_looked_alike(past: Past) -> bool:
    return any(attempt.copied and may_be_badly_written(attempt) for attempt in past.attempts)


def _sizes_beyond_assumptions(past: Past) -> Sizes | None:
    """The smallest sizes at which the last file that broke an assumption was wrong: often one path of a branch is right
    everywhere, as padding by nothing is.
    """
    wrong = _last_beyond_assumptions(past)
    if wrong is None or past.calls > budgets.MOST_CALLS_ELSEWHERE:
        return None
    possible = [sizes for sizes in wrong.wrong_at if not hold(wrong.guards, sizes)]
    return min(possible, key=lambda sizes: sum(sizes.values()))


def _last_beyond_assumptions(past: Past) -> Attempt | None:
    """On a single path, since there are others then."""
    single = [attempt for attempt in past.attempts if not attempt.strategy.startswith(CONTROLLED)]
    return next((attempt for attempt in reversed(single) if breaks_assumptions(attempt)), None)


def _is_elsewhere_apart(past: Past) -> bool:
    """Whether the path at those sizes parts from the last one so often that it is hardly right where that one was."""
    wrong, sizes = _last_beyond_assumptions(past), _sizes_beyond_assumptions(past)
    if wrong is None or sizes is None:
        return False
    return sum(not hold((guard,), sizes) for guard in wrong.guards) > budgets.MOST_PARTINGS_ELSEWHERE


def _may_be_lifted(past: Past) -> bool:
    """Several static exports take several times as long as one, and freeze every decision: on sizes and on values."""
    decides_on_sizes = any(breaks_assumptions(attempt) for attempt in past.attempts)
    return past.calls <= budgets.MOST_CALLS_TO_LIFT and not decides_on_sizes and not past.decides_on_values()


# ---- what each way does

_ALWAYS = tuple(repair for repair in REPAIRS if repair.always)


def plain_operators(job: Job) -> Counter[str] | None:
    """What the first way calls at the job's sizes alone, where it comes through and decides nothing by values."""
    return operators_at(job, _ALWAYS)


def repaired_assumptions(job: Job) -> tuple[Guard, ...]:
    """What a trace at the job's sizes assumes, with all repairs, so that it comes far."""
    return assumptions_at(job, REPAIRS)


def _export_as(name: str, repairs: Sequence[Repair], *, copying: bool = False) -> Callable[[Job], Conversion]:
    return lambda job: by_export(job, name, repairs, copying=copying)[:2]


def _with_repairs(job: Job) -> Conversion:
    candidate, attempt, acted = by_export(job, REPAIRED, REPAIRS)
    if not acted.beyond_the_plain_way:
        return None, Attempt(REPAIRED, "skipped", "no repair applies", attempt.seconds)
    return candidate, attempt


def _with_branches_and_loops(job: Job) -> Conversion:
    from anyshape.conversion.control_flow.kept_loops import kept_loops
    from anyshape.conversion.control_flow.module_paths import missing_names

    if missing := missing_names():
        return None, Attempt(CONTROLLED, "failed", f"this torch has no {', '.join(missing)}")
    return by_export(job, CONTROLLED, (*REPAIRS, kept_loops(job.adapter)), both_sides=True)[:2]


def _by_lifting(job: Job) -> Conversion:
    from anyshape.conversion.lifting.lifted import lifted

    return lifted(job, LIFTED)


# ---- the table

PLAIN = "torch.export"
IN_FULL = "torch.export in full"
REPAIRED = "torch.export with repairs"
ELSEWHERE = "torch.export at other sizes"
CONTROLLED = "torch.export with branches and loops"
ELSEWHERE_AFTER_ALL = "torch.export at other sizes after all"
TORCHSCRIPT = "TorchScript"
LIFTED = "lifting from static exports"

STRATEGIES = (
    Strategy(
        PLAIN,
        "always",
        "one trace with every declared axis open, where parts of the model that look alike are traced once",
        _export_as(PLAIN, _ALWAYS, copying=True),
    ),
    Strategy(
        IN_FULL,
        "parts were taken for alike, and the file is wrong although all holds that the trace assumed",
        "every part is traced by itself",
        _export_as(IN_FULL, _ALWAYS),
        applies=_only_looked_alike,
    ),
    Strategy(
        REPAIRED,
        "something in the model has a replacement that frees a dim",
        "the same trace with all repairs in place",
        _with_repairs,
    ),
    Strategy(
        ELSEWHERE,
        "a file was wrong where an assumption of its trace does not hold",
        "a trace at such sizes, which takes another path through the model, with all repairs",
        _export_as(ELSEWHERE, REPAIRS),
        applies=lambda past: _sizes_beyond_assumptions(past) is not None and not _is_elsewhere_apart(past),
        sizes=_sizes_beyond_assumptions,
    ),
    Strategy(
        CONTROLLED,
        "no single path is right for all sizes",
        "both sides of every branch are kept as If, loops over a varying axis as Scan or Loop; with all repairs",
        _with_branches_and_loops,
    ),
    Strategy(
        ELSEWHERE_AFTER_ALL,
        "many assumptions of a trace do not hold where its file was wrong, and branches could not be kept",
        "a trace at such sizes, which is not worth its time before",
        _export_as(ELSEWHERE_AFTER_ALL, REPAIRS),
        applies=_is_elsewhere_apart,
        sizes=_sizes_beyond_assumptions,
    ),
    Strategy(
        TORCHSCRIPT,
        "torch.export cannot trace the model, and no decision on values would be frozen",
        "torch's older exporter, which runs the module on real tensors",
        partial(by_torchscript, name=TORCHSCRIPT),
        has_forms=False,
    ),
    Strategy(
        LIFTED,
        "the model is of moderate length, and neither sizes nor values decide anything",
        "static exports at several sizes become one file: numbers that moved are computed from the sizes",
        _by_lifting,
        applies=_may_be_lifted,
        has_forms=False,
    ),
)

_NEWEST_OPERATORS = {"Attention", "RMSNormalization", "RotaryEmbedding", "TensorScatter", "Swish"}
"""Operators of opset 23 and later: fast, but ONNX Runtime does not take all shapes that their definition allows."""
_OLDER_OPSET = 20


def _in_older_operators(job: Job, model: ir.Model) -> Job | None:
    nodes = ir.traversal.RecursiveGraphIterator(model.graph)
    is_newest = job.opset > _OLDER_OPSET and any(node.op_type in _NEWEST_OPERATORS for node in nodes)
    return replace(job, opset=_OLDER_OPSET) if is_newest and not job.opset_is_fixed else None


def _without_rewrites(job: Job, model: ir.Model) -> Job | None:
    return replace(job, rewrites=False) if job.rewrites and is_rewritten(model) else None


FORMS = (
    Form(
        f"opset {_OLDER_OPSET}",
        "the file holds operators of opset 23 or later, and no opset was asked for",
        "the same program in older operators, which runtimes implement in full",
        _in_older_operators,
    ),
    Form(
        "not rewritten",
        "the graph was rewritten to run faster",
        "the same program as it was translated",
        _without_rewrites,
    ),
)


def in_form(strategy: Strategy, job: Job, name: str, candidate: Candidate) -> Conversion:
    """What a way has made, written once more in the form that the job asks for."""
    if candidate.program is not None:
        return translate_again(job, name, candidate)
    candidate_again, attempt = strategy.convert(job)
    return candidate_again, replace(attempt, strategy=name)
