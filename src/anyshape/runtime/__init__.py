"""ONNX Runtime: sessions, custom operators, and inputs that are made up for a file."""
