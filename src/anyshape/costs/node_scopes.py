"""Where a node stands in the module that the file was made of: `encoder`, `layer.0`, `attention`.

Exporters write that into metadata, or into the names of nodes and weights; a node of which nothing is said stands where
both of its neighbours do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import onnx_ir as ir

from anyshape.onnxfile.metadata import SCOPE_KEY, SOURCE_KEY, TORCH_SCOPES_KEY, module_of_scopes
from anyshape.sizes import budgets
from anyshape.source.spans import span_of_recorded_stack

Scope = tuple[str, ...]
_TORCH_STACK = "pkg.torch.onnx.stack_trace"


def scopes_of(nodes: Sequence[ir.Node]) -> list[Scope]:
    """Of each node, in order."""
    told = [_told_scope(node) for node in nodes]
    if all(scope is None for scope in told):
        told = [_scope_of_weights(node) for node in nodes]
    before: list[Scope | None] = []
    for scope in told:
        before.append(scope if scope is not None else (before[-1] if before else None))
    after: list[Scope | None] = []
    for scope in reversed(told):
        after.append(scope if scope is not None else (after[-1] if after else None))
    rows = zip(told, before, reversed(after), strict=True)
    return [scope if scope is not None else _common_start(one, other) for scope, one, other in rows]


def _common_start(one: Scope | None, other: Scope | None) -> Scope:
    found = []
    for a, b in zip(one or (), other or (), strict=False):
        if a != b:
            break
        found.append(a)
    return tuple(found)


def _told_scope(node: ir.Node) -> Scope | None:
    if SCOPE_KEY in node.metadata_props:
        return module_parts(node.metadata_props[SCOPE_KEY])
    if TORCH_SCOPES_KEY in node.metadata_props:
        return module_parts(module_of_scopes(node.metadata_props[TORCH_SCOPES_KEY]))
    name = node.name or ""
    return _parts_of_name(name) if name.startswith("/") else None


def _parts_of_name(name: str) -> Scope:
    """`/encoder/layer.0/MatMul_1`: the last one is the node itself."""
    return tuple(part for part in name.split("/")[:-1] if part)[: budgets.DEEPEST_SCOPE]


def module_parts(path: str) -> Scope:
    """`encoder.layer.0.attention` as `encoder`, `layer.0`, `attention`: a number belongs to its list."""
    parts = re.findall(r"[^.]+(?:\.\d+)*(?=\.|$)", path)
    return tuple(parts)[: budgets.DEEPEST_SCOPE]


def _scope_of_weights(node: ir.Node) -> Scope | None:
    for value in node.inputs:
        name = value.name or "" if value is not None and value.const_value is not None else ""
        if re.fullmatch(r"[A-Za-z_]\w*(\.\w+)+", name):
            return module_parts(name.rpartition(".")[0])
    return None


def source_of(node: ir.Node) -> str | None:
    """The user's line behind a node: `model.py:31`."""
    if SOURCE_KEY in node.metadata_props:
        return node.metadata_props[SOURCE_KEY].partition(" in ")[0]
    span = span_of_recorded_stack(node.metadata_props.get(_TORCH_STACK, ""))
    return None if span is None else f"{span.path}:{span.line}"
