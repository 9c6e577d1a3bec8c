"""anyshape.source"""
