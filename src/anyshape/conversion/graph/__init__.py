"""anyshape.conversion.graph"""
