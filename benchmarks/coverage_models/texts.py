"""Messages of others as one line that says nothing about the machine."""

from __future__ import annotations

import re

_PATH = re.compile(r"(?<![\w.:/])(?:/[\w.+@-]+)+/([\w.+@-]+)")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_LONGEST = 240


def one_line(text: object) -> str:
    """The first lines joined, with paths cut to their last part, addresses left out and the end cut off."""
    joined = " ".join(_COLOUR.sub("", str(text)).split())
    joined = _ADDRESS.sub("0x", _PATH.sub(r"\1", joined))
    return joined if len(joined) <= _LONGEST else joined[: _LONGEST - 3] + "..."
