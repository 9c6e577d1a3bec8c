"""Who is measured: `anyshape.check`, and the verifier of `export` with another graph in the converter's place."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx_ir as ir
import torch

import anyshape
from anyshape.conversion.candidates import Candidate
from anyshape.errors import AnyshapeError
from anyshape.model.request import understand
from anyshape.model.survey import Survey
from anyshape.results.attempt import Attempt
from anyshape.results.result import Result
from anyshape.stages import strategy_walk
from anyshape.stages.strategy_walk import Tried, walk_strategies
from anyshape.verbs import export as export_verb
from silence import silence
from trust_models import Sizes, Subject

CRASH = "crashes with "
"""How the words on an error begin that is none of anyshape's own."""


@dataclass(frozen=True)
class Answer:
    """What a judge says of one file."""

    is_accepted: bool
    said: str
    """The first finding of a refusal."""
    notes: tuple[str, ...] = ()
    """Of an accepted file, with its warnings."""
    run: tuple[Sizes, ...] = ()
    seconds: float = 0.0


@contextlib.contextmanager
def replaced(home: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(home, name)
    setattr(home, name, value)
    try:
        yield
    finally:
        setattr(home, name, before)


def _asked(judge) -> Answer:
    """What comes of it, and how long it takes."""
    started = time.process_time()
    try:
        with silence():
            result: Result = judge()
    except AnyshapeError as error:
        findings = getattr(error, "findings", ())
        said = findings[0].headline if findings else str(error)
        return Answer(is_accepted=False, said=said.splitlines()[0], seconds=time.process_time() - started)
    except Exception as error:
        return Answer(
            is_accepted=False, said=f"{CRASH}{type(error).__name__}: {error}", seconds=time.process_time() - started
        )
    if result.verdict == "refused":
        said = result.findings[0].headline if result.findings else "refused"
        return Answer(is_accepted=False, said=said, seconds=time.process_time() - started)
    open_ends = (line.strip() for line in str(result).splitlines() if "not settled" in line)
    told = (*result.notes, *(finding.headline for finding in result.findings), *open_ends)
    return Answer(
        is_accepted=True, said="", notes=told, run=tuple(result.verification.sizes_run),
        seconds=time.process_time() - started,
    )  # fmt: skip


def open_sizes(subject: Subject) -> dict[str, str]:
    return {dim: f"{low}.." for dim, (low, _) in subject.ranges.items()}


def by_check(path: Path, subject: Subject, module: torch.nn.Module, seed: int = 0, *, is_open: bool = False) -> Answer:
    """The file beside its model, as a user would ask."""
    sizes = open_sizes(subject) if is_open else None
    return _asked(lambda: anyshape.check(path, module, subject.call(), sizes=sizes, seed=seed))


@dataclass(frozen=True)
class Exporter:
    """One export that is right, kept so that its check can be asked about other graphs."""

    subject: Subject
    """With the traced sizes for its example."""
    module: torch.nn.Module
    result: Result
    survey: Survey
    candidate: Candidate
    attempt: Attempt
    seconds: float

    @property
    def is_first_strategy(self) -> bool:
        return len(self.result.attempts) == 1

    def answer(self, model: ir.Model, seed: int = 0, *, is_open: bool = False) -> Answer:
        """The whole way of an export, but for the conversion: that gave this graph."""

        def given(survey: Survey, stage: Any) -> list[Tried]:
            conversion = replace(self.candidate, model=model), self.attempt
            return [strategy_walk._convert_and_check(survey, stage, self.attempt.strategy, conversion, ())]  # noqa: SLF001

        request = self.survey.request
        if is_open:
            request = understand(
                self.module, self.subject.call(), None, dims=self.subject.dims, sizes=open_sizes(self.subject)
            )
        options = replace(self.survey.options, seed=seed)
        with replaced(export_verb, "walk_strategies", given):
            return _asked(lambda: export_verb.convert(request, options))


def exported(subject: Subject, sizes: Mapping[str, str] | None = None) -> Exporter:
    """The right file, and what was known when it was made."""
    module, kept = subject.made(), []

    def walk(survey: Survey, stage: Any) -> list[Tried]:
        kept.append((survey, walk_strategies(survey, stage)))
        return kept[-1][1]

    started = time.process_time()
    with replaced(export_verb, "walk_strategies", walk), silence():
        result = anyshape.export(module, subject.call(), dims=subject.dims, sizes=sizes or subject.sizes)
    survey, tries = kept[-1]
    last = tries[-1]
    traced = replace(subject, example={dim: survey.traced[dim] for dim in subject.ranges})
    seconds = time.process_time() - started
    return Exporter(traced, module, result, survey, last.candidate, replace(last.attempt, outcome=""), seconds)


def by_plain_trace(subject: Subject, module: torch.nn.Module, seed: int = 0) -> Answer:
    """A real export of which only the first strategy is tried: it freezes branches, and its check has to find that."""
    first = strategy_walk.STRATEGIES[:1]
    with replaced(strategy_walk, "STRATEGIES", first):
        return _asked(
            lambda: anyshape.export(module, subject.call(), dims=subject.dims, sizes=subject.sizes, seed=seed)
        )
