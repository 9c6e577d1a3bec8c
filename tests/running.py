"""Running a written file by hand, with ONNX Runtime alone: the tests' own judge beside the product's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from torch import nn

from anyshape.declaration.calls import as_tensor, bind_call, flatten_outputs
from anyshape.declaration.targets import resolve_target


def load(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(str(path), options)


def run(session: onnxruntime.InferenceSession, leaves: Mapping[str, Any]) -> list[np.ndarray]:
    types = {"tensor(float)": np.float32, "tensor(int64)": np.int64}
    feeds = {}
    for port in session.get_inputs():
        value = leaves[port.name]
        feeds[port.name] = value.numpy() if isinstance(value, torch.Tensor) else np.asarray(value, types[port.type])
    return session.run(None, feeds)


def leaves_of(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return bind_call(resolve_target(model), args, kwargs).values


def eager(model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None) -> list[torch.Tensor]:
    with torch.no_grad():
        return [as_tensor(value) for _, value in flatten_outputs(model(*args, **(kwargs or {})))]


def is_right(path: Path, model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any] | None = None) -> bool:
    """Whether the file gives what the model gives, by shape and within 1e-3."""
    leaves = {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in leaves_of(model, args, kwargs).items()}
    wanted = eager(model, args, kwargs)
    results = run(load(path), leaves)
    return len(results) == len(wanted) and all(
        result.shape == tuple(want.shape)
        and np.allclose(result, want.detach().numpy(), rtol=1e-3, atol=1e-4, equal_nan=True)
        for result, want in zip(results, wanted, strict=True)
    )
