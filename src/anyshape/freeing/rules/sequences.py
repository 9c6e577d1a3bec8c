"""Attention, LSTM, GRU and RNN: what stands beside a sequence follows it, and lengths written down as numbers go."""

from __future__ import annotations

import onnx_ir as ir

from anyshape.freeing.growth import grow_fixed
from anyshape.freeing.walk import Rule, Shapes, Walk
from anyshape.onnxfile.graph import attribute
from anyshape.sizes.expressions import Shape, Size, number

_MASK, _PAST = 3, 4
"""Inputs of Attention."""


def attention(walk: Walk, node: ir.Node) -> Shapes:
    query, key, value = (walk.shape(given) for given in node.inputs[:3])
    if query is None or key is None or value is None:
        return None
    past = walk.shape(node.inputs[_PAST]) if len(node.inputs) > _PAST else None
    length = key[-2] + past[-2] if past else key[-2]
    _grow_mask(walk, node, query, length)
    return [_shape_of_result(node, query, value)]


def _shape_of_result(node: ir.Node, query: Shape, value: Shape) -> Shape:
    if len(query) == 4:
        return (*query[:3], value[-1])
    heads, shared = int(attribute(node, "q_num_heads", 1)), int(attribute(node, "kv_num_heads", 1))
    return (*query[:2], value[-1] * number(heads) / number(shared))


def _grow_mask(walk: Walk, node: ir.Node, query: Shape, length: Size) -> None:
    mask = walk.shape(node.inputs[_MASK]) if len(node.inputs) > _MASK else None
    if mask is None:
        return
    sizes = {len(mask) - 1: length, len(mask) - 2: query[-2]}
    if len(mask) == 4:
        sizes[0] = query[0]
    wants = {axis: size for axis, size in sizes.items() if mask[axis] != 1}
    grow_fixed(walk, node, _MASK, wants, broadcasts=len(mask) > 2)


def like_first(walk: Walk, node: ir.Node) -> Shapes:
    """Operators that keep the shape of their first input."""
    return [walk.shape(node.inputs[0])]


_LENGTHS, _STATES = 4, (5, 6)
"""Inputs of LSTM, GRU and RNN."""


def recurrent(walk: Walk, node: ir.Node) -> Shapes:
    shape = walk.shape(node.inputs[0])
    if shape is None or len(shape) != 3:
        return None
    batch_first = bool(attribute(node, "layout", 0))
    steps, batch = (shape[1], shape[0]) if batch_first else (shape[0], shape[1])
    _drop_lengths(walk, node, walk.at_file(steps))
    for place in (_LENGTHS, *_STATES):
        axis = 0 if batch_first or place == _LENGTHS else 1
        grow_fixed(walk, node, place, {axis: batch}, broadcasts=False)
    return None


def _drop_lengths(walk: Walk, node: ir.Node, steps: int | None) -> None:
    """Lengths that say the whole sequence, for every sample, say nothing."""
    lengths = walk.constant(node.inputs[_LENGTHS]) if len(node.inputs) > _LENGTHS else None
    if lengths is not None and steps is not None and (lengths == steps).all():
        walk.replace(node, _LENGTHS, None, f"the constant lengths {steps} were dropped")


RULES: dict[str, Rule] = {
    "Attention": attention,
    **dict.fromkeys(("RMSNormalization", "RotaryEmbedding", "Swish", "GroupNormalization"), like_first),
    **dict.fromkeys(("LSTM", "GRU", "RNN"), recurrent),
}
