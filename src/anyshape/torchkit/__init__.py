"""Private names of torch that are no subject of their own, found by feature detection: a torch without them gives less.

Capture, patches, state, precision, and the recorder of eager runs. Written for torch 2.13.
"""
