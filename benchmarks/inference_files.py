"""The files that the inference benchmark compares: ours, and those of torch's exporters, as they are and optimised."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx
import torch
from torch import nn

import anyshape
from inference_models import Sizes, Subject

OURS = "anyshape"
STATIC = "static"
TORCH = "dynamo"


@dataclass
class Files:
    """The files of one model by name, those of a single size by name and size, and why the others are missing."""

    dynamic: dict[str, Path] = field(default_factory=dict)
    static: dict[tuple[str, int], Path] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def at(self, index: int) -> dict[str, Path]:
        """What can be run at the index-th of the timed sizes."""
        return {**{name: path for (name, place), path in self.static.items() if place == index}, **self.dynamic}


def make_files(subject: Subject, model: nn.Module, folder: Path) -> Files:
    files = Files()
    stem = folder / subject.name.replace(" ", "_")
    examples = inputs_of(subject, subject.example)
    for name, write in _EXPORTERS.items():
        path = stem.with_name(f"{stem.name}_{name}.onnx".replace(" ", "_"))
        with _tried(files, name):
            if not path.exists():
                write(subject, model, examples, path)
            files.dynamic[name] = path
    for index, sizes in enumerate(subject.timed):
        for name, write in _STATIC_EXPORTERS.items():
            path = stem.with_name(f"{stem.name}_{name}_{index}.onnx".replace(" ", "_"))
            with _tried(files, f"{name} at {describe(sizes)}"):
                if not path.exists():
                    write(model, inputs_of(subject, sizes), path)
                files.static[name, index] = path
    for name, (source, optimise) in _OPTIMISERS.items():
        if source in files.dynamic:
            path = stem.with_name(f"{stem.name}_{name}.onnx".replace(" ", "_"))
            with _tried(files, name):
                if not path.exists():
                    optimise(files.dynamic[source], path)
                files.dynamic[name] = path
    return files


def inputs_of(subject: Subject, sizes: Sizes) -> tuple[torch.Tensor, ...]:
    torch.manual_seed(1)
    return subject.make(**sizes)


def describe(sizes: Sizes) -> str:
    return "x".join(map(str, sizes.values()))


@contextlib.contextmanager
def _tried(files: Files, name: str) -> Iterator[None]:
    """One file; what goes wrong is told, and does not stop the others."""
    try:
        with quiet():
            yield
    except Exception as error:
        files.missing[name] = f"{type(error).__name__}: {str(error).strip().splitlines()[0][:100]}"


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without what libraries print; some write past Python."""
    logging.disable(logging.WARNING)
    kept = [os.dup(1), os.dup(2)]
    with warnings.catch_warnings(), Path(os.devnull).open("w") as nowhere:
        warnings.simplefilter("ignore")
        sys.stdout.flush()
        os.dup2(nowhere.fileno(), 1)
        os.dup2(nowhere.fileno(), 2)
        try:
            yield
        finally:
            sys.stdout.flush()
            for number, copy in enumerate(kept, start=1):
                os.dup2(copy, number)
                os.close(copy)


# ---- dynamic files


def _by_anyshape(subject: Subject, model: nn.Module, examples: Any, path: Path) -> None:
    anyshape.export(model, examples, path, dims=subject.dims, sizes=subject.ranges, target="onnxruntime")


def _axes(subject: Subject) -> dict[str, dict[int, str]]:
    """The dynamic axes of every input; an expression is a name of its own."""
    rows = {name: enumerate(notation.split()) for name, notation in subject.dims.items()}
    return {name: {i: axis.replace("+", "_") for i, axis in row if not axis.isdecimal()} for name, row in rows.items()}


def _by_dynamo(subject: Subject, model: nn.Module, examples: Any, path: Path) -> None:
    torch.onnx.export(
        model, examples, path, dynamo=True, dynamic_shapes=_axes(subject), verbose=False, external_data=False
    )


def _by_torchscript(subject: Subject, model: nn.Module, examples: Any, path: Path) -> None:
    with torch.enable_grad():  # without it attention layers take a path that this exporter cannot translate
        torch.onnx.export(
            model, examples, path, dynamo=False, input_names=list(subject.dims), dynamic_axes=_axes(subject)
        )


# ---- one file for each size


def _static(model: nn.Module, examples: Any, path: Path) -> None:
    torch.onnx.export(model, examples, path, dynamo=True, verbose=False, external_data=False)


def _static_torchscript(model: nn.Module, examples: Any, path: Path) -> None:
    with torch.enable_grad():
        torch.onnx.export(model, examples, path, dynamo=False)


# ---- optimisers


def _slim(source: Path, path: Path) -> None:
    import onnxslim

    onnxslim.slim(str(source), str(path))


def _ort_transformers(source: Path, path: Path) -> None:
    from onnxruntime.transformers import optimizer

    kind = next((kind for kind in ("llama", "vit", "bert") if kind in source.name), "bert")
    optimised = optimizer.optimize_model(
        str(source), model_type={"llama": "gpt2"}.get(kind, kind), num_heads=0, hidden_size=0
    )
    optimised.save_model_to_file(str(path))


def _optimize_for_ort(source: Path, path: Path) -> None:
    import onnx_ir as ir
    from onnxscript.rewriter.ort_fusions import optimize_for_ort

    model, *_ = optimize_for_ort(ir.load(source))
    ir.save(model, path)


_EXPORTERS: Mapping[str, Callable[..., None]] = {
    OURS: _by_anyshape,
    TORCH: _by_dynamo,
    "script": _by_torchscript,
}
_STATIC_EXPORTERS: Mapping[str, Callable[..., None]] = {STATIC: _static, "script static": _static_torchscript}
_OPTIMISERS: Mapping[str, tuple[str, Callable[[Path, Path], None]]] = {
    "dynamo+slim": (TORCH, _slim),
    "script+slim": ("script", _slim),
    "dynamo+transformers": (TORCH, _ort_transformers),
    "dynamo+for_ort": (TORCH, _optimize_for_ort),
}
PEERS = (TORCH, "script", *_OPTIMISERS)
"""Dynamic files that others write."""


def count_nodes(path: Path) -> int:
    """All nodes of a file, those of subgraphs and of the bodies of its functions, too; constants compute nothing."""
    proto = onnx.load(path, load_external_data=False)
    return _count(proto.graph) + sum(_count(function) for function in proto.functions)


def _count(graph: Any) -> int:
    inner = (attribute.g for node in graph.node for attribute in node.attribute if attribute.HasField("g"))
    return sum(node.op_type != "Constant" for node in graph.node) + sum(_count(one) for one in inner)
