"""An assertion about a size, dropped."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from anyshape.diagnosis.causes import Cause
from anyshape.diagnosis.edit_proposals.change import Knowledge, Proposal
from anyshape.source.sites_reading import Reading


def of_asserts(cause: Cause, reading: Reading, known: Knowledge) -> Iterator[Proposal]:
    del cause, known
    statement = reading.source.statement_of(reading.node)
    if isinstance(statement, ast.Assert):
        yield Proposal(reading, (reading.source.change(statement, "pass"),), "drop the assertion", safe=False)
