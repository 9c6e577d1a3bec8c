"""Arithmetic of sizes: the notation, relations of dims, torch's and onnx_ir's symbols, the formula behind numbers."""
