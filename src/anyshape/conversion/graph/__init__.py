"""The graph between torch's translation and the file: finished, spared what ONNX Runtime cannot do, and rewritten."""
