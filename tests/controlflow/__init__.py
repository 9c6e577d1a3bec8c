"""Small models that branch and loop in Python, one per file, in the form of `tests/cases`.

Where values decide, `sides` names makers of inputs for each side; the first is the example's.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from tests.cases import grid


def names() -> list[str]:
    return sorted(file.stem for file in Path(__file__).parent.glob("*.py") if file.stem != "__init__")


def load(name: str) -> ModuleType:
    return importlib.import_module(f"{__name__}.{name}")


def calls(case: ModuleType) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Arguments at every size and for every side, each with a line that says which."""
    for sizes in grid(case):
        for make in getattr(case, "sides", (case.inputs,)):
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(1)
                yield f"{make.__name__} at {sizes}", tuple(make(**sizes))
