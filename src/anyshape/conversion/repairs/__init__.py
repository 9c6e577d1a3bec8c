"""Shape-agnostic replacements for the time of a trace: what runs at every size in PyTorch should export as it is.

One repair is one small file: what it recognises, what it puts there, and why that is the same.
"""

from __future__ import annotations

from anyshape.conversion.repairs.base import Repair, Used, applied

REPAIRS: tuple[Repair, ...] = ()
"""In the order in which they are put on; the last one sees a call first."""

__all__ = ["REPAIRS", "Repair", "Used", "applied"]
