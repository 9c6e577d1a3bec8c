"""The labels of outputs: as all runs have shown them, and before any run, as the trace foretells them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anyshape.conversion.candidates import Candidate
from anyshape.errors import DeclarationError
from anyshape.model.labels import declared_expressions, output_axes, output_names
from anyshape.model.limits import effective_range
from anyshape.model.survey import Survey
from anyshape.sizes import budgets
from anyshape.sizes.fit import Observation, fit_outputs
from anyshape.sizes.notation import Expression, SizeRange, Sizes, parse_expression
from anyshape.testbench.plan import spread_sizes

Labels = list[list[int | str] | None]
"""For every output its axes; None where their number is open."""


def fitted_labels(
    survey: Survey,
    candidate: Candidate,
    observations: Sequence[Observation],
    ranges: Mapping[str, SizeRange],
    notes: list[str],
) -> tuple[Labels, Mapping[str, tuple[str, ...]]]:
    """The labels that hold in all these runs, and the formula behind each; notes are added to."""
    request = survey.request
    scalars, declared = bool(request.spec.scalars), declared_expressions(request)
    fitted = fit_outputs(observations, candidate.outputs, declared, scalars=scalars, ranges=ranges)
    names = output_names(request, survey.first.names)
    return output_axes(request, names, fitted, [one.shapes for one in observations], notes)


def final_ranges(survey: Survey, ranges: Mapping[str, SizeRange]) -> dict[str, SizeRange]:
    """What is left of the declared ranges within the limits that are known."""
    return {dim: effective_range(one, survey.boundaries.limits, dim) for dim, one in ranges.items()}


def foretold_labels(survey: Survey, candidate: Candidate, ranges: Mapping[str, SizeRange]) -> Labels | None:
    """The labels that all runs will show if the trace is right; None where it does not say the size of every axis."""
    rows, first = candidate.outputs, survey.first
    dims = first.sizes.keys()
    if rows is None or any(size is None or not dims >= set(size.names) for row in rows for size in row):
        return None  # what depends on values has a size in each run that may look like a rule
    spread = spread_sizes(ranges, survey.traced, (), survey.boundaries.holds, survey.options.seed)
    chosen = spread[:: 1 + len(spread) // budgets.MOST_SIZES_FORETOLD]
    observations = [Observation(sizes, shapes) for sizes in chosen if (shapes := _shapes_at(rows, sizes)) is not None]
    seen = [tuple(output.shape) for output in first.outputs]
    if not observations or [len(row) for row in rows] != [len(shape) for shape in seen]:
        return None
    labels, _ = fitted_labels(survey, candidate, observations, final_ranges(survey, ranges), [])
    return None if are_contradicted(labels, first.sizes, seen) else labels


def _shapes_at(rows: Sequence[Sequence[Expression | None]], sizes: Sizes) -> tuple[tuple[int, ...], ...] | None:
    """What a trace says of the outputs there; None where it says nothing that could be."""
    found = [[-1 if size is None else size.value_or_none(sizes) for size in row] for row in rows]
    shapes = tuple(tuple(size for size in row if size is not None and size >= 0) for row in found)
    return shapes if all(len(shape) == len(row) for shape, row in zip(shapes, rows, strict=True)) else None


def are_contradicted(labels: Labels, sizes: Sizes, shapes: Sequence[Sequence[int]]) -> bool:
    """Whether outputs of these shapes have other sizes than the labels say; names of the user's own say none."""
    if len(labels) != len(shapes):
        return False  # a file always has as many outputs, whatever they are called
    rows = zip(labels, shapes, strict=True)
    return any(
        len(row) != len(shape) or any(_says_otherwise(*one, sizes) for one in zip(row, shape, strict=True))
        for row, shape in rows
        if row is not None
    )


def _says_otherwise(label: int | str, size: int, sizes: Sizes) -> bool:
    try:
        return size != (label if isinstance(label, int) else parse_expression(label).value(sizes))
    except (DeclarationError, KeyError, ZeroDivisionError):
        return False
