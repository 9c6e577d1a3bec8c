"""anyshape.stages"""
