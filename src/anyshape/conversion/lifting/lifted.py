"""The strategy: a candidate out of exports by torch.export, or by TorchScript where those cannot be lifted."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import onnx_ir as ir
import sympy
import torch
from onnx_ir.passes.common import InlinePass, LiftConstantsToInitializersPass, RemoveUnusedNodesPass
from onnxscript import optimizer

from anyshape.conversion.candidates import Candidate, Job
from anyshape.conversion.lifting.alignment import DifferentError, GraphAlignment, Moved, align, is_same_tensor
from anyshape.conversion.lifting.constants import Maker, ShortTableError, UnexplainedError, constant
from anyshape.conversion.operators.table import REPAIRS
from anyshape.conversion.torch_export import by_export, cause_of, torchscript_model
from anyshape.freeing.builder import Builder
from anyshape.results.attempt import Attempt
from anyshape.sizes import budgets
from anyshape.sizes.expressions import Size, dim_symbol
from anyshape.sizes.fit import Points, whole_number
from anyshape.sizes.notation import Sizes
from anyshape.torchkit import capture

_TORCH_EXPORT = "torch.export"
_REFUSALS = (DifferentError, UnexplainedError)


class UnobservedError(Exception):
    """There are no observations: the module cannot be exported at all, or at too few sizes."""


@dataclass(frozen=True)
class _Way:
    """A static exporter."""

    name: str
    opset: int
    export: Callable[[Job], ir.Model]
    """A model of the job; of torch.export a static one, while TorchScript keeps what it knows of sizes."""


def lifted(job: Job, name: str) -> tuple[Candidate | None, Attempt]:
    """An attempt under this name; skipped where the module has no static export either: that was told before."""
    start = time.monotonic()
    reasons = []
    for way in _exporters_for(job):
        try:
            candidate = _candidate_by(way, job)
        except UnobservedError:
            continue
        except _REFUSALS as refusal:
            reasons.append(f"{way.name}: {refusal}")
        except Exception as error:  # noqa: BLE001  an attempt: the next way may do better
            reasons.append(f"{way.name}: {cause_of(error)}")
        else:
            return candidate, Attempt(name, "converted", "", time.monotonic() - start)
    outcome, seconds = ("failed" if reasons else "skipped"), time.monotonic() - start
    return None, Attempt(name, outcome, "; ".join(reasons) or "there are no static exports", seconds)


def _exporters_for(job: Job) -> list[_Way]:
    if not free_axes(job) or any(not isinstance(value, torch.Tensor) for _, value in job.leaves):
        return []
    older = min(job.opset, capture.newest_torchscript_opset())
    return [
        _Way(_TORCH_EXPORT, job.opset, _by_torch_export),
        _Way("TorchScript", older, lambda one: torchscript_model(one, older)),
    ]


def _by_torch_export(job: Job) -> ir.Model:
    repairs = tuple(repair for repair in REPAIRS if repair.always)
    static = replace(job.spec, axes={}, scalars={})
    plain = replace(job, spec=static, rewrites=False, extra={**job.extra, "optimize": False})
    candidate, attempt, _ = by_export(plain, _TORCH_EXPORT, repairs)
    if candidate is None:
        raise UnobservedError(attempt.reason)
    return candidate.model


def _candidate_by(way: _Way, job: Job) -> Candidate:
    observations = _static_exports(way, job)
    try:
        model, lifted_count = lift(job, observations)
    except ShortTableError:
        largest = largest_call(job)
        if largest is None:
            raise
        observations.append(observe(job, *largest, way.export))
        share_weights(observations)
        model, lifted_count = lift(job, observations)
    places = "; ".join(", ".join(f"{dim} {n}" for dim, n in one.sizes.items()) for one in observations)
    count = "1 constant" if lifted_count == 1 else f"{lifted_count} constants"
    sentence = f"{count} computed from the sizes, found by static exports ({way.name}) at {places}"
    return Candidate(model, way.opset, records_guards=False, repairs=(sentence,))


def _static_exports(way: _Way, job: Job) -> list[StaticExport]:
    found: list[StaticExport] = []
    for sizes, values in calls(job):
        try:
            found.append(observe(job, sizes, values, way.export))
        except Exception as error:
            raise UnobservedError(str(error)) from error
        share_weights(found)
        align([found[0].model, found[-1].model])  # refused at once, not after all exports
        if len(found) == budgets.STATIC_EXPORTS:
            return found
    if len(found) < budgets.FEWEST_STATIC_EXPORTS:
        raise UnobservedError("the module takes too few sizes")
    return found


# ---- static exports at a few small sizes; they tell most where every dim has another size each time

_SMALLEST = 3
"""A size of 1 or 2 is everywhere, and graphs are simpler there."""


@dataclass(frozen=True)
class StaticExport:
    """One static export; `at` are the sizes of the free axes."""

    sizes: Sizes
    at: Mapping[Size, int]
    model: ir.Model


def free_axes(job: Job) -> dict[Size, tuple[int, int]]:
    """A symbol for every size that an input has -> which input and axis show it; an expression counts as one size."""
    found: dict[Size, tuple[int, int]] = {}
    taken = {str(e): e for row in job.spec.axes.values() for e in row if e is not None}
    names = {text: text if e.is_name else f"size_{k}" for k, (text, e) in enumerate(taken.items())}
    for index, leaf in enumerate(job.names):
        for axis, expression in enumerate(job.spec.axes.get(leaf, ())):
            if expression is not None:
                found.setdefault(dim_symbol(names[str(expression)]), (index, axis))
    return found


def calls(job: Job) -> Iterator[tuple[Sizes, tuple[Any, ...]]]:
    """Sizes that the module takes, the most telling first, with inputs of these sizes."""
    for sizes in itertools.islice(_telling_sizes(job), budgets.MOST_STATIC_EXPORTS_TRIED):
        if (values := _inputs_at(job, sizes)) is not None:
            yield sizes, values


def largest_call(job: Job) -> tuple[Sizes, tuple[Any, ...]] | None:
    """The largest size of every dim that has one; None where no dim has, or where that is too large to run."""
    tops = _largest_sizes(job)
    sizes = {**job.spread()[0], **tops}
    values = _inputs_at(job, sizes) if tops else None
    return None if values is None else (sizes, values)


def _largest_sizes(job: Job) -> dict[str, int]:
    return {dim: declared.nearest(2**31) for dim, declared in job.spec.ranges.items() if not declared.is_open}


def _inputs_at(job: Job, sizes: Sizes) -> tuple[Any, ...] | None:
    shapes = [job.spec.shape(name, sizes, tuple(value.shape)) for name, value in job.leaves if name in job.spec.axes]
    return job.values_at(sizes) if sum(map(math.prod, shapes)) <= budgets.MOST_ELEMENTS_OF_A_STATIC_EXPORT else None


def _telling_sizes(job: Job) -> Iterator[Sizes]:
    """Every dim different each time, and from every other dim; then whatever else the declaration admits."""
    spread = [sizes for sizes in job.spread() if min(sizes.values(), default=0) >= _SMALLEST]
    pools = {dim: sorted({sizes[dim] for sizes in spread}, key=_plainness) for dim in job.spec.ranges}
    yield from _sizes_apart(pools)
    yield from _different_first(sorted(spread, key=lambda sizes: sum(map(_plainness, sizes.values()))))


def _plainness(size: int) -> float:
    """Small primes first."""
    is_prime = all(size % k for k in range(2, math.isqrt(size) + 1))
    return size if is_prime else 40 + 2 * size


def _sizes_apart(pools: Mapping[str, Sequence[int]]) -> Iterator[Sizes]:
    """No size twice; each dim in an order of its own, since dims that grow side by side cannot be told apart."""
    columns = dict(zip(pools, _columns_of_sizes(list(pools.values())), strict=True))
    for start in (0, budgets.STATIC_EXPORTS):
        for row in range(budgets.STATIC_EXPORTS):
            places = [start + (row + 2 * turn) % budgets.STATIC_EXPORTS for turn in range(len(columns))]
            if all(place < len(column) for place, column in zip(places, columns.values(), strict=True)):
                yield {dim: column[place] for (dim, column), place in zip(columns.items(), places, strict=True)}


def _columns_of_sizes(pools: Sequence[Sequence[int]]) -> list[list[int]]:
    """Odd and even sizes in turn, as far as there are both: what is rounded shows only then."""
    used: set[int] = set()
    columns: list[list[int]] = [[] for _ in pools]
    for turn in range(2 * budgets.STATIC_EXPORTS):
        for pool, column in zip(pools, columns, strict=True):
            left = sorted((size for size in pool if size not in used), key=lambda size: (size + turn) % 2 == 0)
            column.extend(left[:1])
            used.update(left[:1])
    return columns


def _different_first(sorted_sizes: Sequence[Sizes]) -> Iterator[Sizes]:
    """Those first in which every dim has a size that it did not have before."""
    seen: dict[str, set[int]] = {}
    later = []
    for sizes in sorted_sizes:
        if any(size in seen.get(dim, ()) for dim, size in sizes.items()):
            later.append(sizes)
            continue
        for dim, size in sizes.items():
            seen.setdefault(dim, set()).add(size)
        yield sizes
    yield from later


def observe(job: Job, sizes: Sizes, values: tuple[Any, ...], export: Callable[[Job], ir.Model]) -> StaticExport:
    """One export at these sizes, with all its constants as initializers."""
    leaves = tuple((name, value) for name, value in zip(job.names, values, strict=True))
    model = export(replace(job, leaves=leaves))
    if model.functions:
        InlinePass()(model)
    LiftConstantsToInitializersPass(lift_all_constants=True, size_limit=0)(model)
    RemoveUnusedNodesPass()(model)
    at = {symbol: int(values[index].shape[axis]) for symbol, (index, axis) in free_axes(job).items()}
    return StaticExport(sizes, at, model)


# ---- the constants that moved, computed in the first of the graphs; the others are needed no longer


def lift(job: Job, observations: Sequence[StaticExport]) -> tuple[ir.Model, int]:
    """One model out of all, which is a new one, and how many constants became nodes in it.

    DifferentError or UnexplainedError where that cannot be.
    """
    model = observations[0].model.clone()
    alignment = align([model, *(one.model for one in observations[1:])])
    points = _points_with_inner_sizes(alignment, [one.at for one in observations])
    build = Builder(model, _size_sources(job, model))
    first = next(iter(model.graph), None)
    if first is None:
        raise UnexplainedError("the graph has no nodes")
    build.enter(first)
    maker = Maker(build, points, {dim_symbol(dim): size for dim, size in _largest_sizes(job).items()})
    known: dict[tuple[object, ...], ir.Value] = {}
    for moved in alignment.moved:
        key = tuple((str(a.dtype), a.shape, a.tobytes()) for a in moved.seen)
        if key not in known:
            known[key] = _explained_value(maker, moved)
        if moved.node is None:
            moved.graph.outputs[moved.place] = known[key]
        else:
            moved.node.replace_input_with(moved.place, known[key])
    _forget_shapes(model)
    # what torch does with every export, left out while constants were to be told apart; some files need it to load
    RemoveUnusedNodesPass()(model)
    optimizer.optimize(model)
    return model, len(known)


def _explained_value(maker: Maker, moved: Moved) -> ir.Value:
    try:
        return constant(maker, moved.seen)
    except UnexplainedError as error:
        of = f"input {moved.place} of {moved.node.op_type}" if moved.node is not None else f"output {moved.place}"
        raise type(error)(f"the constant that is {of} {error}") from None


def _points_with_inner_sizes(alignment: GraphAlignment, at: Sequence[Mapping[Size, int]]) -> Points:
    """With the sizes of inner values that follow one dim: products and further divisions of them occur, too.

    The largest come first, as the levels of a pyramid do: each is a simple part of the one before.
    """
    points = Points(tuple(at), {})
    for numbers in sorted(alignment.sizes, key=sum, reverse=True):
        size = whole_number(numbers, points) if numbers not in points.sizes.values() else None
        if size is not None and _is_simple(size) and len(points.derived) < budgets.MOST_DERIVED_CONSTANTS:
            points = Points(points.at, {**points.derived, size: numbers})
    return points


def _is_simple(size: Size) -> bool:
    """A rounded division, or a line: what layers make of a size."""
    return len(size.free_symbols) == 1 and (isinstance(size, sympy.floor) or not size.has(sympy.floor))


def _size_sources(job: Job, model: ir.Model) -> dict[Size, tuple[ir.Value, int]]:
    """Where each size is read; TorchScript leaves out inputs that it does not use, and its names tell which stayed."""
    inputs = dict(enumerate(model.graph.inputs))
    if len(inputs) != len(job.names):
        inputs = {int(str(value.name).removeprefix("input_")): value for value in model.graph.inputs}
    return {symbol: (inputs[index], axis) for symbol, (index, axis) in free_axes(job).items() if index in inputs}


def _forget_shapes(model: ir.Model) -> None:
    """They were true for one size only; that of a number, as a loop counts with, is true for all."""
    for graph in model.graphs():
        for value in (*graph.inputs, *(value for node in graph for value in node.outputs)):
            if value.shape is not None and len(value.shape):
                value.shape = None


def share_weights(observations: Sequence[StaticExport]) -> None:
    """The newest observation takes the tensors of the first where they are the same: weights are held once."""
    first, newest = observations[0].model.graph.initializers, observations[-1].model.graph.initializers
    for name, value in newest.items():
        known = first[name].const_value if name in first else None
        if known is not None and value.const_value is not None and is_same_tensor(known, value.const_value):
            value.const_value = known
