"""From the module to an ONNX model."""
