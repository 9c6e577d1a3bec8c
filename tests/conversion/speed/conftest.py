"""What programs torch has run again."""

from __future__ import annotations

from typing import Any

import pytest
import torch


@pytest.fixture
def taken_apart(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each program that torch has run again."""
    runs: list[int] = []
    original = torch.export.ExportedProgram.run_decompositions

    def run_decompositions(self: torch.export.ExportedProgram, *args: Any, **kwargs: Any) -> Any:
        runs.append(1)
        return original(self, *args, **kwargs)

    monkeypatch.setattr(torch.export.ExportedProgram, "run_decompositions", run_decompositions)
    return runs
