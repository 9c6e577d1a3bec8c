"""LSTM, GRU and RNN: initial states follow the batch, and lengths written down as numbers go."""

from __future__ import annotations

import onnx_ir as ir

from anyshape.freeing.growth import grow_input
from anyshape.freeing.walk import Rule, Shapes, Walk
from anyshape.onnxfile.graph import attribute
from anyshape.sizes.expressions import is_number

_LENGTHS, _STATES = 4, (5, 6)


def recurrent(walk: Walk, node: ir.Node) -> Shapes:
    shape = walk.shape(node.inputs[0])
    if shape is None or len(shape) != 3:
        return None
    batch_first = bool(attribute(node, "layout", 0))
    steps, batch = (shape[1], shape[0]) if batch_first else (shape[0], shape[1])
    _drop_lengths(walk, node, walk.at_file(steps))
    for place in (_LENGTHS, *_STATES):
        state = walk.shape(node.inputs[place]) if place < len(node.inputs) else None
        axis = 0 if batch_first or place == _LENGTHS else 1
        if state and walk.is_free(batch) and is_number(state[axis]):
            grow_input(walk, node, place, {axis: batch}, broadcasts=False)
    return None


def _drop_lengths(walk: Walk, node: ir.Node, steps: int | None) -> None:
    """Lengths that say the whole sequence, for every sample, say nothing."""
    lengths = walk.constant(node.inputs[_LENGTHS]) if len(node.inputs) > _LENGTHS else None
    if lengths is not None and steps is not None and (lengths == steps).all():
        walk.replace(node, _LENGTHS, None, f"the constant lengths {steps} were dropped")


RULES: dict[str, Rule] = dict.fromkeys(("LSTM", "GRU", "RNN"), recurrent)
