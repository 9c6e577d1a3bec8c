"""The map of sizes: every size that was run, refused or left out, with what became of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from anyshape.errors import DeclarationError
from anyshape.sizes.notation import Condition, SizeRange, Sizes, parse_condition

if TYPE_CHECKING:
    from anyshape.results.result import Result
    from anyshape.results.verification import Verification

SizeState = Literal["right", "wrong", "limit", "not run"]


@dataclass(frozen=True)
class MapMark:
    """One size, and all that was run there."""

    sizes: tuple[int, ...]
    """In the order of the map's dims."""
    state: SizeState
    ratio: float | None = None
    """The largest error, in units of the measure; None where values were not compared, or nothing was right."""
    contents: int = 0
    """How many contents were run."""
    values: tuple[str, ...] = ()
    """Which inputs held other values than those that were drawn."""
    sentence: str = ""
    """Why it is wrong, beyond a limit or not run."""


@dataclass(frozen=True)
class MapRelation:
    """What excludes sizes, and who says so: the declaration, PyTorch itself, or a narrowed file."""

    text: str
    by: Literal["where", "limit", "given up"]
    condition: Condition


@dataclass(frozen=True)
class SizeMap:
    """The dims of a file, what excludes sizes, and a mark for each size that was asked about."""

    dims: Mapping[str, SizeRange]
    relations: tuple[MapRelation, ...]
    marks: tuple[MapMark, ...]
    allowed: float = 0.0
    """How many times the measure was allowed; 0 where values were not compared."""
    measure: str = ""

    @property
    def start(self) -> Sizes | None:
        """The size at which most contents were run, which is the example's or near it; None where none was right."""
        right = [mark for mark in self.marks if mark.state == "right"]
        most = max(right, key=lambda mark: mark.contents, default=None)
        return None if most is None else dict(zip(self.dims, most.sizes, strict=True))

    def to_dict(self) -> dict[str, Any]:
        return {
            "dims": [dim_to_dict(dim, declared) for dim, declared in self.dims.items()],
            "relations": [
                {"text": one.text, "by": one.by, "dims": [list(self.dims).index(dim) for dim in one.condition.names]}
                for one in self.relations
            ],
            "marks": [
                {**vars(one), "sizes": list(one.sizes), "values": list(one.values)}
                for one in sorted(self.marks, key=lambda mark: mark.sizes)
            ],
            "allowed": self.allowed,
            "measure": self.measure,
        }


def dim_to_dict(name: str, declared: SizeRange) -> dict[str, Any]:
    sizes = None if declared.values is None else list(declared.values)
    return {
        "name": name, "text": str(declared), "first": declared.lo, "last": declared.hi, "step": declared.step,
        "sizes": sizes,
    }  # fmt: skip


def map_of(result: Result) -> SizeMap:
    """What is known of a result's sizes; of a refusal the sizes that break it, too."""
    verification = result.verification
    marks: dict[tuple[int, ...], MapMark] = {}
    dims = {**dict.fromkeys(_dims_of_runs(result), SizeRange()), **result.dims}
    for mark in (*_breaking_marks(result, dims), *(_marks_of(verification, dims) if verification is not None else ())):
        before = marks.get(mark.sizes)
        marks[mark.sizes] = mark if before is None else _joint_mark(before, mark)
    compares = verification is not None and verification.compares_values
    return SizeMap(
        dims,
        tuple(_relations(result, dims)),
        tuple(marks.values()),
        verification.factor if verification is not None and compares else 0.0,
        verification.measure if verification is not None and compares else "",
    )


def _dims_of_runs(result: Result) -> tuple[str, ...]:
    run = result.verification.sizes_run if result.verification is not None else ()
    return tuple(run[0]) if run else ()


def _breaking_marks(result: Result, dims: Mapping[str, SizeRange]) -> Iterator[MapMark]:
    """The smallest sizes that break a refused result, as its findings have them: the model's fault, or the file's."""
    for finding in result.findings:
        sizes = finding.breaks_at
        if result.verdict == "refused" and sizes is not None and set(sizes) == set(dims):
            state: SizeState = "limit" if finding.origin == "model" else "wrong"
            yield MapMark(_in_order(sizes, dims), state, sentence=finding.headline)


def _marks_of(verification: Verification, dims: Mapping[str, SizeRange]) -> Iterator[MapMark]:
    for failure in verification.failures:
        said = (failure.values,) if failure.values else ()
        yield MapMark(_in_order(failure.sizes, dims), "wrong", None, 1, said, failure.sentence)
    for check in verification.checks:
        ratio = check.ratio if verification.compares_values and check.ratio < float("inf") else None
        said = (check.values,) if check.values else ()
        yield MapMark(_in_order(check.sizes, dims), "right", None if ratio is None else round(ratio, 3), 1, said)
    for sizes in verification.invalid:
        yield MapMark(_in_order(sizes, dims), "limit", sentence=f"{verification.against} itself fails here")
    for sizes, reason in verification.skipped:
        yield MapMark(_in_order(sizes, dims), "not run", sentence=reason)


def _in_order(sizes: Sizes, dims: Mapping[str, SizeRange]) -> tuple[int, ...]:
    """What a run has no size for, it does not vary."""
    return tuple(sizes.get(dim, dims[dim].lo) for dim in dims)


_WORST_FIRST: Sequence[SizeState] = ("wrong", "right", "limit", "not run")


def _joint_mark(first: MapMark, second: MapMark) -> MapMark:
    """Two things that are known of one size, as one mark: one wrong content makes the size wrong."""
    worse, other = sorted((first, second), key=lambda mark: _WORST_FIRST.index(mark.state))
    ratios = [mark.ratio for mark in (first, second) if mark.ratio is not None]
    return replace(
        worse,
        ratio=max(ratios, default=None),
        contents=first.contents + second.contents,
        values=tuple(dict.fromkeys((*first.values, *second.values))),
        sentence=worse.sentence or (other.sentence if worse.state == other.state else ""),
    )


def _relations(result: Result, dims: Mapping[str, SizeRange]) -> Iterator[MapRelation]:
    """Those that can be asked of the map's dims."""
    only = "only where "
    narrowed = tuple(text.removeprefix(only) for text in result.given_up if text.startswith(only))
    told: tuple[tuple[Literal["where", "limit", "given up"], Sequence[str]], ...] = (
        ("where", result.where), ("limit", result.limits), ("given up", narrowed),
    )  # fmt: skip
    for by, texts in told:
        for text in texts:
            try:
                condition = parse_condition(text)
            except DeclarationError:
                continue
            if set(condition.names) <= set(dims):
                yield MapRelation(text, by, condition)
