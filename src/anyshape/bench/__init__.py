"""anyshape.bench"""
