"""If, Loop and Scan: their graphs are walked with the sizes that come in from outside."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx_ir as ir

from anyshape.freeing.growth import grow_input
from anyshape.freeing.records import StatePinnedError
from anyshape.freeing.walk import Rule, Shapes, Walk
from anyshape.onnxfile.graph import attribute, graphs_in, name_of
from anyshape.sizes.expressions import Shape, Size, is_number, spelled, to_ir


def branches(walk: Walk, node: ir.Node) -> Shapes:
    """Where both branches give one shape, it is the result's."""
    for body in graphs_in(node):
        walk.graph(body)
    sides = [[walk.shape(value) for value in body.outputs] for body in graphs_in(node)]
    return [_common_shape(walk, *pair) for pair in zip(*sides, strict=False)] if len(sides) == 2 else None


def _common_shape(walk: Walk, one: Shape | None, other: Shape | None) -> Shape | None:
    if one is None or other is None or len(one) != len(other):
        return None
    return tuple(a if a == b else walk.inference.unknown() for a, b in zip(one, other, strict=True))


def loop(walk: Walk, node: ir.Node) -> Shapes:
    body = graphs_in(node)[0]
    times = _rounds(walk, node)
    states = _shapes_of_states(walk, node, body.inputs[2:], range(2, len(node.inputs)))
    _set_input_shapes(body, [(), (), *states])
    walk.graph(body)
    results = [walk.shape(value) for value in body.outputs[1:]]
    kept = _state_shapes_after(walk, node, states, results, 2)
    stacked = [None if row is None else (times, *row) for row in results[len(states) :]]
    return [*kept, *stacked]


def _rounds(walk: Walk, node: ir.Node) -> Size:
    """How often a loop runs: a size, or a number that was a dim in the file."""
    numbers = walk.numbers(node.inputs[0])
    if numbers is None or len(numbers) != 1 or (walk.constant(node.inputs[1]) is None and node.inputs[1] is not None):
        return walk.inference.unknown()
    times = numbers[0]
    dim = walk.dims.namesake(int(times)) if is_number(times) else None
    if dim is not None and walk.chooser.choose((True, False)):
        scalar = walk.builder.reshaped(walk.builder.size(dim), [], ())
        walk.replace(node, 0, scalar, f"the number of rounds, {times}, became `{spelled(dim)}`")
        times = dim
    always = _never_ends_early(walk, graphs_in(node)[0])
    return times if always else walk.inference.unknown()


def _never_ends_early(walk: Walk, body: ir.Graph) -> bool:
    """Whether the loop is never left early."""
    going_on = body.outputs[0]
    producer = going_on.producer()
    while producer is not None and producer.op_type == "Identity" and producer.inputs[0] is not None:
        going_on = producer.inputs[0]
        producer = going_on.producer()
    constant = walk.constant(going_on)
    return going_on is body.inputs[1] or (constant is not None and bool(np.all(constant)))


def scan(walk: Walk, node: ir.Node) -> Shapes:
    body = graphs_in(node)[0]
    count = int(attribute(node, "num_scan_inputs", 0))
    split = len(node.inputs) - count
    states = _shapes_of_states(walk, node, body.inputs, range(split))
    scanned = [walk.shape(value) for value in node.inputs[split:]]
    axes = list(attribute(node, "scan_input_axes") or [0] * count)
    rows = [None if s is None else _without_axis(s, axis) for s, axis in zip(scanned, axes, strict=False)]
    _set_input_shapes(body, [*states, *rows])
    walk.graph(body)
    results = [walk.shape(value) for value in body.outputs]
    first = scanned[0] if scanned else None
    length = first[axes[0]] if first is not None else walk.inference.unknown()
    places = list(attribute(node, "scan_output_axes") or [0] * len(results))
    pairs = zip(results[split:], places, strict=False)
    stacked = [None if row is None else _with_axis(row, place, length) for row, place in pairs]
    return [*_state_shapes_after(walk, node, states, results, 0), *stacked]


def _without_axis(shape: Shape, axis: int) -> Shape:
    axis %= len(shape)
    return shape[:axis] + shape[axis + 1 :]


def _with_axis(shape: Shape, axis: int, size: Size) -> Shape:
    axis = axis + len(shape) + 1 if axis < 0 else axis
    return (*shape[:axis], size, *shape[axis:])


def _set_input_shapes(body: ir.Graph, shapes: Sequence[Shape | None]) -> None:
    for value, shape in zip(body.inputs, shapes, strict=False):
        value.shape = None if shape is None else to_ir(shape)


def _shapes_of_states(
    walk: Walk, node: ir.Node, inner: Sequence[ir.Value], places: Sequence[int]
) -> list[Shape | None]:
    """The shapes of the initial states, grown where an earlier walk has found them too small."""
    for value, place in zip(inner, places, strict=False):
        state = (name_of(node), place)
        walk.states[value] = state
        if state in walk.larger_states:
            grow_input(walk, node, place, walk.larger_states[state], broadcasts=False)
    return [walk.shape(node.inputs[place]) for place in places]


def _state_shapes_after(
    walk: Walk, node: ir.Node, before: Sequence[Shape | None], after: Sequence[Shape | None], first: int
) -> list[Shape | None]:
    """States: a round must give back the sizes that it got, wherever a dim is among them."""
    kept: list[Shape | None] = []
    for place, (old, new) in enumerate(zip(before, after, strict=False), first):
        if old is None or new is None or len(old) != len(new):
            kept.append(None)
            continue
        for axis, (a, b) in enumerate(zip(old, new, strict=True)):
            if a != b and (walk.is_free(a) or walk.is_free(b)):
                why = f"a state of `{spelled(a)}` comes back as `{spelled(b)}`"
                trouble = walk.pinned(node, why, a if walk.is_free(a) else b)
                grows = is_number(a) and walk.at_file(b) == int(a)
                raise StatePinnedError(trouble, (name_of(node), place), {axis: b}) if grows else trouble
        kept.append(tuple(a if a == b else walk.inference.unknown() for a, b in zip(old, new, strict=True)))
    return kept


RULES: dict[str, Rule] = {"If": branches, "Loop": loop, "Scan": scan}
