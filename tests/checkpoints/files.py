"""How the tests look at files: their inputs and outputs, and what they compute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch


def axes_of(ports: Any) -> dict[str, str]:
    return {port.name: ", ".join(map(str, port.axes)) for port in ports}


def run_file(path: Path, feeds: dict[str, torch.Tensor]) -> dict[str, Any]:
    session = onnxruntime.InferenceSession(path)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, {name: value.numpy() for name, value in feeds.items()}), strict=True))


def assert_agrees(found: Any, wanted: torch.Tensor) -> None:
    largest = float(wanted.abs().max())
    assert largest > 0.1
    np.testing.assert_allclose(found, wanted.numpy(), atol=1e-4 * largest)
