"""Trust: how many wrong files are caught, and how many right ones accepted?

Right files of many architectures are exported. Wrong ones are made from them by many families of mutation, most of
them right at the traced size. Brute force over every declared size and over other contents says which are truly wrong;
what it finds equal within rounding is left out. Then `anyshape.check` and `export`'s verifier are asked about each.
Models with a branch in Python are traced so that the file keeps one side; static files that hold a number computed from
a size are given to `make_dynamic`; and the right files are asked about with five seeds.

Run: python benchmarks/trust.py [--quick] [--only REGEX] [--families REGEX] [--seed N] [--json FILE] [--jobs N]
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from pathlib import Path

import onnx_ir as ir
import torch

from trust_judges import CRASH, Answer, by_check, by_plain_trace, exported
from trust_models import PLAIN, SUBJECTS, Sizes, Subject, branching
from trust_mutations import FAMILIES, LITERALS, Facts, Family, NotApplicableError, example_calls, facts_of, mutant
from trust_static import FREED_WRONG, STATIC, Freed, freed
from trust_truth import Truth, session_of

CAUGHT, NOTED, MISSED = "caught", "noted", "missed"
"""Refused; accepted with a note or a warning that the right file does not have; accepted."""
JUDGES = ("check", "export")
_TRIES = 6
"""Mutants that are drawn for each that is wrong as its family says."""
_RIGHT_SEEDS = 5
_BRANCHES = 2
"""Branches in Python for each architecture."""
_QUICK_SUBJECTS = (
    "encoder with mask", "conv net", "decoder with cache", "ragged lengths", "span scores", "best words", "resized",
    "quantised",
)  # fmt: skip
_QUICK_PLACES = 2
"""Architectures that each family is tried at, when it must be quick."""

Wrong = tuple[Sizes, str, str]
"""Sizes, content, and what is wrong there."""


@dataclass(frozen=True)
class Verdict:
    """What one judge said of one wrong file, and where it could have seen it."""

    outcome: str
    why: str
    seconds: float


@dataclass(frozen=True)
class WrongFile:
    subject: str
    family: str
    done: str
    """What was done to the right one."""
    wrong: str
    """Where brute force finds it wrong."""
    verdicts: dict[str, Verdict]


@dataclass
class Report:
    """All of one architecture."""

    subject: str
    wrong: list[WrongFile] = field(default_factory=list)
    right: dict[str, list[str]] = field(default_factory=dict)
    """Judge -> for each seed the reason of a refusal, empty where it was accepted."""
    left_out: list[str] = field(default_factory=list)
    """Families without a wrong file here: no place for one, equal within rounding, or wrong at the traced size."""
    unclean: list[str] = field(default_factory=list)
    """Where the right file itself differs from the model for plain values: then the measure is worth nothing."""
    seconds: dict[str, float] = field(default_factory=dict)


# ---- one architecture


class Measurement:
    """The right file of one architecture, and what is known of it."""

    def __init__(self, subject: Subject, seed: int, folder: Path) -> None:
        self.seed, self.folder = seed, folder
        self.report = Report(subject.name)
        self.exporter = self._timed("conversion", lambda: exported(subject))
        self.subject = self.exporter.subject
        self.proto = self.exporter.result.model_proto
        self.right = self.proto.SerializeToString()
        self.truth = Truth(self.subject, self.exporter.module, self.right, seed)
        self.far = Truth(self.subject, self.exporter.module, self.right, seed, beyond=max(LITERALS) + 4)
        self.facts: Facts = facts_of(self.proto, example_calls(self.subject, seed))
        both = [(judge, is_open) for judge in JUDGES for is_open in (False, True)]
        self.notes = {(judge, o): set(self._ask(judge, self.right, is_open=o).notes) for judge, o in both}

    def _timed(self, name: str, work: Callable):
        started = time.process_time()  # the machine's load is no part of it
        found = work()
        self.report.seconds[name] = self.report.seconds.get(name, 0.0) + time.process_time() - started
        return found

    def _ask(self, judge: str, model: bytes, seed: int = 0, *, is_open: bool = False) -> Answer:
        path = self.folder / "file.onnx"
        path.write_bytes(model)
        if judge == "check":
            return self._timed(
                "check", lambda: by_check(path, self.subject, self.exporter.module, seed, is_open=is_open)
            )
        loaded = ir.load(path)
        return self._timed("export", lambda: self.exporter.answer(loaded, seed, is_open=is_open))

    # ---- right files

    def ask_about_the_right_file(self, seeds: Iterable[int]) -> None:
        faults = self._timed("brute force", lambda: self.truth.failures_of_the_right_file((PLAIN, "other")))
        self.report.unclean = [f"{sizes}: {said}" for sizes, _, said in faults]
        seeds = list(seeds)
        for judge in JUDGES:
            answers = (self._ask(judge, self.right, seed) for seed in seeds)
            self.report.right[judge] = ["" if answer.is_accepted else answer.said for answer in answers]

    # ---- wrong files

    def ask_about(self, family: Family) -> None:
        """The wrong files of a family, as far as any can be made."""
        truth = self.far if family.is_open else self.truth
        found: set[str] = set()
        for number in range(_TRIES * family.most):
            seed = f"{self.seed}/{self.subject.name}/{family.name}/{number}"
            try:
                model, done = mutant(self.subject, self.proto, self.facts, family, seed)
            except NotApplicableError:
                continue
            if done in found or not (wrong := self._timed("brute force", lambda m=model: _failures(truth, m, family))):
                continue
            self._judge(family, model, done, wrong, truth)
            found.add(done)
            if len(found) == family.most:
                break
        if not found:
            self.report.left_out.append(family.name)

    def _judge(self, family: Family, model: ir.Model, done: str, wrong: Sequence[Wrong], truth: Truth) -> None:
        written = ir.to_proto(model).SerializeToString()
        verdicts = {}
        for judge in JUDGES if family.in_export else JUDGES[:1]:
            answer = self._ask(judge, written, is_open=family.is_open)
            verdicts[judge] = _verdict(answer, self.notes[judge, family.is_open], wrong)
        where = _in_words(wrong, len(truth.calls_with(family.contents)))
        self.report.wrong.append(WrongFile(self.subject.name, family.name, done, where, verdicts))

    def ask_about_branches(self, count: int, pattern: str) -> None:
        """Models that decide by a size in Python: their file keeps the side that the trace took."""
        if not self.exporter.is_first_strategy:
            return
        chance = random.Random(f"{self.seed}/{self.subject.name}/branches")
        for kind in chance.sample(sorted(CONDITIONS), len(CONDITIONS)):
            name = f"frozen branch, {kind}"
            text, condition = CONDITIONS[kind](self.subject, chance)
            if not count or condition is None or not re.search(pattern, name):
                continue
            count -= 1
            self._judge_branch(name, text, condition)

    def _judge_branch(self, name: str, text: str, condition: Callable[[Sizes], bool]) -> None:
        module = branching(self.exporter.module, self.subject, condition)
        truth = Truth(self.subject, module, self.right, self.seed)
        wrong = self._timed("brute force", lambda: truth.failures_of_the_right_file((PLAIN,)))
        if not wrong:
            self.report.left_out.append(name)
            return
        path = self.folder / "file.onnx"
        path.write_bytes(self.right)
        answers = {
            "check": self._timed("check", lambda: by_check(path, self.subject, module)),
            "export": self._timed("export", lambda: by_plain_trace(self.subject, module)),
        }
        verdicts = {judge: _verdict(answer, self.notes[judge, False], wrong) for judge, answer in answers.items()}
        where = _in_words(wrong, len(truth.calls_with((PLAIN,))))
        self.report.wrong.append(WrongFile(self.subject.name, name, f"if {text}", where, verdicts))


def _failures(truth: Truth, model: ir.Model, family: Family) -> list[Wrong]:
    """Every call in which a mutant is wrong; none where it is not wrong as its family says."""
    proto = ir.to_proto(model)
    if family.name == "false axes":
        return [(dict(truth.subject.example), PLAIN, "declares what is not so")]
    try:
        session = session_of(proto.SerializeToString())
    except Exception:
        return []  # a file that does not load deceives nobody
    if not family.is_everywhere and truth.wrong_with(session, truth.grid[0]) is not None:
        return []
    return list(truth.failures(session, family.contents))


def _verdict(answer: Answer, usual: set[str], wrong: Sequence[Wrong]) -> Verdict:
    if not answer.is_accepted:
        return Verdict(CAUGHT, answer.said, answer.seconds)
    if more := [note for note in answer.notes if note not in usual]:
        return Verdict(NOTED, more[0], answer.seconds)
    return Verdict(MISSED, _reason(answer, wrong), answer.seconds)


def _reason(answer: Answer, wrong: Sequence[Wrong]) -> str:
    """Why it was missed: not run, not judged wrong, or right for such values."""
    plain = {tuple(sizes.items()) for sizes, content, _ in wrong if content == PLAIN}
    run = {tuple((dim, sizes[dim]) for dim in wrong[0][0]) for sizes in answer.run}
    if not plain:
        return "values: right for plain ones"
    if seen := len(plain & run):
        return f"judge: {seen} of the wrong sizes were run"
    return f"sizes: none of the {len(plain)} wrong ones was run, {len(run)} others were"


def _in_words(wrong: Sequence[Wrong], count: int) -> str:
    sizes, content, said = wrong[0]
    contents = ", ".join(sorted({one for _, one, _ in wrong}))
    return f"{len(wrong)} of {count} calls ({contents}), such as {sizes} ({content}): {said}"


# ---- branches in Python

Condition = Callable[[Sizes], bool]


def _drawn(chance: random.Random, subject: Subject, conditions: Sequence[tuple[str, Condition]]):
    """One that is false at the traced size, and true at some other."""
    fitting = [row for row in conditions if not row[1](subject.example)]
    return chance.choice(fitting) if fitting else ("", None)


def _of_one_dim(text: str, test: Callable[[int, int], bool]):
    def conditions(subject: Subject, chance: random.Random):
        dim = chance.choice(list(subject.ranges))
        low, high = subject.ranges[dim]
        numbers = range(low + 1, high)
        return _drawn(chance, subject, [(text.format(dim, c), lambda n, c=c: test(n[dim], c)) for c in numbers])

    return conditions


def _of_two_dims(text: str, test: Callable[[int, int, int], bool]):
    def conditions(subject: Subject, chance: random.Random):
        a, b = chance.sample(list(subject.ranges), 2)
        numbers = range(1, subject.ranges[a][1])
        return _drawn(chance, subject, [(text.format(a, b, c), lambda n, c=c: test(n[a], n[b], c)) for c in numbers])

    return conditions


CONDITIONS: dict[str, Callable[[Subject, random.Random], tuple[str, Condition | None]]] = {
    "threshold": _of_one_dim("{0} > {1}", lambda n, c: n > c),
    "one size": _of_one_dim("{0} == {1}", lambda n, c: n == c),
    "congruence": _of_one_dim("(7 * {0} + 3) % 31 == {1}", lambda n, c: (7 * n + 3) % 31 == c),
    "bit": _of_one_dim("{0} & {1} == {1}", lambda n, c: n & c == c),
    "relation": _of_two_dims("{0} == {1} + {2}", lambda a, b, c: a == b + c),
    "product": _of_two_dims("{0} * {1} == {2}", lambda a, b, c: a * b == c),
}


# ---- all of it


@dataclass(frozen=True)
class Plan:
    """What is measured of which architecture."""

    subject: str
    families: tuple[str, ...]
    branches: int
    branch_pattern: str
    right_seeds: int
    seed: int


def measured(plan: Plan) -> Report:
    """One architecture from its export to the last of its wrong files."""
    torch.set_num_threads(1)
    subject = next(one for one in SUBJECTS if one.name == plan.subject)
    with tempfile.TemporaryDirectory() as folder:
        measurement = Measurement(subject, plan.seed, Path(folder))
        measurement.ask_about_the_right_file(range(plan.right_seeds))
        for family in (one for one in FAMILIES if one.name in plan.families):
            measurement.ask_about(family)
        measurement.ask_about_branches(plan.branches, plan.branch_pattern)
    return measurement.report


def plans(seed: int = 0, only: str = "", families: str = "", *, quick: bool = False) -> list[Plan]:
    names = [one.name for one in SUBJECTS if re.search(only, one.name) and (not quick or one.name in _QUICK_SUBJECTS)]
    wanted = [one.name for one in FAMILIES if re.search(families, one.name)]
    found = []
    for index, name in enumerate(names):
        here = wanted
        if quick:  # each family meets a few architectures, and the next one the following ones
            places = {n: {(i + step) % len(names) for step in range(_QUICK_PLACES)} for i, n in enumerate(wanted)}
            here = [one for one in wanted if index in places[one]]
        found.append(Plan(name, tuple(here), 1 if quick else _BRANCHES, families, 2 if quick else _RIGHT_SEEDS, seed))
    return found


def run(
    plans: Sequence[Plan], statics: Sequence[int], jobs: int, tell: Callable[[str], None] = print
) -> tuple[list[Report], list[Freed]]:
    if jobs == 1:
        return [_told(measured(plan), tell) for plan in plans], [freed_static(index) for index in statics]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        # all are begun before the first is waited for
        reports, others = pool.map(measured, plans), pool.map(freed_static, statics)
        return [_told(report, tell) for report in reports], list(others)


def freed_static(index: int) -> Freed:
    torch.set_num_threads(1)
    return freed(STATIC[index])


def _told(report: Report, tell: Callable[[str], None]) -> Report:
    counts = Counter(f"{judge} {v.outcome}" for one in report.wrong for judge, v in one.verdicts.items())
    refused = sum(bool(said) for row in report.right.values() for said in row)
    shown = ", ".join(f"{name} {count}" for name, count in sorted(counts.items()))
    tell(f"{report.subject:20} {len(report.wrong):3} wrong files: {shown}; right ones refused: {refused}")
    return report


# ---- the tables


def table(reports: Sequence[Report]) -> str:
    """Family by family: wrong files, and for each judge how many were caught, noted and missed."""
    rows = [one for report in reports for one in report.wrong]
    order = [one.name for one in FAMILIES] + sorted({r.family for r in rows} - {one.name for one in FAMILIES})
    lines = [
        "| family | wrong files | check: caught | noted | missed | export: caught | noted | missed |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for family in (*order, "all"):
        here = [one for one in rows if family in (one.family, "all")]
        if here:
            counts = [sum(outcome_of(one, judge) == kind for one in here) for judge in JUDGES for kind in KINDS]
            lines.append(f"| {family} | {len(here)} | " + " | ".join(map(str, counts)) + " |")
    return "\n".join(lines)


KINDS = (CAUGHT, NOTED, MISSED)


def outcome_of(one: WrongFile, judge: str) -> str:
    return one.verdicts[judge].outcome if judge in one.verdicts else ""


def misses(reports: Sequence[Report]) -> list[str]:
    rows = [(one, judge, v) for report in reports for one in report.wrong for judge, v in one.verdicts.items()]
    return [
        f"{judge}: {one.family}, {one.subject}: {one.done}\n    wrong at {one.wrong}\n    {v.why}"
        for one, judge, v in sorted(rows, key=lambda row: (row[0].family, row[0].subject, row[1]))
        if v.outcome == MISSED
    ]


def summary(reports: Sequence[Report]) -> str:
    lines = []
    for judge in JUDGES:
        said = [(report.subject, text) for report in reports for text in report.right[judge]]
        refused = [f"{name}: {text}" for name, text in said if text]
        lines.append(f"{judge}: {len(said) - len(refused)} of {len(said)} right files accepted")
        lines += [f"  refused {one}" for one in refused]
        kinds = Counter(
            one.verdicts[judge].why.partition(":")[0]
            for report in reports for one in report.wrong if outcome_of(one, judge) == MISSED
        )  # fmt: skip
        lines.append(
            f"  missed for: {', '.join(f'{name} {count}' for name, count in sorted(kinds.items())) or 'nothing'}"
        )
    crashes = [(one, v) for r in reports for one in r.wrong for v in one.verdicts.values() if v.why.startswith(CRASH)]
    lines += [f"{one.family}, {one.subject}: {v.why}" for one, v in crashes]
    lines += [f"not clean, {r.subject}: {one}" for r in reports for one in r.unclean]
    seconds = Counter()
    for report in reports:
        seconds.update(report.seconds)
    lines.append("CPU time: " + ", ".join(f"{name} {spent:.0f} s" for name, spent in seconds.items()))
    return "\n".join(lines)


def static_table(found: Sequence[Freed]) -> str:
    """Static files for `make_dynamic`: those with a number that came from a size, and those without."""
    outcomes = sorted({one.outcome for one in found})
    lines = [f"| static files | | {' | '.join(outcomes)} |", "|---|---|" + "---|" * len(outcomes)]
    for is_suspect, title in ((True, "with a number from a size"), (False, "without")):
        here = [one.outcome for one in found if one.is_suspect == is_suspect]
        counts = " | ".join(str(here.count(outcome)) for outcome in outcomes)
        lines.append(f"| {title} | {len(here)} | {counts} |")
    return "\n".join([*lines, *(f"  {one.name}: {one.why}" for one in found if one.outcome == FREED_WRONG)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few architectures, each family at two of them")
    parser.add_argument("--only", default="", help="architectures whose name matches; `static` for static files")
    parser.add_argument("--families", default="", help="families whose name matches")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--misses", action="store_true", help="every miss with its reason")
    parser.add_argument("--json", type=Path, help="where everything is written to")
    options = parser.parse_args()
    started = time.monotonic()
    wants_static = re.search(options.only, "static") and not options.families
    statics = range(0, len(STATIC), 3 if options.quick else 1) if wants_static else ()
    chosen = plans(options.seed, options.only, options.families, quick=options.quick)
    reports, others = run(chosen, statics, options.jobs)
    if reports:
        print(f"\n{table(reports)}\n\n{summary(reports)}")
    if others:
        print(f"\n{static_table(others)}")
    print(f"\nin all {time.monotonic() - started:.0f} s")
    if options.misses:
        print("\n" + "\n".join(misses(reports)))
    if options.json:
        everything = {"subjects": [asdict(one) for one in reports], "static": [asdict(one) for one in others]}
        options.json.write_text(json.dumps(everything, indent=1) + "\n")


if __name__ == "__main__":
    main()
