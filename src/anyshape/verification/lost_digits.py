"""Whether a file that is wrong in float32 is right in float64: then kernels of the runtime lose the digits.

The file is computed in float64 by the operators' own reference, which onnx brings along: slow, and without kernels that
approximate.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
from onnx.reference import ReferenceEvaluator

from anyshape.conversion.graph.wider_types import widened
from anyshape.results.verification import Failure
from anyshape.sizes import budgets
from anyshape.testbench.judgement import is_floating
from anyshape.verification.model_reference import ModelChecker, array_of

_ALIKE = 1e-9
"""Of the largest value: what two computations in float64 may differ by, and none in float32 does."""


_DIGITS = 1e-2
"""Of the largest value: what is further off is another result, and not one with fewer digits."""


def with_lost_digits(model: onnx.ModelProto, checker: ModelChecker, failure: Failure) -> Failure:
    """A failure with a note where the file gives PyTorch's values in float64."""
    error = _error_in_float64(model, checker, failure)
    if error is None:
        return failure
    sentence = f"in float64 the file differs from PyTorch by {error:.2g}: kernels of ONNX Runtime lose these digits"
    return replace(failure, note=sentence)


def _error_in_float64(model: onnx.ModelProto, checker: ModelChecker, failure: Failure) -> float | None:
    """None where it is more than rounding in float64, or cannot be asked for."""
    reference, names = checker.reference, [port.name for port in checker.interface.outputs]
    is_small = reference.volume(failure.sizes) <= budgets.SMALL_VOLUME and model.ByteSize() <= budgets.LARGEST_WIDE_COPY
    if failure.rule != "wrong-values" or failure.output not in names or not is_small:
        return None
    run, index = reference.run(failure.sizes, failure.content), names.index(failure.output)
    exact, given = (reference.oracle.exact(run), checker.results(run)) if run.runs else (None, [])
    if exact is None or isinstance(given, Failure):
        return None
    feeds = {name: _in_double(value) for name, value in reference.inputs(run).items()}
    truth, found = array_of(exact[index]), None
    with contextlib.suppress(Exception):  # whatever the reference of some operator does not know
        evaluator: Any = ReferenceEvaluator(ir.to_proto(widened(ir.from_proto(model), ir.DataType.FLOAT)))
        found = evaluator.run(None, feeds)[index]
    if found is None or found.shape != truth.shape or not is_floating(truth.dtype):
        return None
    largest, error, lost = (float(np.abs(one).max(initial=0.0)) for one in (truth, found - truth, given[index] - truth))
    # NaN is no agreement either; and a kernel that gives something else altogether has lost more than digits
    return error if error <= _ALIKE * largest and lost <= _DIGITS * largest else None


def _in_double(value: Any) -> Any:
    return value.astype(np.float64) if value.dtype == np.float32 else value
