"""A torch that has moved some of its private names."""

from __future__ import annotations

from dataclasses import replace

import pytest

from anyshape.torchkit.private_names import NAMES


def hide(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """For the rest of a test, these names are not where they were."""
    for name in names:
        entry = NAMES[name]
        monkeypatch.setitem(NAMES, name, replace(entry, place=f"{entry.place}_that_was"))
