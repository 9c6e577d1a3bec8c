"""Coverage: how many real models with all natural dims dynamic does an exporter get right?

A collection for `anyshape sweep`: three exporters as columns, and a judge of its own, which shares no code with
anyshape's check: every file runs in ONNX Runtime beside PyTorch at sizes that no exporter chose. Weights are random;
nothing is downloaded.
Run: anyshape sweep benchmarks/coverage.py -o build/coverage --resume [--only PATTERN] [--by anyshape]
Then: python benchmarks/coverage_tables.py build/coverage [--keep]
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

import anyshape
from coverage_models import SOURCES, load
from coverage_models.entry import Entry
from coverage_models.judge import cases_of, judge
from silence import silence

columns = {"anyshape": {}, "dynamo": {"by": "torch"}, "torchscript": {"by": "torchscript"}}


def models(only: str | None = None) -> Iterator[dict[str, Any]]:
    """Those of one source alone where one of them is asked for: the others' libraries take seconds to import."""
    for source in SOURCES:
        if only is None or only.startswith(f"{source}."):
            yield from map(described, load(source).values())


def described(entry: Entry) -> dict[str, Any]:
    return {
        "name": entry.name, "model": partial(built_in_a_warm_process, entry), "inputs": inputs_of(entry),
        "dims": dict(entry.dims), "sizes": dict(entry.sizes), "judge": partial(judged, entry), "tags": [entry.source],
    }  # fmt: skip


def built_in_a_warm_process(entry: Entry) -> nn.Module:
    """What an exporter does once in a process is no matter of the model's, and is done with before its time counts."""
    line, x = nn.Linear(2, 2).eval(), (torch.zeros(3, 2),)
    with silence():
        anyshape.export(line, x, dims={"input": "n 2"})
        torch.onnx.export(line, x, dynamo=True, dynamic_shapes=({0: "n"},), verbose=False)
    return entry.built()


def inputs_of(entry: Entry) -> Callable[..., Any]:
    """The example; at any size where inputs depend on each other."""

    def made(**sizes: int) -> dict[str, Any]:
        found = entry.make(**{**entry.example, **sizes})
        if isinstance(found, dict):
            return found if set(found) == {"args", "kwargs"} else {"args": (), "kwargs": found}
        return {"args": found, "kwargs": {}}

    dims = entry.example if entry.own_inputs else {}
    parameters = [inspect.Parameter(dim, inspect.Parameter.KEYWORD_ONLY, default=size) for dim, size in dims.items()]
    made.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return made


def judged(entry: Entry, path: Path, _model: nn.Module) -> str:
    return judge(path, entry, cases_of(entry))
