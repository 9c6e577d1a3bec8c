"""torch's translation of an exported program to ONNX, without what makes it slow."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import onnx_ir as ir
import torch

from anyshape.conversion.operators import numbers
from anyshape.conversion.speed.stages_left_out import shortcuts
from anyshape.conversion.translation_registry import operators_built_once
from anyshape.torchkit.capture import quiet
from anyshape.torchkit.patches import without_answers
from anyshape.torchkit.state import LOCK


@dataclasses.dataclass(frozen=True)
class Translation:
    """An ONNX model, the operators that were replaced by simpler ones in it, and those that forced torch to do so with
    the whole program.
    """

    model: ir.Model
    inlined: tuple[str, ...] = ()
    forced_by: tuple[str, ...] = ()


def translate_program(
    program: torch.export.ExportedProgram, opset: int, extra: Mapping[str, Any], *, inlining: bool = True
) -> Translation:
    """An ONNX model of the program; `extra` are further arguments of torch.onnx.export.

    With `inlining`, operators without a translation are replaced by themselves, where that can be translated.
    """
    options = {"optimize": True, **extra}
    try:
        with (
            LOCK, quiet(), torch.no_grad(), without_answers(), operators_built_once(),
            shortcuts(inlining=inlining) as simplified, numbers.gathered(),
        ):  # fmt: skip
            converted = torch.onnx.export(program, (), None, dynamo=True, opset_version=opset, verbose=False, **options)
    except Exception:
        if not simplified.inlined:
            raise
        return translate_program(program, opset, extra, inlining=False)
    assert converted is not None
    return Translation(converted.model, tuple(sorted(simplified.inlined)), tuple(sorted(simplified.forced_by)))


def with_outputs(function: Any) -> Any:
    """An onnxscript function as torch can use it: one without a return annotation returns nothing, torch believes."""
    known = getattr(function, "op_signature", None)
    count = len(getattr(getattr(function, "function_ir", None), "outputs", ()))
    if known is None or known.outputs or not count:
        return function
    types = [ir.schemas.TypeConstraintParam.any_tensor(f"T_output_{index}") for index in range(count)]
    outputs = [ir.schemas.Parameter(f"output_{i}", t, required=True, variadic=False) for i, t in enumerate(types)]
    function._pt_onnx_signature = dataclasses.replace(known, outputs=outputs)

    # torch would infer the signature of the function itself anew
    @functools.wraps(function.function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return call
