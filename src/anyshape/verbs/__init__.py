"""anyshape.verbs"""
