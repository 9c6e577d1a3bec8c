"""ONNX's operators as translations call them: `op.Add(left, right)` adds a node to the graph in work.

They are typed for onnxscript's own compiler, which takes other values than a table of torch's does; here as Any.
"""

from __future__ import annotations

from typing import Any

from onnxscript import opset18

op: Any = opset18
