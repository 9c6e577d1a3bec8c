"""anyshape.model"""
