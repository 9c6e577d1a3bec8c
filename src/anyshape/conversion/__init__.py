"""From a module to an ONNX model that nobody has checked yet: trace, translation, and the strategies in one table."""
