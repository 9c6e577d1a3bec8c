"""`python -m anyshape`."""

from __future__ import annotations

from anyshape.cli import main

main()
