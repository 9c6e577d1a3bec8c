"""Static files in ONNX's own notation, freed and run at sizes that they were not made for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir
import onnxruntime

from anyshape.freeing.engine import free
from anyshape.freeing.records import Freed


def model(text: str, opset: int = 18, **constants: Any) -> ir.Model:
    """`agraph (float[2, 4] x) => (y) { y = Relu(x) }`, with constants given as arrays."""
    proto = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}, "com.microsoft" : 1]>\n{text}')
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items())
    return ir.serde.deserialize_model(proto)


def run(model: ir.Model, *inputs: Any) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(ir.to_proto(model).SerializeToString(), options)
    names = [given.name for given in session.get_inputs()]
    return list(session.run(None, dict(zip(names, inputs, strict=True))))


def ints(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


def floats(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def freed(static: ir.Model, choices: Sequence[int] = (), folder: Path | None = None, **wanted: str) -> Freed:
    """`x="batch _ 4"`: a word frees the axis, anything else leaves it."""
    rows = {
        name: tuple(w if w.isidentifier() and w != "_" else None for w in text.split()) for name, text in wanted.items()
    }
    return free(static, rows, choices, folder=folder)


def assert_right_sample_by_sample(static: ir.Model, dynamic: ir.Model, *, axis: int = 0, samples: int = 5) -> None:
    """The new model on a large batch gives what the file gives on its samples, one group after the other."""
    inputs = [floats(*_enlarged(value, axis, samples), seed=k) for k, value in enumerate(static.graph.inputs)]
    parts = [run(static, *group) for group in zip(*(np.split(x, samples, axis) for x in inputs), strict=True)]
    for k, got in enumerate(run(dynamic, *inputs)):
        np.testing.assert_allclose(got, np.concatenate([part[k] for part in parts], axis), rtol=1e-4, atol=1e-5)


def _enlarged(value: ir.Value, axis: int, samples: int) -> list[int]:
    shape = [int(n) for n in value.shape or ()]
    shape[axis] *= samples
    return shape


def whats(result: Freed) -> Mapping[str, str]:
    return {rewrite.operator: rewrite.what for rewrite in result.rewrites}
