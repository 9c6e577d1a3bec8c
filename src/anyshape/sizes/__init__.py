"""anyshape.sizes"""
