"""anyshape.conversion.operators"""
