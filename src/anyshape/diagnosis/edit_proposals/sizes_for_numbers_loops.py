"""A loop that counts to a number: the `range(3)` that an index comes from."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from anyshape.diagnosis.causes import Cause
from anyshape.diagnosis.edit_proposals.change import Knowledge, Proposal
from anyshape.diagnosis.edit_proposals.sizes_for_numbers import of_wants
from anyshape.source.sites_reading import Reading


def of_loops(cause: Cause, reading: Reading, known: Knowledge) -> Iterator[Proposal]:
    """The `range(3)` that the index comes from."""
    counting = _counting(reading)
    if counting is not None:
        yield from of_wants(cause, Reading(reading.site, reading.source, counting), known)


def _counting(reading: Reading) -> ast.Call | None:
    used = {node.id for node in ast.walk(reading.node) if isinstance(node, ast.Name)}
    node: ast.AST | None = reading.node
    while node is not None and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
        loops = [node] if isinstance(node, ast.For) else getattr(node, "generators", [])
        for loop in loops:
            names = {one.id for one in ast.walk(loop.target) if isinstance(one, ast.Name)}
            if (
                names & used
                and isinstance(loop.iter, ast.Call)
                and isinstance(loop.iter.func, ast.Name)
                and loop.iter.func.id == "range"
            ):
                return loop.iter
        node = reading.source.parent_of(node)
    return None
