"""Static to dynamic: axes of a file's inputs that were numbers become dims, and what pinned them is rewritten.

Files are data: no torch is needed here, and nothing in a file is trusted.
"""

from __future__ import annotations

from anyshape.freeing.engine import free
from anyshape.freeing.records import Bound, Freed, PinnedError, Rewrite, Wanted

__all__ = ["Bound", "Freed", "PinnedError", "Rewrite", "Wanted", "free"]
