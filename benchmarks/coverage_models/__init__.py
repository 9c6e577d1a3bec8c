"""Real models with all natural dims dynamic, and what is needed to export and to judge them."""

from __future__ import annotations

from importlib import import_module

from coverage_models.entry import Entry

SOURCES = {
    "nn": ("nn", "nn_sequences"),
    "db": ("db",),
    "hf": ("hf_text", "hf_caches", "hf_vision", "hf_others"),
    "timm": ("timm_models",),
}
"""Which modules hold the entries of a source."""


def load(source: str) -> dict[str, Entry]:
    """All entries of a source by name; nothing is built yet."""
    found: dict[str, Entry] = {}
    for module in SOURCES[source]:
        for entry in import_module(f"coverage_models.{module}").entries():
            if entry.name in found:
                raise ValueError(f"two entries are called {entry.name}")
            found[entry.name] = entry
    return found
