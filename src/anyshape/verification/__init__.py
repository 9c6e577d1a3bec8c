"""Whether a file is right: what to suspect, which values to try, and what to hold it against.

References are a model, a static twin, or the file alone.
"""
