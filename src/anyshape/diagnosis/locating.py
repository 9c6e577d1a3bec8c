"""The user's line from which the first wrong result of a file comes."""

from __future__ import annotations

from pathlib import Path

import onnx

from anyshape.diagnosis.findings import Span
from anyshape.verification.checking import Checker, Failure


def first_difference(model: onnx.ModelProto, path: Path, checker: Checker, failure: Failure) -> Span | None:
    del model, path, checker, failure
    return None
