"""Attention in groups: heads of keys and values that serve several heads of queries are not copied for them.

ONNX's Attention takes fewer heads of keys and values than of queries. Models that repeat them by hand write an
Unsqueeze, an Expand and a Reshape for each.
"""

from __future__ import annotations

import onnx_ir as ir

from anyshape.conversion.graph.known_sizes import Sizes
from anyshape.onnxfile.graph import first_input, maker, nodes_of, whole_numbers

_KEY, _VALUE = 1, 2
_HEADS = 1


def drop(graph: ir.Graph, sizes: Sizes) -> None:
    """Give keys and values to Attention as they are before they are repeated."""
    for node in nodes_of(graph, "Attention"):
        key, value = (_before_repetition(node.inputs[place], sizes) for place in (_KEY, _VALUE))
        if key is None or value is None or (sizes.of(key) or ())[_HEADS] != (sizes.of(value) or ())[_HEADS]:
            continue
        node.replace_input_with(_KEY, key)
        node.replace_input_with(_VALUE, value)


def _before_repetition(value: ir.Value | None, sizes: Sizes) -> ir.Value | None:
    """What Reshape(Expand(Unsqueeze(x, 2))) repeats: [b, h, n, d] to [b, h, times, n, d] to [b, h * times, n, d]."""
    joined = maker(value, "Reshape")
    copied = maker(first_input(joined), "Expand") if joined is not None else None
    widened = maker(first_input(copied), "Unsqueeze") if copied is not None else None
    if copied is None or widened is None or whole_numbers(widened.inputs[1]) != (2,):
        return None
    few = first_input(widened)
    known, repeated, whole = sizes.all_of(few), sizes.all_of(copied.outputs[0]), sizes.all_of(value)
    if known is None or repeated is None or len(known) != 4:
        return None
    batch, heads, length, features = known
    times = repeated[2]
    if not isinstance(heads, int) or not isinstance(times, int):
        return None
    is_it = repeated == (batch, heads, times, length, features) and whole == (batch, heads * times, length, features)
    return few if is_it else None
