"""anyshape.conversion.speed"""
