"""anyshape.conversion.control_flow"""
