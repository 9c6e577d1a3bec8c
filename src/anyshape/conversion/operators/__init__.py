"""Operators, a file per family: what is recognised in torch, what stands in for it while tracing, and its ONNX."""
