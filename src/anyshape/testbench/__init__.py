"""One bench for every verb: which sizes to run, running them, and judging what came out on numpy arrays.

What is right is handed in: a model in PyTorch, a static file, or a file's own declaration.
"""
