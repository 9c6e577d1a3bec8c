"""What a traced program does, as far as two of them can be compared by it."""

from __future__ import annotations

from collections import Counter

import torch
from torch import fx


def operators_of(program: torch.export.ExportedProgram) -> Counter[str]:
    """The operators that compute something, and how often each is called."""
    return Counter(
        str(node.target) for node in program.graph.nodes if node.op == "call_function" and not _is_view(node)
    )


def decides(program: torch.export.ExportedProgram) -> bool:
    """Whether a program reads a value as a number, or holds programs inside of it."""
    return any("unbacked_bindings" in node.meta or node.op == "get_attr" for node in program.graph.nodes)


def _is_view(node: fx.Node) -> bool:
    """Whether a node gives its input back, cut or laid out in another way."""
    schema = getattr(node.target, "_schema", None)
    return schema is not None and not schema.is_mutable and any(one.alias_info is not None for one in schema.returns)
