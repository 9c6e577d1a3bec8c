"""free(): a static file becomes a model with named dims, or a sentence says which node pins them.

    prepare (a clone) -> observe (one run) -> walk (rules, sizes) -> finish (named outputs)

A place that can be read in several ways takes the likeliest; a reading that leads to a contradiction is left for the
next one. Whether the model computes the right thing is for the caller to check, who may ask for other readings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from anyshape.errors import AnyshapeError, DeclarationError, first_line
from anyshape.freeing.observation import AxisSizes, forget_shapes, guesses, observe, prepared
from anyshape.freeing.records import Chooser, Dims, DisagreeingError, Freed, PinnedError, State, StatePinnedError
from anyshape.freeing.rules import rule_for
from anyshape.freeing.suspects import Readings, numbers_in, numbers_left
from anyshape.freeing.walk import Walk
from anyshape.freeing.wanted import Wanted
from anyshape.sizes import budgets
from anyshape.sizes.expressions import Size, dim_symbol, spelled
from anyshape.sizes.fit import plus, whole_line
from anyshape.sizes.notation import Sizes


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
    search = _Search(base, wanted, *_observed_shapes(base, wanted, folder))
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
                plan = chooser.next_plan(len(choices))
        raise next((trouble for trouble in troubles if isinstance(trouble, DisagreeingError)), troubles[0])

    def _result_of_walk(self, chooser: Chooser, *, strict: bool) -> Freed:
        model = self.model.clone()
        dims = _free_inputs(model.graph, self.wanted, self.shapes)
        walk = Walk(model, dims, self.observed, chooser, self.states, rule_for, strict=strict)
        walk.graph(model.graph)
        outputs = tuple(_name_output_axes(walk, value) for value in model.graph.outputs)
        suspects = list(numbers_in(walk, Readings(dims.sizes)))
        _remove_leftovers(model)
        taken = (tuple(chooser.counts), tuple(chooser.taken))
        rewrites, bounds = tuple(walk.rewrites), walk.bounds()
        return Freed(model, dict(dims.sizes), rewrites, bounds, outputs, *taken, numbers_left(model, suspects))


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
    dims = list(value.shape) if value.shape is not None else [None] * len(row or ())
    names = _axis_names(value, row, len(dims))
    return [dim if isinstance(dim, int) else str(name) for dim, name in zip(dims, names, strict=True)]


# ---- the names of inputs


def _free_inputs(graph: ir.Graph, wanted: Wanted, shapes: Mapping[str, tuple[int, ...]]) -> Dims:
    """Name the axes of the inputs, in place; `shapes` are the inputs' shapes in the file."""
    sizes: dict[str, int] = {}
    sources: dict[Size, tuple[ir.Value, int]] = {}
    for value in graph.inputs:
        shape = shapes.get(str(value.name))
        if shape is None:
            continue
        row = _axis_names(value, wanted.get(str(value.name)), len(shape))
        for axis, (name, size) in enumerate(zip(row, shape, strict=True)):
            if name is not None:
                if sizes.setdefault(name, size) != size:
                    raise DeclarationError(f"`{name}` is {sizes[name]} in one place of the file and {size} in another")
                sources.setdefault(dim_symbol(name), (value, axis))
        value.shape = ir.Shape([name or size for name, size in zip(row, shape, strict=True)])
    return Dims(sizes, sources)


def _axis_names(value: ir.Value, row: tuple[str | None, ...] | None, rank: int) -> list[str | None]:
    """The dims of an input: the wanted ones, then those that the file has by itself."""
    own = [_open_name(value, axis) for axis in range(rank)]
    wanted = row or (None,) * rank
    if len(wanted) != rank:
        raise DeclarationError(f"`{value.name}` has {rank} axes, {len(wanted)} are declared")
    names = [wish or name for wish, name in zip(wanted, own, strict=True)]
    for name in names:
        if name is not None and not name.isidentifier():
            raise DeclarationError(f"`{name}` cannot name a dim: letters, digits and _ only")
    return names


