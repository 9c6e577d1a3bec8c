"""A model exported with and without rewrites, and what its files hold."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import onnx

import anyshape


def operators(path: Path) -> Counter[str]:
    return Counter(node.op_type for node in onnx.load(path).graph.node)


def exported(folder: Path, model: Any, args: Any, dims: dict[str, str], **options: Any) -> Path:
    """The rewritten file, made at the first try, in the newest operators."""
    path = folder / "model.onnx"
    result = anyshape.export(model, args, path, dims=dims, quick=True, target="onnxruntime", **options)
    assert [attempt.strategy for attempt in result.attempts] == ["torch.export"]
    return path


def both(folder: Path, model: Any, args: Any, dims: dict[str, str], **options: Any) -> tuple[Path, Counter[str]]:
    """The rewritten file, and the operators of the file without rewrites."""
    plain = folder / "plain.onnx"
    anyshape.export(model, args, plain, dims=dims, quick=True, optimize=False, target="onnxruntime", **options)
    return exported(folder, model, args, dims, **options), operators(plain)
