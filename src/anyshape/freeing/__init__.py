"""Static to dynamic: axes of a file's inputs that were numbers become dims, and what pinned them is rewritten.

Files are data: no torch is needed here, and nothing in a file is trusted. `engine.free` is the way in; the modules
import each other in this order: records, builder, inference, walk (one graph, node by node), constant_patterns and
growth (constants that follow a dim), rules (one file per family of operators), engine.
"""
