"""Shortcuts through torch and onnxscript: each is only faster than their own way, and all are behind one switch."""
