"""Branches and loops that are kept: both sides of an `if`, and bodies that run as often as a size says."""
