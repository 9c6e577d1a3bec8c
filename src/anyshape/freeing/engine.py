"""free(): a static file becomes a model with named dims, or a sentence says which node pins them.

    prepare (a clone) -> observe (one run) -> walk (rules, sizes) -> finish (named outputs)

A place that can be read in several ways takes the likeliest; a reading that leads to a contradiction is left for the
next one. Whether the model computes the right thing is for the caller to check, who may ask for other readings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from anyshape.errors import AnyshapeError, DeclarationError, first_line
from anyshape.freeing.observation import AxisSizes, guesses, observe
from anyshape.freeing.preparation import prepared
from anyshape.freeing.records import (
    Chooser,
    DisagreeingError,
    Freed,
    PinnedError,
    State,
    StatePinnedError,
    Wanted,
    axis_names,
    free_inputs,
    next_plan,
)
from anyshape.freeing.rules import rule_for
from anyshape.freeing.walk import Walk
from anyshape.sizes import budgets
from anyshape.sizes.expressions import Size, spelled


def free(model: ir.Model, wanted: Wanted, choices: Sequence[int] = (), *, folder: Path | None = None) -> Freed:
    """The model with these axes free, or PinnedError.

    `choices[k]` picks the reading of the k-th ambiguous place (0, the likeliest, without). `folder` is where weights
    beside the file lie.
    """
    try:
        return _first_reading(model, wanted, tuple(choices), folder)
    except AnyshapeError:
        raise
    except Exception as error:  # a file is data: whatever is wrong with it gets one sentence
        raise AnyshapeError(f"the file cannot be freed: {first_line(error) or type(error).__name__}") from error


def _first_reading(model: ir.Model, wanted: Wanted, choices: tuple[int, ...], folder: Path | None) -> Freed:
    base = prepared(model)
    _refuse_unknown_inputs(base.graph, wanted)
    shapes, observed = _observed_shapes(base, wanted, folder)
    search = _Search(base, wanted, shapes, observed)
    try:
        return search.first_standing(choices, strict=True)
    except DisagreeingError:
        return search.first_standing(choices, strict=False)  # a limit of the model, as `height` even


@dataclass
class _Search:
    """One file and one wish, walked until a reading stands."""

    model: ir.Model
    wanted: Wanted
    shapes: AxisSizes
    observed: AxisSizes
    states: dict[State, dict[int, Size]] = field(default_factory=dict)

    def first_standing(self, choices: tuple[int, ...], *, strict: bool) -> Freed:
        """The first reading without a contradiction, or the first contradiction, and rather one that may be a limit."""
        plan: tuple[int, ...] | None = choices
        troubles: list[PinnedError] = []
        while plan is not None and len(troubles) < (budgets.MOST_STRICT_WALKS if strict else budgets.MOST_WALKS):
            chooser = Chooser(plan)
            try:
                return self._result_of_walk(chooser, strict=strict)
            except StatePinnedError as error:
                troubles.append(error)
                if error.wants.items() <= self.states.setdefault(error.state, {}).items():
                    break
                self.states[error.state] |= error.wants
            except PinnedError as error:
                troubles.append(error)
                plan = next_plan(chooser, len(choices))
        raise next((trouble for trouble in troubles if isinstance(trouble, DisagreeingError)), troubles[0])

    def _result_of_walk(self, chooser: Chooser, *, strict: bool) -> Freed:
        model = self.model.clone()
        dims = free_inputs(model.graph, self.wanted, self.shapes)
        walk = Walk(model, dims, self.observed, chooser, self.states, rule_for, strict=strict)
        walk.graph(model.graph)
        outputs = tuple(_name_output_axes(walk, value) for value in model.graph.outputs)
        _remove_leftovers(model)
        taken = (tuple(chooser.counts), tuple(chooser.taken))
        return Freed(model, dict(dims.sizes), tuple(walk.rewrites), walk.bounds(), outputs, *taken)


def _refuse_unknown_inputs(graph: ir.Graph, wanted: Wanted) -> None:
    known = [value.name for value in graph.inputs if value.name not in graph.initializers]
    for name in wanted:
        if name not in known:
            raise DeclarationError(
                f"the file has no input `{name}`, only {', '.join(f'`{k}`' for k in known) or 'none'}"
            )


def _observed_shapes(model: ir.Model, wanted: Wanted, folder: Path | None) -> tuple[AxisSizes, AxisSizes]:
    """The shapes of the inputs in the file, and of everything else; what the file leaves open is tried out."""
    inputs = [value for value in model.graph.inputs if value.name not in model.graph.initializers]
    rows = {str(value.name): _axes_of_input(value, wanted) for value in inputs}
    open_axes = list(dict.fromkeys(axis for row in rows.values() for axis in row if isinstance(axis, str)))
    trouble: AnyshapeError | None = None
    for sizes in guesses(open_axes):
        shapes = {name: tuple(sizes[a] if isinstance(a, str) else a for a in row) for name, row in rows.items()}
        try:
            return shapes, observe(model, shapes, folder)
        except AnyshapeError as error:
            trouble = trouble or error
            if not open_axes:
                break
    assert trouble is not None
    raise trouble


def _axes_of_input(value: ir.Value, wanted: Wanted) -> list[int | str]:
    row = wanted.get(str(value.name))
    if value.shape is None and row is None:
        raise AnyshapeError(f"the file does not say how many axes input `{value.name}` has")
    rank = len(value.shape) if value.shape is not None else len(row or ())
    names = axis_names(value, row, rank)
    dims = list(value.shape) if value.shape is not None else [None] * rank
    return [dim if isinstance(dim, int) else str(name) for dim, name in zip(dims, names, strict=True)]


def _name_output_axes(walk: Walk, value: ir.Value) -> tuple[str | None, ...]:
    """The axes of an output, as text; the output carries them, too."""
    shape = walk.shape(value)
    if shape is None:
        return ()
    texts = tuple(None if walk.is_unknown(size) else spelled(size) for size in shape)
    value.shape = ir.Shape([int(t) if t is not None and t.isdecimal() else ir.SymbolicDim(t) for t in texts])
    return texts


def _remove_leftovers(model: ir.Model) -> None:
    """Nothing that only the walk needed stays behind."""
    RemoveUnusedNodesPass()(model)
    outputs = {value for graph in model.graphs() for value in graph.outputs}
    for graph in model.graphs():
        for node in graph:
            for value in node.outputs:
                value.const_value = None
                if value not in outputs:
                    value.shape = value.type = None
        for value in graph.inputs if graph is not model.graph else ():
            value.shape = value.shape if value.shape is not None and not len(value.shape) else None
        for name in [name for name, value in graph.initializers.items() if _is_idle(value)]:
            graph.initializers.pop(name)


def _is_idle(value: ir.Value) -> bool:
    return not value.uses() and not value.is_graph_output() and not value.is_graph_input()
