"""A static file as the reference for the one that was made of it: run at its own sizes, and sample by sample at others.

What the pair of files shares stands here, too: which axes of inputs and outputs follow a dim, and how inputs are cut
and joined along one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np

from anyshape.bench.batches import taken
from anyshape.bench.bench import BESIDE_ITS_STATIC_TWIN, BenchReference, Checker, Expected, Judged
from anyshape.bench.judgement import MovedRuns, moved_by_rounding
from anyshape.errors import DeclarationError
from anyshape.onnxfile.interface import Interface
from anyshape.results.verification import Check, Failure
from anyshape.runtime.made_up_inputs import Contents, is_mask
from anyshape.runtime.session import Array, Feeds, Session
from anyshape.sizes.notation import Sizes, parse_expression


@dataclass(frozen=True)
class Pair:
    """The static file and the dynamic one."""

    static: Session
    dynamic: Session
    interface: Interface
    """Of the dynamic file."""
    wanted: Mapping[str, tuple[str | None, ...]]
    sizes: Sizes
    """What each dim is in the static file."""
    contents: Contents
    samples: tuple[str, ...] = ()
    """The dims along which samples are known to be independent."""
    kept: tuple[str, ...] = ()
    """The dims that are open in the static file, too: it is the reference at every size of them."""

    def with_samples(self, *dims: str) -> Pair:
        return replace(self, samples=(*self.samples, *dims))

    # ---- inputs

    def feeds(self, sizes: Sizes, number: int) -> Feeds:
        """Inputs at these sizes."""
        return self.contents.make({port.name: self._shape_of(port.name, sizes) for port in self.contents.ports}, number)

    def _shape_of(self, name: str, sizes: Sizes) -> tuple[int, ...]:
        own = next(port.axes or () for port in self.contents.ports if port.name == name)
        dims = self.wanted.get(name, (None,) * len(own))
        return tuple(int(axis or 0) if dim is None else sizes[dim] for axis, dim in zip(own, dims, strict=True))

    def volume(self, sizes: Sizes) -> int:
        """How many elements the inputs have at these sizes."""
        return sum(math.prod(self._shape_of(port.name, sizes)) for port in self.contents.ports)

    def axes(self, name: str, dim: str) -> list[int]:
        """The axes of an input that follow a dim."""
        return [axis for axis, one in enumerate(self.wanted.get(name, ())) if one == dim]

    def cut(self, feeds: Feeds, dim: str, part: slice) -> Feeds:
        """The inputs with a part of the dim alone."""
        return {name: taken(value, self.axes(name, dim), part) for name, value in feeds.items()}

    def replaced(self, feeds: Feeds, dim: str, part: slice, others: Feeds) -> Feeds:
        """The inputs with a part of the dim taken from others."""
        made = {}
        for name, value in feeds.items():
            made[name] = value.copy()
            for axis in self.axes(name, dim):
                place = (slice(None),) * axis + (part,)
                made[name][place] = others[name][place]
        return made

    def joined(self, feeds: Feeds, others: Feeds, dim: str) -> Feeds:
        """The inputs followed by others along the dim; inputs with the dim on two axes cannot be joined."""
        made = {}
        for name, value in feeds.items():
            axes = self.axes(name, dim)
            made[name] = np.concatenate([value, others[name]], axes[0]) if len(axes) == 1 else value
        return made

    # ---- outputs

    def output_axes(self, index: int, dim: str) -> list[int]:
        """The axes of an output whose size depends on the dim."""
        axes = self.interface.outputs[index].axes or ()
        return [axis for axis, declared in enumerate(axes) if isinstance(declared, str) and dim in names_in(declared)]

    def output_size(self, index: int, axis: int, sizes: Sizes) -> int:
        """The declared size of an output's axis at these sizes; 0 where it has none."""
        declared = (self.interface.outputs[index].axes or ())[axis]
        try:
            return declared if isinstance(declared, int) else parse_expression(str(declared)).value(sizes)
        except (DeclarationError, KeyError, ZeroDivisionError):
            return 0

    # ---- runs: of large weights, those of one file are in memory at a time

    def run_static(self, feeds: Feeds) -> list[Array]:
        self.dynamic.rest()
        return self.static.run(feeds)

    def run_dynamic(self, feeds: Feeds) -> list[Array]:
        self.static.rest()
        return self.dynamic.run(feeds)

    def expected(self, feeds: Feeds, sizes: Sizes) -> list[Array]:
        """What the static file gives: in groups of its own number of samples, the last one filled up with the first."""
        dim = next((dim for dim in self.samples if sizes[dim] != self.sizes[dim]), None)
        if dim is None:
            return self.run_static(feeds)
        own, count = self.sizes[dim], sizes[dim]
        groups = []
        for first in range(0, count, own):
            chosen = [index % count for index in range(first, first + own)]
            part = {name: _picked_samples(value, self.axes(name, dim), chosen) for name, value in feeds.items()}
            groups.append(self.expected(part, {**sizes, dim: own}))
        by_output = zip(*groups, strict=True)
        return [self._joined_groups(index, dim, list(parts), count) for index, parts in enumerate(by_output)]

    def _joined_groups(self, index: int, dim: str, parts: list[Array], count: int) -> Array:
        axes = self.output_axes(index, dim)
        if not axes:
            return parts[0]
        whole = np.concatenate(parts, axes[0])
        each = parts[0].shape[axes[0]] // self.sizes[dim]
        return taken(whole, axes[:1], slice(0, each * count))


def names_in(declared: str) -> tuple[str, ...]:
    try:
        return parse_expression(declared).names
    except DeclarationError:
        return (declared,)


