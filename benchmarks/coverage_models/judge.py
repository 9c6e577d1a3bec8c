"""The judge: a file in ONNX Runtime against the model in eager, at sizes that no exporter chose.

Shapes must be equal, and values close: 1e-3 relative and absolute (less where all values are small), or 8 times the
model's own rounding noise (float32 against float64) where that is larger.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from torch import nn

from coverage_models.entry import Entry
from coverage_models.structure import flatten, matches, named_call, rebuild
from coverage_models.texts import one_line

ATOL = RTOL = 1e-3
NOISE = 8.0


class DefectError(Exception):
    """The entry itself is wrong: PyTorch does not run at one of its sizes."""


@dataclass(frozen=True)
class Case:
    """One call, and what PyTorch answers."""

    sizes: dict[str, int]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    inputs: list[tuple[str, np.ndarray]]
    outputs: list[np.ndarray]

    @property
    def place(self) -> str:
        return ", ".join(f"{dim}={size}" for dim, size in self.sizes.items()) or "the only size"


def _run(model: nn.Module, args: Any, kwargs: Any) -> list[torch.Tensor]:
    """The model's answer from a copy of its state, to inputs of their own."""
    tensors = iter([t.clone() for _, t in flatten((args, kwargs))])
    args, kwargs = rebuild((args, kwargs), tensors)
    with torch.no_grad():
        return [tensor.detach().clone() for _, tensor in flatten(copy.deepcopy(model)(*args, **kwargs))]


def cases_of(entry: Entry) -> list[Case]:
    """What PyTorch answers at every judging size."""
    model = entry.built()
    found = []
    for index, sizes in enumerate(entry.rounds):
        try:
            args, kwargs = entry.call(sizes, seed=100 + index)
            outputs = [tensor.numpy() for tensor in _run(model, args, kwargs)]
        except Exception as error:
            raise DefectError(f"PyTorch fails at {sizes}: {type(error).__name__}: {error}") from error
        if not outputs:
            raise DefectError("no tensor comes out")
        if any(not np.isfinite(a).any() for a in outputs if a.size and a.dtype.kind == "f"):
            raise DefectError(f"nothing finite comes out at {sizes}")
        if index == 0 and entry.source != "db" and all(_is_constant(a) for a in outputs):
            raise DefectError("only constants come out")
        inputs = [(name, tensor.numpy()) for name, tensor in named_call(model, args, kwargs)]
        if strange := [key for key in entry.dims if not any(matches(key, name) for name, _ in inputs)]:
            raise DefectError(f"dims are declared for {strange}, the inputs are {[name for name, _ in inputs]}")
        found.append(Case(sizes, args, kwargs, inputs, outputs))
    return found


def _is_constant(array: np.ndarray) -> bool:
    return array.size > 1 and bool((array == array.flat[0]).all())


def judge(path: Path, entry: Entry, cases: Sequence[Case]) -> str:
    """What is wrong with a file in one line, or nothing."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        return one_line(f"ONNX Runtime does not load it: {error}")
    wrong = [(case, fault) for case in cases if (fault := _fault(session, entry, case))]
    if not wrong:
        return ""
    case, fault = wrong[0]
    return one_line(f"at {len(wrong)} of {len(cases)} sizes, first {case.place}: {fault}")


def _fault(session: onnxruntime.InferenceSession, entry: Entry, case: Case) -> str:
    try:
        got = session.run(None, _feeds(session, case))
    except Exception as error:
        return f"fails to run: {error}"
    if len(got) != len(case.outputs):
        return f"{len(got)} outputs instead of {len(case.outputs)}"
    noise: list[float] | None = None
    for index, (ours, theirs) in enumerate(zip(map(np.asarray, got), case.outputs, strict=True)):
        if ours.shape != theirs.shape:
            return f"output {index} has shape {list(ours.shape)} instead of {list(theirs.shape)}"
        if is_close(ours, theirs):
            continue
        noise = _noise(entry, case) if noise is None else noise
        if not is_close(ours, theirs, NOISE * noise[index]):
            return f"output {index} differs by {_distance(ours, theirs):.2g} of {np.abs(theirs).max():.2g}"
    return ""


def _feeds(session: onnxruntime.InferenceSession, case: Case) -> dict[str, np.ndarray]:
    """By name where all names are the leaves' own, by number in `input_3`, else in order."""
    names = [value.name for value in session.get_inputs()]
    by_name = dict(case.inputs)
    if all(name in by_name for name in names):
        return {name: by_name[name] for name in names}
    numbered = {f"input_{index}": array for index, (_, array) in enumerate(case.inputs)}
    if all(name in numbered for name in names):
        return {name: numbered[name] for name in names}
    return dict(zip(names, (array for _, array in case.inputs), strict=True))


def is_close(ours: np.ndarray, theirs: np.ndarray, allowed: float = 0.0) -> bool:
    if theirs.dtype.kind not in "fc":
        return bool(np.array_equal(ours, theirs)) or (allowed > 0 and _distance(ours, theirs) <= allowed)
    finite = theirs[np.isfinite(theirs)]
    largest = float(np.abs(finite).max()) if finite.size else 0.0
    atol = max(ATOL * min(1.0, largest), 1e-6, allowed)
    return bool(np.allclose(ours, theirs, rtol=RTOL, atol=atol, equal_nan=True))


def _distance(ours: np.ndarray, theirs: np.ndarray) -> float:
    if not theirs.size:
        return 0.0
    kind = complex if theirs.dtype.kind == "c" else float
    difference = np.abs(ours.astype(kind) - theirs.astype(kind))
    return float(np.nan_to_num(difference, nan=np.inf).max())


def _noise(entry: Entry, case: Case) -> list[float]:
    """How far float32 is from float64 in the model itself; nothing where float64 does not run."""
    try:
        model = entry.built().double()
        wide = iter([t.double() if t.is_floating_point() else t for _, t in flatten((case.args, case.kwargs))])
        args, kwargs = rebuild((case.args, case.kwargs), wide)
        exact = [tensor.numpy() for tensor in _run(model, args, kwargs)]
        return [_distance(a, b) if a.shape == b.shape else 0.0 for a, b in zip(exact, case.outputs, strict=True)]
    except Exception:
        return [0.0] * len(case.outputs)
