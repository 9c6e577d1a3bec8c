"""Why not, and where."""
