"""The graph after translation: finished, rewritten to be faster, and kept to what ONNX Runtime does right."""
