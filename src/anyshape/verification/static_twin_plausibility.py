"""What a freed file must be like even where no values can be compared: it runs, and feels all of what it is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from anyshape.bench.closeness import Array, Feeds
from anyshape.results.verification import Check, Failure
from anyshape.runtime.made_up_inputs import is_mask
from anyshape.verification.static_twin import Pair, Sizes, run_dynamic


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
