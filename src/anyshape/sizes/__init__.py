"""The arithmetic of sizes: how they are written, expressions, ranges and relations, and the formula behind numbers.

Nothing here knows of models or files. torch's sympy and onnx_ir's are read here, and become expressions of the dims.
"""
