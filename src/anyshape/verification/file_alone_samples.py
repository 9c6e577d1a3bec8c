"""Do the samples of a batch influence each other? The same samples in two parts must give what they give together.

That needs no model: the file is held to itself. To mix samples is not wrong in itself, so this is a warning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from anyshape.bench.batches import axis_of, batch_dims
from anyshape.bench.closeness import Array, Feeds, are_close, moved_by_rounding
from anyshape.bench.plan import Sizes
from anyshape.results.finding import Finding, Span
from anyshape.runtime.session import RuntimeFailureError
from anyshape.sizes.notation import Expression, SizeRange
from anyshape.verification.file_alone_subject import Subject

_PARTS = ((2, 1), (3, 2))
"""Small, and unlike each other; then for a file that refuses one sample."""


def sample_findings(subject: Subject, ranges: Mapping[str, SizeRange], base: Sizes, home: Span) -> list[Finding]:
    """A warning for each batch whose samples are mixed."""
    rows = _rows(subject)
    found = (_mixed(subject, ranges, base, dim) for dim in batch_dims(ranges, list(rows.values())))
    return [_finding(*mixed, home) for mixed in found if mixed is not None]


def _rows(subject: Subject) -> dict[str, tuple[Expression | None, ...]]:
    return {
        name: tuple(axis if isinstance(axis, Expression) else None for axis in axes)
        for name, axes in subject.calls.axes.items()
    }


def _mixed(
    subject: Subject, ranges: Mapping[str, SizeRange], base: Sizes, dim: str
) -> tuple[str, str, Mapping[str, int]] | None:
    """The dim, an output in which its samples are mixed, and where; None where there is none or none can be found."""
    for first, second in _PARTS:
        total = first + second
        shapes = subject.calls.shapes({**base, dim: total})
        if shapes is None or not all(size in ranges[dim] for size in (first, second, total)):
            continue
        whole = subject.calls.make(shapes, 0)
        parts = [_cut(subject, whole, dim, slice(0, first)), _cut(subject, whole, dim, slice(first, total))]
        try:
            outputs = _mixed_outputs(subject, whole, parts, (first, second))
        except RuntimeFailureError:
            continue
        return next(((dim, name, {**base, dim: total}) for name in outputs), None)
    return None


def _cut(subject: Subject, feeds: Feeds, dim: str, part: slice) -> Feeds:
    axes = {name: axis_of(dim, row) for name, row in _rows(subject).items()}
    return {
        name: value if (axis := axes[name]) is None else value[(slice(None),) * axis + (part,)]
        for name, value in feeds.items()
    }


def _mixed_outputs(subject: Subject, whole: Feeds, parts: Sequence[Feeds], sizes: tuple[int, int]) -> Iterator[str]:
    together = subject.session.run(whole)
    apart = [subject.session.run(part) for part in parts]
    for index, port in enumerate(subject.interface.outputs):
        axis = _axis_of_samples(together[index], [run[index] for run in apart], sizes)
        if axis is None:
            continue
        joined = np.concatenate([run[index] for run in apart], axis)

        def moved(number: int, index: int = index) -> Array:
            return subject.session.run(moved_by_rounding(whole, number))[index]

        if not are_close(joined, together[index], moved):
            yield port.name


def _axis_of_samples(whole: Array, parts: Sequence[Array], sizes: tuple[int, int]) -> int | None:
    """The only axis along which an output has one entry, or several, for each sample."""
    shapes = [getattr(one, "shape", ()) for one in (whole, *parts)]
    if len({len(shape) for shape in shapes}) != 1:
        return None
    moving = [axis for axis, found in enumerate(zip(*shapes, strict=True)) if len(set(found)) > 1]
    if len(moving) != 1:
        return None
    each = [
        shapes[0][moving[0]] / sum(sizes),
        *(shape[moving[0]] / n for shape, n in zip(shapes[1:], sizes, strict=True)),
    ]
    return moving[0] if each[0] == each[1] == each[2] else None


def _finding(dim: str, output: str, sizes: Mapping[str, int], home: Span) -> Finding:
    return Finding(
        "mixed-batch",
        f"samples of `{dim}` are mixed",
        home,
        notes=(
            f"f(cat(a, b)) differs from cat(f(a), f(b)): `{output}` of a sample changes when another stands beside it",
        ),
        level="warning",
        dims=(dim,),
        breaks_at=dict(sizes),
    )
