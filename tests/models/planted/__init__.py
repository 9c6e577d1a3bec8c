"""Models of several parts: whole ones, and ones with a single number that pins a dim, at the line marked `planted`."""
