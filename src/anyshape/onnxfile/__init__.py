"""The ONNX file and the tools for its graph: interface, contract, saving, metadata, and what is baked into it.

Files are data of others: nothing in one is trusted or executed.
"""
