"""Attention as one operator: its mask follows the queries and the keys."""

from __future__ import annotations

import onnx_ir as ir

from anyshape.freeing.growth import grow_input
from anyshape.freeing.walk import Rule, Shapes, Walk
from anyshape.onnxfile.graph import attribute
from anyshape.sizes.expressions import Shape, Size, is_number, number

_MASK, _PAST = 3, 4


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
    wants = {axis: s for axis, s in sizes.items() if walk.is_free(s) and is_number(mask[axis]) and mask[axis] != 1}
    if wants:
        grow_input(walk, node, _MASK, wants, broadcasts=len(mask) > 2)


def like_first(walk: Walk, node: ir.Node) -> Shapes:
    """Operators that keep the shape of their first input."""
    return [walk.shape(node.inputs[0])]


RULES: dict[str, Rule] = {
    "Attention": attention,
    **dict.fromkeys(("RMSNormalization", "RotaryEmbedding", "Swish", "GroupNormalization"), like_first),
}
