"""anyshape.runtime"""
