"""What a rule is."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir

from anyshape.onnxfile.freeing.sizes import Shape
from anyshape.onnxfile.freeing.walking import Walk

Shapes = Sequence[Shape | None] | None
"""The shapes of a node's outputs, None where the inference knows them."""
Rule = Callable[[Walk, ir.Node], Shapes]
