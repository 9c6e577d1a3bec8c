"""A file per family of operators: what is recognised, what stands in while torch traces, and its ONNX."""