def _picked_samples(value: Array, axes: Sequence[int], chosen: list[int]) -> Array:
    for axis in axes:
        value = np.take(value, chosen, axis)
    return value


# ---- the static file on the bench

Parts = Sequence[Mapping[int, slice]]
"""Of each output: axis -> the part that counts."""


@dataclass(frozen=True)
class TwinRun:
    """A call of the dynamic file, and the call of the static one that says what must come of it."""

    sizes: Sizes
    feeds: Feeds
    static_sizes: Sizes
    static_feeds: Feeds
    there: Parts
    """In the static file's outputs."""
    here: Parts
    """The same in those of the dynamic file."""
    covered: Sequence[int]
    """The outputs of which this holds."""

    content: int = 0
    error: Exception | None = None
    outputs: tuple[()] = ()
    gradients: bool = False


@dataclass(frozen=True)
class TwinReference(BenchReference[TwinRun]):
    """The static file beside the dynamic one."""

    pair: Pair

    def run(self, sizes: Sizes, content: int = 0) -> TwinRun:
        """Both files on the same inputs, every output in full."""
        feeds, everything = self.pair.feeds(sizes, content), whole(self.pair)
        return TwinRun(sizes, feeds, sizes, feeds, everything, everything, range(len(everything)))

    def volume(self, sizes: Sizes) -> int:
        return self.pair.volume(sizes)

    def inputs(self, run: TwinRun) -> Feeds:
        return run.feeds

    def input_shapes(self, run: TwinRun) -> dict[str, tuple[int, ...]]:
        return {name: value.shape for name, value in run.feeds.items()}

    def make_room(self) -> None:
        self.pair.static.rest()

    def expected(self, run: TwinRun) -> Iterator[Expected]:
        outputs = self.pair.expected(run.static_feeds, run.static_sizes)

        @cache
        def moved(number: int) -> list[Array]:
            return self.pair.expected(moved_by_rounding(run.static_feeds, number), run.static_sizes)

        for index in run.covered:
            part = partial(_cut_out, parts=run.there[index])
            noise = MovedRuns(lambda number, index=index, part=part: part(moved(number)[index]))  # type: ignore[misc]
            yield Expected(index, part(outputs[index]), noise)

    def compared(self, run: TwinRun, index: int, result: Array) -> Array:
        return _cut_out(result, run.here[index])


def whole(pair: Pair) -> list[dict[int, slice]]:
    """Every output in full."""
    return [{} for _ in pair.interface.outputs]


def _cut_out(value: Array, parts: Mapping[int, slice]) -> Array:
    for axis, part in parts.items():
        value = taken(value, [axis], part)
    return value


def checker_beside_twin(pair: Pair) -> Checker[TwinRun]:
    return Checker(pair.dynamic, pair.interface, TwinReference(pair), BESIDE_ITS_STATIC_TWIN)


# ---- what the dynamic file shows without values to compare


def misplaced_batch(pair: Pair) -> Failure | None:
    """A batch that went into another axis while its own stayed a number: consistent in itself, but nobody means it."""
    for dim, own in pair.sizes.items():
        if any(0 not in pair.axes(name, dim) for name in pair.wanted if pair.axes(name, dim)):
            continue
        for index, port in enumerate(pair.interface.outputs):
            axes = pair.output_axes(index, dim)
            if axes and 0 not in axes and port.axes and port.axes[0] == own:
                sentence = f"`{port.name}` has {own} on axis 0, and `{dim}` went into `{port.axes[axes[0]]}`"
                return Failure(dict(pair.sizes), 0, "wrong-shape", port.name, sentence)
    return None


def run_only(pair: Pair, dim: str, sizes: Sequence[int]) -> list[Judged]:
    """Where no values can be compared, the file must at least run, and keep the shapes that it declares."""
    found: list[Judged] = []
    checker = checker_beside_twin(pair)
    for number, size in enumerate(sizes):
        at = {**pair.sizes, dim: size}
        outcome = checker.results(checker.reference.run(at, number))
        found.append(outcome if isinstance(outcome, Failure) else Check(at, 0, 0.0))
        # only where the dim has grown: what an unrolled loop does not look at lies behind its own length
        if (
            size > pair.sizes[dim]
            and isinstance(found[-1], Check)
            and (unfelt := _unfelt_half(pair, dim, at)) is not None
        ):
            found.append(unfelt)
    return found


def _unfelt_half(pair: Pair, dim: str, sizes: Sizes) -> Failure | None:
    """Places that change nothing, though they do in the static file: an unrolled loop looks at its own length alone."""
    static = _outputs_that_feel(pair, pair.run_static, dim, pair.sizes)
    if not any(static) or any(_outputs_that_feel(pair, pair.run_dynamic, dim, sizes)):
        return None
    sentence = f"ignores the second half of {sizes[dim]} places along `{dim}`, which matters in the static file"
    return Failure(dict(sizes), 0, "wrong-values", None, sentence)


def _outputs_that_feel(pair: Pair, run: Callable[[Feeds], list[Array]], dim: str, sizes: Sizes) -> list[bool]:
    """Of each output, whether it depends on the second half of a dim; on the last place alone does not count."""
    feeds, others = (pair.feeds(sizes, number) for number in (401, 402))
    # a mask that hides a place would hide the difference
    shown = {
        port.name: np.ones_like(feeds[port.name]) for port in pair.contents.ports if is_mask(port.name, port.dtype)
    }
    feeds, others = {**feeds, **shown}, {**others, **shown}
    changed = pair.replaced(feeds, dim, slice(sizes[dim] // 2, sizes[dim] - 1), others)
    return [not np.array_equal(a, b) for a, b in zip(run(feeds), run(changed), strict=True)]
