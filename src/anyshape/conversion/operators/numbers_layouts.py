"""Where a tensor's channels lie in memory, told to the translations that must know.

ONNX has no layout, but one kernel of torch gives other values by it. The node says so in an argument of its own.
"""

from __future__ import annotations

import torch
from torch import fx

_BY_LAYOUT = ("_upsample_bilinear2d_aa", "_upsample_bicubic2d_aa")


def mark_layouts(module: fx.GraphModule) -> None:
    """Give `from_channels_last=True` to the operators whose values depend on it."""
    for part in module.modules():
        for node in part.graph.nodes if isinstance(part, fx.GraphModule) else ():
            if _depends_on_layout(node) and _is_channels_last(node.args[0]):
                node.kwargs = {**node.kwargs, "from_channels_last": True}


def _depends_on_layout(node: fx.Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    return node.op == "call_function" and schema is not None and schema.name.split("::")[-1] in _BY_LAYOUT


def _is_channels_last(argument: object) -> bool:
    value = argument.meta.get("val") if isinstance(argument, fx.Node) else None
    return isinstance(value, torch.Tensor) and (
        value.dim() == 4 and value.stride()[1] == 1 and value.is_contiguous(memory_format=torch.channels_last)
    )
