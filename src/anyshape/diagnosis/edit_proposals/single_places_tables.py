"""A table that the module holds, cut to as much as is needed."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

import torch

from anyshape.diagnosis.causes import Cause
from anyshape.diagnosis.edit_proposals.change import Knowledge, Proposal
from anyshape.diagnosis.edit_proposals.written_numbers import names_in
from anyshape.diagnosis.size_names import Scope
from anyshape.source.sites_reading import Reading


def of_slices(cause: Cause, reading: Reading, known: Knowledge) -> Iterator[Proposal]:
    """As much of the table as there are places; a table of samples is another matter."""
    if {name for want in cause.wants for name in want.expression.names} <= known.batches:
        return
    for node in ast.walk(reading.node):
        if not isinstance(node, (ast.Attribute, ast.Name)):
            continue
        table = reading.value_of(node)
        if isinstance(table, torch.Tensor) and known.name_of(table) == cause.name:
            scope = Scope(reading.site, known.in_dims, names_in(reading.node))
            for slices in _slices(cause, table, scope):
                change = reading.source.change(node, f"{reading.text_of(node)}[{slices}]")
                yield Proposal(
                    reading, (change,), f"take as much of `{reading.text_of(node)}` as is needed", safe=False
                )
            return


def _slices(cause: Cause, table: torch.Tensor, scope: Scope) -> Iterator[str]:
    ends = {table.dim() + want.axis: scope.texts(want.expression) for want in cause.wants}
    if not ends or not all(ends.values()):
        return
    for texts in itertools.islice(itertools.product(*ends.values()), 4):
        cut = dict(zip(ends, texts, strict=True))
        yield ", ".join(f":{cut[axis]}" if axis in cut else ":" for axis in range(max(cut) + 1))
