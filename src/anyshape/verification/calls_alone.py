"""Calls of a file whose model is not at hand, for timing: made up for its own declaration, at sizes that it runs at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anyshape.results.verification import Failure
from anyshape.sizes.notation import Expression, SizeRange, Sizes
from anyshape.testbench.batches import batch_dims
from anyshape.testbench.timed_calls import TimedCall, TimedCalls
from anyshape.testbench.timed_sizes import SizesOffered
from anyshape.verification.given_file import CheckOptions, FileBench, GivenFile, bench_alone, declare_by_file

_USUAL = 16
"""Of a dim that is no batch: small, and not so small that calling operators is all that is timed."""


def calls_alone(file: GivenFile, where: Sequence[str], options: CheckOptions) -> TimedCalls:
    """Calls for the file, which is run to find values that it takes; RuntimeFailureError where it does not load."""
    declaration = declare_by_file(file, None, where, options.seed)
    bench = bench_alone(file.open(options), file, declaration, options)
    reference = bench.checker.reference

    def call_at(sizes: Sizes) -> TimedCall | str:
        if (reason := reference.refuses(sizes)) is not None:
            return reason
        judged = bench.checker.judge_at(sizes)
        if isinstance(judged, Failure) and judged.rule == "runtime-error":
            return judged.sentence
        return TimedCall(reference.inputs(reference.run(sizes, judged.content)))

    offered = SizesOffered(
        _usual_sizes(bench), declaration.ranges, bench.boundaries.admit, lambda sizes: reference.effort(sizes).work
    )
    return TimedCalls(offered, call_at, notes=tuple(file.doubts))


def _usual_sizes(bench: FileBench) -> Sizes:
    """One sample, and some of everything else; or what the file was found to run at."""
    ranges, base = bench.declaration.ranges, bench.boundaries.base
    wanted = _wanted_sizes(ranges, bench.declaration.calls.axes)
    usual = bench.boundaries.admit(wanted)
    if usual is None or isinstance(bench.checker.judge_at(usual), Failure):
        return base
    return usual


def _wanted_sizes(
    ranges: Mapping[str, SizeRange], axes: Mapping[str, tuple[Expression | int, ...]]
) -> Mapping[str, int]:
    rows = [tuple(axis if isinstance(axis, Expression) else None for axis in row) for row in axes.values()]
    batches = batch_dims(ranges, rows)
    return {dim: declared.nearest(1 if dim in batches else _USUAL) for dim, declared in ranges.items()}
