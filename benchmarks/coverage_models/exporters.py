"""The three exporters, each called as its users call it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

import anyshape
from coverage_models.entry import Entry, dims_in
from coverage_models.structure import Flat, named_call, notation_of
from coverage_models.texts import one_line

Told = dict[str, Any]
"""What an exporter says about its success."""


class RefusedError(Exception):
    """No file was written; carries what is kept about it."""

    def __init__(self, reason: str, **told: Any) -> None:
        super().__init__(reason)
        self.told = told


def by_anyshape(model: nn.Module, entry: Entry, path: Path) -> Told:
    args, kwargs = entry.call(entry.example, seed=1)
    given: dict[str, Any] = {"make_inputs": entry.make} if entry.own_inputs else {"args": args, "kwargs": kwargs}
    clock = _ConversionClock()
    try:
        result = anyshape.export(model, f=path, dims=dict(entry.dims), sizes=dict(entry.sizes), progress=clock, **given)
    except anyshape.ExportError as error:
        raise RefusedError(_findings(error.result), tried=_tried(error.result)) from error
    return {
        "converting": clock.seconds(),
        "strategy": next((a.strategy for a in result.attempts if a.outcome == "checked"), result.verdict),
        "repairs": [one_line(repair) for repair in result.repairs],
        "limits": list(result.limits),
        "excluded": _excluded(entry, result.limits),
    }


class _ConversionClock:
    """CPU time of the conversions alone, read from what the export says it is doing."""

    def __init__(self) -> None:
        self._told: list[tuple[str, float]] = []

    def __call__(self, text: str) -> None:
        self._told.append((text, time.process_time()))

    def seconds(self) -> float:
        ends = [at for _, at in self._told[1:]] + [time.process_time()]
        spans = ((text, end - at) for (text, at), end in zip(self._told, ends, strict=True))
        return round(sum(span for text, span in spans if text.startswith("converting")), 2)


def _excluded(entry: Entry, limits: Sequence[str]) -> list[str]:
    """Judging sizes, at which PyTorch runs, that a limit says the model cannot do."""
    return [
        f"{sizes} by {limit}"
        for limit in limits
        for sizes in entry.rounds
        if set(dims_in([limit])) <= set(sizes) and not _holds(limit, sizes)
    ]


def _holds(limit: str, sizes: Mapping[str, int]) -> bool:
    try:
        return bool(eval(limit, {"__builtins__": {}, "min": min, "max": max}, dict(sizes)))
    except (SyntaxError, NameError, TypeError):
        return True


def _findings(result: anyshape.Result) -> str:
    if not result.findings:
        return "no finding"
    first = result.findings[0]
    return f"{first.rule}: {first.message} ({Path(first.span.path).name}:{first.span.line})"


def _tried(result: anyshape.Result) -> list[str]:
    return [one_line(f"{attempt.strategy}, {attempt.outcome}: {attempt.reason}") for attempt in result.attempts]


def _axes(entry: Entry, name: str) -> dict[int, str]:
    """The dynamic axes of a leaf; an expression is a name of its own."""
    notation = notation_of(entry.dims, name)
    return {i: axis.replace("+", "_plus_") for i, axis in enumerate(notation.split()) if dims_in([axis])}


def by_dynamo(model: nn.Module, entry: Entry, path: Path) -> Told:
    args, kwargs = entry.call(entry.example, seed=1)
    leaves = named_call(model, args, kwargs)
    shapes = tuple({i: f"axis_{n}" for i, n in _axes(entry, name).items()} for name, _ in leaves)
    names = [f"input_{index}" for index in range(len(leaves))]
    torch.onnx.export(
        Flat(model, args, kwargs), tuple(tensor for _, tensor in leaves), path, dynamo=True,
        dynamic_shapes=(_plain_names(shapes),), input_names=names, verbose=False,
    )  # fmt: skip
    return {}


def _plain_names(shapes: tuple[dict[int, str], ...]) -> tuple[dict[int, str], ...]:
    """Names that are identifiers; the same text keeps the same name."""
    texts = list(dict.fromkeys(text for axes in shapes for text in axes.values()))
    return tuple({axis: f"dim_{texts.index(text)}" for axis, text in axes.items()} for axes in shapes)


def by_torchscript(model: nn.Module, entry: Entry, path: Path) -> Told:
    args, kwargs = entry.call(entry.example, seed=1)
    leaves = named_call(model, args, kwargs)
    names = [f"input_{index}" for index in range(len(leaves))]
    axes = {name: _axes(entry, leaf) for name, (leaf, _) in zip(names, leaves, strict=True)}
    torch.onnx.export(
        Flat(model, args, kwargs), tuple(tensor for _, tensor in leaves), str(path), dynamo=False,
        dynamic_axes=axes, input_names=names, verbose=False,
    )  # fmt: skip
    return {}


EXPORTERS: dict[str, Callable[[nn.Module, Entry, Path], Told]] = {
    "anyshape": by_anyshape,
    "dynamo": by_dynamo,
    "torchscript": by_torchscript,
}
