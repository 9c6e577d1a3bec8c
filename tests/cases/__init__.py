"""Small models whose sizes vary, one per file: what makes each difficult is its first sentence."""

from __future__ import annotations

import importlib
import itertools
import math
import random
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

_MOST_COMBINATIONS = 24


def names() -> list[str]:
    return sorted(file.stem for file in Path(__file__).parent.glob("*.py") if file.stem != "__init__")


def load(name: str) -> ModuleType:
    return importlib.import_module(f"{__name__}.{name}")


def example(case: ModuleType) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The call at the sizes a user would give."""
    return call(case, {dim: size for dim, (size, _) in case.sizes.items()})


def call(case: ModuleType, sizes: Mapping[str, int]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """New arguments and keywords at these sizes; the same values every time, since a model may change its inputs."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        given = case.inputs(**sizes)
    return (tuple(given["args"]), dict(given["kwargs"])) if isinstance(given, dict) else (tuple(given), {})


def grid(case: ModuleType) -> list[dict[str, int]]:
    """Every combination of sizes, or 24 of them: the smallest, the largest, the example's, and others by lot."""
    choices = {dim: sorted({size, *others}) for dim, (size, others) in case.sizes.items()}
    corners = [
        tuple(options[0] for options in choices.values()),
        tuple(options[-1] for options in choices.values()),
        tuple(size for size, _ in case.sizes.values()),
    ]
    kept = set(itertools.product(*choices.values()))
    if math.prod(map(len, choices.values())) > _MOST_COMBINATIONS:
        lot = random.Random(0).sample(sorted(kept - set(corners)), _MOST_COMBINATIONS - len(set(corners)))
        kept = {*corners, *lot}
    return [dict(zip(choices, combination, strict=True)) for combination in sorted(kept)]
