"""What a rule is."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import onnx_ir as ir

from anyshape.freeing.walk import Walk
from anyshape.sizes.expressions import Shape

Shapes = Sequence[Shape | None] | None
"""The shapes of a node's outputs, None where the inference knows them."""
Rule = Callable[[Walk, ir.Node], Shapes]
