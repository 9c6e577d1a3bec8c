"""A static file as the reference for the one that was made of it: run at its own sizes, and sample by sample at others.

What the pair of files shares stands here, too: which axes of inputs and outputs follow a dim, and how inputs are cut
and joined along one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from anyshape.bench.closeness import difference, moved_by_rounding
from anyshape.errors import DeclarationError
from anyshape.onnxfile.interface import Interface, broken_promise
from anyshape.results.verification import Check, Failure
from anyshape.runtime.made_up_inputs import Contents, is_mask
from anyshape.runtime.session import Array, Feeds, RuntimeFailureError, Session
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
        return self.contents.make({port.name: self._shape(port.name, sizes) for port in self.contents.ports}, number)

    def _shape(self, name: str, sizes: Sizes) -> tuple[int, ...]:
        own = next(port.axes or () for port in self.contents.ports if port.name == name)
        dims = self.wanted.get(name, (None,) * len(own))
        return tuple(int(axis or 0) if dim is None else sizes[dim] for axis, dim in zip(own, dims, strict=True))

    def volume(self, sizes: Sizes) -> int:
        """How many elements the inputs have at these sizes."""
        return sum(math.prod(self._shape(port.name, sizes)) for port in self.contents.ports)

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
            part = {name: _picked(value, self.axes(name, dim), chosen) for name, value in feeds.items()}
            groups.append(self.expected(part, {**sizes, dim: own}))
        by_output = zip(*groups, strict=True)
        return [self._together(index, dim, list(parts), count) for index, parts in enumerate(by_output)]

    def _together(self, index: int, dim: str, parts: list[Array], count: int) -> Array:
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


def taken(value: Array, axes: Sequence[int], part: slice) -> Array:
    """A part of some axes."""
    for axis in axes:
        value = value[(slice(None),) * axis + (part,)]
    return value


def _picked(value: Array, axes: Sequence[int], chosen: list[int]) -> Array:
    for axis in axes:
        value = np.take(value, chosen, axis)
    return value


# ---- one run of the dynamic file


def run_dynamic(pair: Pair, feeds: Feeds, sizes: Sizes) -> list[Array] | Failure:
    """The outputs, or the failure: an error of the runtime, or a shape that is not the declared one."""
    try:
        outputs = pair.run_dynamic(feeds)
    except RuntimeFailureError as failure:
        return Failure(dict(sizes), 0, "runtime-error", None, f"fails in ONNX Runtime: {failure}")
    shapes = {name: value.shape for name, value in feeds.items()}
    broken = broken_promise(pair.interface, shapes, [output.shape for output in outputs])
    if broken is not None:
        return Failure(dict(sizes), 0, "wrong-shape", broken[0], f"`{broken[0]}` {broken[1]}")
    return outputs


@dataclass(frozen=True)
class Region:
    """A part of the reference's outputs, and the inputs that lead to it."""

    feeds: Feeds
    sizes: Sizes
    parts: Sequence[Mapping[int, slice]]
    """Of each output: axis -> the part that counts."""

    def of(self, outputs: Sequence[Array], index: int) -> Array:
        value = outputs[index]
        for axis, part in self.parts[index].items():
            value = taken(value, [axis], part)
        return value


def whole(pair: Pair) -> list[dict[int, slice]]:
    """Every output in full."""
    return [{} for _ in pair.interface.outputs]


def compare(
    pair: Pair,
    reference: Region,
    actual: Sequence[Array],
    places: Sequence[Mapping[int, slice]],
    sizes: Sizes,
    indices: Sequence[int],
) -> Check | Failure:
    """Parts of the dynamic file's outputs against the same of the reference."""
    expected = pair.expected(reference.feeds, reference.sizes)
    worst = 0.0
    for index in indices:
        name = pair.interface.outputs[index].name
        want = reference.of(expected, index)
        got = Region({}, sizes, places).of(actual, index)

        def moved(number: int, index: int = index) -> Array:
            return reference.of(pair.expected(moved_by_rounding(reference.feeds, number), reference.sizes), index)

        ratio, sentence = difference(got, want, moved)
        if sentence is not None:
            rule = "wrong-shape" if got.shape != want.shape else "wrong-values"
            return Failure(dict(sizes), 0, rule, name, f"`{name}` {sentence}")
        worst = max(worst, ratio)
    return Check(dict(sizes), 0, worst if math.isfinite(worst) else 0.0)


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


def run_only(pair: Pair, dim: str, sizes: Sequence[int]) -> list[Check | Failure]:
    """Where no values can be compared, the file must at least run, and keep the shapes that it declares."""
    found: list[Check | Failure] = []
    for number, size in enumerate(sizes):
        at = {**pair.sizes, dim: size}
        outcome = run_dynamic(pair, pair.feeds(at, number), at)
        found.append(outcome if isinstance(outcome, Failure) else Check(at, 0, 0.0))
        if size > pair.sizes[dim] and isinstance(found[-1], Check) and (unfelt := _unfelt(pair, dim, at)) is not None:
            found.append(unfelt)
    return found


def _unfelt(pair: Pair, dim: str, sizes: Sizes) -> Failure | None:
    """Places that change nothing, though they do in the static file: an unrolled loop looks at its own length alone."""
    static = _feels(pair, pair.run_static, dim, pair.sizes)
    if not any(static) or any(_feels(pair, pair.run_dynamic, dim, sizes)):
        return None
    sentence = f"ignores the second half of {sizes[dim]} places along `{dim}`, which matters in the static file"
    return Failure(dict(sizes), 0, "wrong-values", None, sentence)


def _feels(pair: Pair, run: Callable[[Feeds], list[Array]], dim: str, sizes: Sizes) -> list[bool]:
    """Of each output, whether it depends on the second half of a dim; on the last place alone does not count."""
    feeds, others = (pair.feeds(sizes, number) for number in (401, 402))
    shown = {port.name: np.ones_like(feeds[port.name]) for port in pair.contents.ports if is_mask(port)}
    feeds, others = {**feeds, **shown}, {**others, **shown}
    changed = pair.replaced(feeds, dim, slice(sizes[dim] // 2, sizes[dim] - 1), others)
    return [not np.array_equal(a, b) for a, b in zip(run(feeds), run(changed), strict=True)]
