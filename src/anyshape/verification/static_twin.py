"""A static file as the reference for the one that was made of it: run at its own sizes, and sample by sample at others.

What the pair of files shares stands here, too: which axes of inputs and outputs follow a dim, and how inputs are cut
and joined along one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial

import numpy as np

from anyshape.onnxfile.interface import Interface, dims_in, expected_size
from anyshape.runtime.made_up_inputs import Contents
from anyshape.runtime.session import Array, Feeds, Session
from anyshape.sizes import budgets
from anyshape.sizes.effort import Effort
from anyshape.sizes.notation import Sizes
from anyshape.testbench.batches import taken
from anyshape.testbench.checker import BESIDE_ITS_STATIC_TWIN, BenchReference, Checker, Expected
from anyshape.testbench.judgement import MovedRuns, moved_by_rounding


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
    told: Callable[[Sizes], Mapping[str, Array]] = lambda _: {}
    """Numbers of the static file that follow from sizes, as the user says, which are inputs of it then."""

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

    def effort(self, sizes: Sizes) -> Effort:
        """What a run of the dynamic file takes: as much more than one of the static file as its inputs are larger."""
        own, grown = self._own_effort, self.volume(sizes) / max(self.volume(self.sizes), 1)
        return Effort(own.computed * grown, own.calls, {kind: size * grown for kind, size in own.largest.items()})

    @cached_property
    def _own_effort(self) -> Effort:
        """Of the static file, counted once: its inputs may be long."""
        feeds = {**self.feeds(self.sizes, 0), **self.told(self.sizes)}
        return self.static.effort(feeds) or Effort(self.volume(self.sizes) * budgets.WORK_OF_AN_INPUT)

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

    def turned(self, feeds: Feeds, dim: str) -> Feeds:
        """The inputs with everything along the dim one place further, and the last first."""
        return {
            name: np.roll(value, 1, axes) if (axes := self.axes(name, dim)) else value for name, value in feeds.items()
        }

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
        return [axis for axis, declared in enumerate(axes) if isinstance(declared, str) and dim in dims_in(declared)]

    def output_size(self, index: int, axis: int, sizes: Sizes) -> int:
        """The declared size of an output's axis at these sizes; 0 where it has none."""
        declared = (self.interface.outputs[index].axes or ())[axis]
        return declared if isinstance(declared, int) else expected_size(str(declared), sizes) or 0

    # ---- runs: of large weights, those of one file are in memory at a time

    def run_static(self, feeds: Feeds, at: Sizes | None = None) -> list[Array]:
        """`at` are the sizes for which the static file stands, if not its own."""
        self.dynamic.rest()
        return self.static.run({**feeds, **self.told(at or self.sizes)})

    def run_dynamic(self, feeds: Feeds) -> list[Array]:
        self.static.rest()
        return self.dynamic.run(feeds)

    def expected(self, feeds: Feeds, sizes: Sizes, at: Sizes | None = None) -> list[Array]:
        """What the static file gives: in groups of its own number of samples, the last one filled up with the first."""
        dim = next((dim for dim in self.samples if sizes[dim] != self.sizes[dim]), None)
        if dim is None:
            return self.run_static(feeds, at)
        own, count = self.sizes[dim], sizes[dim]
        groups = []
        for first in range(0, count, own):
            chosen = [index % count for index in range(first, first + own)]
            part = dict(feeds)
            for name in feeds:
                for axis in self.axes(name, dim):
                    part[name] = np.take(part[name], chosen, axis)
            groups.append(self.expected(part, {**sizes, dim: own}, at))
        by_output = zip(*groups, strict=True)
        return [self._joined_groups(index, dim, list(parts), count) for index, parts in enumerate(by_output)]

    def _joined_groups(self, index: int, dim: str, parts: list[Array], count: int) -> Array:
        axes = self.output_axes(index, dim)
        if not axes:
            return parts[0]
        whole = np.concatenate(parts, axes[0])
        each = parts[0].shape[axes[0]] // self.sizes[dim]
        return taken(whole, axes[:1], slice(0, each * count))


# ---- the static file on the bench

Region = Mapping[int, slice]
"""The part of an output that counts: axis -> places."""
Regions = Mapping[int, Region]
"""Output -> its region, for those outputs that are compared."""


@dataclass(frozen=True)
class TwinRun:
    """A call of the dynamic file, and the call of the static one that says what must come of it."""

    sizes: Sizes
    feeds: Feeds
    static_sizes: Sizes
    static_feeds: Feeds
    there: Regions
    """In the static file's outputs."""
    here: Regions
    """The same in those of the dynamic file."""

    content: int = 0
    error: Exception | None = None
    outputs: tuple[()] = ()
    gradients: bool = False

    def over(self, outputs: Sequence[int]) -> TwinRun:
        """The same for these outputs alone."""
        there, here = ({index: regions[index] for index in outputs} for regions in (self.there, self.here))
        return replace(self, there=there, here=here)


@dataclass(frozen=True)
class TwinReference(BenchReference[TwinRun]):
    """The static file beside the dynamic one."""

    pair: Pair

    def run(self, sizes: Sizes, content: int = 0) -> TwinRun:
        """Both files on the same inputs, every output in full."""
        feeds, everything = self.pair.feeds(sizes, content), whole(range(len(self.pair.interface.outputs)))
        return TwinRun(sizes, feeds, sizes, feeds, everything, everything)

    def volume(self, sizes: Sizes) -> int:
        return self.pair.volume(sizes)

    def inputs(self, run: TwinRun) -> Feeds:
        return run.feeds

    def input_shapes(self, run: TwinRun) -> dict[str, tuple[int, ...]]:
        return {name: value.shape for name, value in run.feeds.items()}

    def make_room(self) -> None:
        self.pair.static.rest()

    def expected(self, run: TwinRun) -> Iterator[Expected]:
        outputs = self.pair.expected(run.static_feeds, run.static_sizes, run.sizes)

        @cache
        def moved(number: int) -> list[Array]:
            return self.pair.expected(moved_by_rounding(run.static_feeds, number), run.static_sizes, run.sizes)

        for index, region in run.there.items():
            part = partial(cut_out, region=region)
            noise = MovedRuns(lambda number, index=index, part=part: part(moved(number)[index]))  # type: ignore[misc]
            yield Expected(index, part(outputs[index]), noise)

    def compared(self, run: TwinRun, index: int, result: Array) -> Array:
        return cut_out(result, run.here[index])


def whole(outputs: Iterable[int]) -> Regions:
    """These outputs in full."""
    return {index: {} for index in outputs}


def cut_out(value: Array, region: Region) -> Array:
    for axis, part in region.items():
        value = taken(value, [axis], part)
    return value


def checker_beside_twin(pair: Pair) -> Checker[TwinRun]:
    return Checker(pair.dynamic, pair.interface, TwinReference(pair), BESIDE_ITS_STATIC_TWIN)