def _open_name(value: ir.Value, axis: int) -> str | None:
    """How the file calls an axis that it leaves open; None for a number."""
    dim = value.shape[axis] if value.shape is not None and axis < len(value.shape) else None
    if isinstance(dim, int):
        return None
    name = dim.value if dim is not None else None
    fallback = "".join(c if c.isalnum() else "_" for c in value.name or "input")
    return name if name and name.isidentifier() else f"{fallback}_axis{axis}"


# ---- a walk that stands becomes a model


def _name_output_axes(walk: Walk, value: ir.Value) -> tuple[str | None, ...]:
    """The axes of an output, as text; the output carries them, too."""
    shape = walk.shape(value)
    if shape is None:
        return ()
    texts = tuple(None if walk.is_unknown(size) else spelled(size) for size in shape)
    return _with_label(value, texts)


def _with_label(value: ir.Value, texts: tuple[str | None, ...]) -> tuple[str | None, ...]:
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
        for value in list(graph.initializers.values()):
            if not (value.uses() or value.is_graph_output() or value.is_graph_input()):
                graph.initializers.pop(str(value.name))


# ---- the simplest way: inputs get names, and outputs the sizes that runs show
#
# Nothing is rewritten, so nothing need be known about the operators; it serves where no constant pins a size. Whether
# that is so, the checks decide.

ShapesAt = Callable[[Sizes], Sequence[tuple[int, ...]]]
"""The shapes of the outputs at these sizes, as a run shows them."""


def named(model: ir.Model, wanted: Wanted, sizes: Sizes) -> Freed:
    """A copy of the model with names on its inputs; what its other values and its outputs are is left open."""
    made = model.clone()
    forget_shapes(made)
    for value in made.graph.inputs:
        if (row := wanted.get(str(value.name))) is not None and value.shape is not None:
            dims = zip(row, value.shape, strict=True)
            value.shape = ir.Shape([size if dim is None else ir.SymbolicDim(dim) for dim, size in dims])
    unwalked = Walk(made, Dims(sizes, {}), {}, Chooser(()), {}, rule_for, strict=False)
    suspects = numbers_left(made, list(numbers_in(unwalked, Readings(sizes))))
    return Freed(made, sizes, (), (), tuple(() for _ in made.graph.outputs), (), (), suspects)


def with_outputs(freed: Freed, shapes_at: ShapesAt) -> Freed:
    """The outputs labelled by what runs at other sizes show, where that is a multiple of one dim and a number."""
    sizes, own = freed.sizes, shapes_at(freed.sizes)
    grown = {dim: [shapes_at({**sizes, dim: size}) for size in _other_sizes(sizes[dim])] for dim in sizes}
    outputs = []
    for index, (value, shape) in enumerate(zip(freed.model.graph.outputs, own, strict=True)):
        seen = {dim: [shapes[index] for shapes in rows] for dim, rows in grown.items()}
        axes = tuple(_axis_label(axis, size, sizes, seen) for axis, size in enumerate(shape))
        outputs.append(_with_label(value, axes))
    return replace(freed, outputs=tuple(outputs))


def _other_sizes(size: int) -> tuple[int, int]:
    """Two, since with the file's own size a line goes through any one of them."""
    return 2 * size + 1, 3 * size + 2


def _axis_label(axis: int, size: int, sizes: Sizes, seen: Mapping[str, Sequence[tuple[int, ...]]]) -> str | None:
    """The size of an axis as a number, as `2*batch + 1`, or None where it is neither."""
    moving = [dim for dim, shapes in seen.items() if any(len(s) <= axis or s[axis] != size for s in shapes)]
    if not moving:
        return str(size)
    dim = moving[0]
    if len(moving) > 1 or any(len(shape) <= axis for shape in seen[dim]):
        return None
    grown = tuple(shape[axis] for shape in seen[dim])
    line = whole_line((size, *grown), (sizes[dim], *_other_sizes(sizes[dim])))
    return None if line is None else plus(dim if line[0] == 1 else f"{line[0]}*{dim}", line[1])
