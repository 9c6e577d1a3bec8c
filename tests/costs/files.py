"""Small files in ONNX's text, and what shapes ONNX Runtime gives them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime

from anyshape.costs.file_costs import FileCosts

TYPES = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(bool)": np.bool_, "tensor(double)": np.float64}


def write(folder: Path, text: str, opset: int = 20) -> Path:
    """`(float[batch, 3] x) => (float y) { y = Relu (x) }` as a file."""
    head = f'<ir_version: 9, opset_import: ["": {opset}, "local": 1]> main '
    model, path = onnx.parser.parse_model(head + text), folder / "model.onnx"
    for port in model.graph.output:
        port.type.tensor_type.ClearField("shape")
    onnx.save(model, path)
    return path


def real_shapes(path: Path, sizes: Mapping[str, int]) -> dict[str, tuple[int, ...]] | None:
    """Of all values of the main graph; None where the runtime refuses these sizes."""
    model = onnx.load(path)
    names = [name for node in model.graph.node for name in node.output if name]
    del model.graph.output[:]
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.graph_optimization_level = 4, onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    feeds: dict[str, np.ndarray] = {}
    for port in session.get_inputs():
        shape = [sizes[axis] if isinstance(axis, str) else axis for axis in port.shape]
        feeds[port.name] = np.ones(shape, TYPES[port.type])
    try:
        found = session.run(None, feeds)
    except Exception:  # noqa: BLE001  the runtime's refusals have many types
        return None
    return {name: value.shape for name, value in zip(names, found, strict=True) if isinstance(value, np.ndarray)}


def told_shapes(costs: FileCosts, sizes: Mapping[str, int]) -> dict[str, tuple[int | None, ...]]:
    """What the formulas that are shown as held say."""
    numbers = costs.numbers(sizes)
    held = [value for value in costs.values if value.state == "held" and value.shape is not None]
    return {value.name: tuple(numbers[place] for place in value.shape or ()) for value in held}
