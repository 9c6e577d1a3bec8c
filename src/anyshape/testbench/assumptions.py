"""What a trace assumed about sizes, and what became of each: proved, run on both sides, or still open.

A trace asks one question after the other, each where all before it were answered as they were; so a size that breaks an
assumption tells something only where those before it hold. Where the model's own code asked, the other side may ask
further questions: it is traced as well, as long as its answers make no difference.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from anyshape.onnxfile.contract import Assumption, End
from anyshape.results.attempt import Guard
from anyshape.results.verification import Verification
from anyshape.sizes import budgets
from anyshape.sizes.notation import Sizes
from anyshape.sizes.settlement import Question, SizesInQuestion, find_breaks, truths

Path = tuple[Guard, ...]
"""What one trace assumed, in order."""


@dataclass(frozen=True)
class _Asked:
    """An assumption, and those before it on its path."""

    guard: Guard
    before: Path


class Assumptions:
    """The assumptions behind one file. What is known of them grows with its runs."""

    def __init__(
        self,
        paths: Iterable[Path],
        declared: Callable[[], SizesInQuestion],
        trace: Callable[[Sizes], Path] | None = None,
    ) -> None:
        self._declared = declared
        """What is declared, inside the limits that are known by now."""
        self._trace = trace
        self._paths = list(paths)
        self._traced = 0
        self._answers: dict[tuple[str, tuple[int, ...]], bool | None] = {}
        self._proved: set[str] = set()
        self._fails: set[str] = set()
        """What breaks only where PyTorch itself fails, as far as it was run."""
        self._proposed: dict[str, list[Sizes]] = {}

    def others(self, own: Collection[Guard]) -> Path:
        """All but these: what the model's code asks on other paths."""
        known = {guard.text for guard in own}
        return tuple(guard for path in self._paths for guard in path if guard.text not in known)

    def beside(self, paths: Iterable[Path]) -> Assumptions:
        """Others about the same sizes, which nobody needs to settle."""
        return Assumptions(paths, self._declared)

    def before_any_run(self, planned: Sequence[Sizes]) -> list[Sizes]:
        """Sizes that break what none of the planned ones breaks."""
        self._learn(planned)
        return self._all_breaks(planned, ())

    def sizes_to_run(self, right: Sequence[Sizes], refused: Collection[Sizes] = ()) -> list[Sizes]:
        """Sizes that break what no run has broken yet; none where all is settled, or nothing more is known."""
        while True:
            self._learn(right)
            wanted = self._all_breaks(right, refused)
            if wanted or not self._follow_another_path(right):
                return wanted

    def _all_breaks(self, run: Sequence[Sizes], refused: Collection[Sizes]) -> list[Sizes]:
        wanted = [sizes for question in self._questions() for sizes in self._breaks(question, run, refused)]
        unique = {tuple(sizes.values()): sizes for sizes in wanted}
        return sorted(unique.values(), key=lambda sizes: sum(sizes.values()))

    def _questions(self) -> Iterator[_Asked]:
        known: set[str] = set()
        for path in self._paths:
            asked = [guard for guard in path if guard.is_about_sizes and not guard.says_nothing]
            for place, guard in enumerate(asked):
                if guard.text not in known and (not known or guard.opposite.text not in known):
                    yield _Asked(guard, tuple(asked[:place]))
            known |= {guard.text for guard in asked}

    def _learn(self, run: Sequence[Sizes]) -> None:
        """Compute all assumptions at all sizes, many at once."""
        for guard in {guard.text: guard for path in self._paths for guard in path}.values():
            new = [sizes for sizes in run if (guard.text, tuple(sizes.values())) not in self._answers]
            for sizes, answer in zip(new, truths(guard.claim, new), strict=True):
                self._answers[guard.text, tuple(sizes.values())] = answer

    def _holds(self, guard: Guard, sizes: Sizes) -> bool | None:
        return self._answers[guard.text, tuple(sizes.values())]

    def _is_broken(self, question: _Asked, sizes: Sizes) -> bool:
        """Whether it does not hold although those before it do: then the model itself answers it otherwise."""
        return self._holds(question.guard, sizes) is False and self._is_reached(question, sizes)

    def _is_reached(self, question: _Asked, sizes: Sizes) -> bool:
        return all(self._holds(guard, sizes) is not False for guard in question.before)

    def _breaks(self, question: _Asked, right: Sequence[Sizes], refused: Collection[Sizes]) -> Iterator[Sizes]:
        """Sizes to run for one question, once; again where PyTorch fails at all that were found."""
        text, proposed = question.guard.text, self._proposed.setdefault(question.guard.text, [])
        broken = sum(self._is_broken(question, sizes) for sizes in right)
        is_waiting = any(sizes not in refused and self._is_admitted(sizes) for sizes in proposed)
        is_settled = text in self._proved | self._fails or is_waiting or broken >= budgets.ENOUGH_SIZES_PER_SIDE
        if is_settled or len(proposed) >= 2 * budgets.ROUNDS_OF_BREAKING:
            return
        # where PyTorch fails at sizes of these very dims, it is taken to fail whatever the others are
        avoided = [{dim: sizes[dim] for dim in question.guard.dims} for sizes in refused if sizes in proposed]
        before = [guard.claim for guard in question.before]
        answer = find_breaks(Question(question.guard.claim, before, self._declared(), avoided))
        if answer.is_proved:
            (self._fails if avoided else self._proved).add(text)
        proposed += answer.sizes
        yield from answer.sizes

    def _follow_another_path(self, right: Iterable[Sizes]) -> bool:
        """Trace where the model's code decides otherwise than on all paths so far, and the file is right."""
        if self._trace is None or self._traced >= budgets.MOST_PATHS_FOLLOWED:
            return False
        left = [sizes for sizes in right if self._decides_otherwise(sizes)]
        if not left:
            return False
        # the fewest others broken: size 1 breaks much that is torch's own, and its trace tells little
        own = self._paths[0]
        at = min(left, key=lambda sizes: (sum(self._holds(one, sizes) is False for one in own), sum(sizes.values())))
        self._traced += 1
        self._paths.append(self._trace(at))
        return True

    def _decides_otherwise(self, sizes: Sizes) -> bool:
        """Whether on every known path a decision of the model's code is the first that does not hold there."""
        broken = [next((one for one in path if self._holds(one, sizes) is False), None) for path in self._paths]
        return bool(broken) and all(guard is not None and guard.decides for guard in broken)

    # ---- what became of them

    def ends(self, verification: Verification) -> tuple[Assumption, ...]:
        """Each assumption once, in the order in which it was made."""
        self._learn(verification.sizes_run)
        if not verification.failures:
            self.sizes_to_run(verification.sizes_run, verification.invalid)  # limits that were found late prove more
        told = {question.guard.text: self._end_of(question, verification) for question in self._questions()}
        for guard in itertools.chain(*self._paths):
            if guard.says_nothing or not guard.is_about_sizes:
                end: End = "proved" if guard.says_nothing else "open"
                told.setdefault(guard.text, Assumption(guard.text, guard.place, end))
        return tuple(told.values())

    def broken_at(self, run: Sequence[Sizes]) -> list[list[Sizes]]:
        """For each assumption the sizes that break it, of those that were run."""
        self._learn(run)
        return [[sizes for sizes in run if self._is_broken(question, sizes)] for question in self._questions()]

    def _end_of(self, question: _Asked, verification: Verification) -> Assumption:
        guard, right = question.guard, verification.sizes_run
        if guard.text in self._proved:
            return Assumption(guard.text, guard.place, "proved")
        reached = [sizes for sizes in right if self._is_reached(question, sizes)]
        holds_at = next((sizes for sizes in reached if self._holds(guard, sizes)), None)
        breaks_at = next((sizes for sizes in reached if self._holds(guard, sizes) is False), None)
        if holds_at is not None and breaks_at is None and guard.text in self._fails:
            breaks_at = self._proposed[guard.text][0]
        if breaks_at is not None:  # a trace that follows several paths may ask what no size keeps
            return Assumption(guard.text, guard.place, "run", holds_at, breaks_at)
        known = (sizes for sizes in self._proposed.get(guard.text, ()) if sizes not in verification.invalid)
        return Assumption(guard.text, guard.place, "open", holds_at, next(filter(self._is_admitted, known), None))

    def _is_admitted(self, sizes: Sizes) -> bool:
        return all(relation.holds(sizes) for relation in self._declared().relations)
