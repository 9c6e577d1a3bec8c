"""What is kept: outcomes by entry and exporter, written after each so that a run can be stopped at any time."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

Record = dict[str, Any]
PACKAGES = ("torch", "onnx", "onnxscript", "onnxruntime", "transformers", "timm")


def versions() -> str:
    return ", ".join(f"{package} {version(package)}" for package in PACKAGES)


class Results:
    def __init__(self, path: Path, *, keep: bool = True) -> None:
        self.path, self.keep = path, keep
        self.entries: dict[str, dict[str, Record]] = self._read()

    def _read(self) -> dict[str, dict[str, Record]]:
        text = self.path.read_text(encoding="utf-8") if self.keep and self.path.exists() else "{}"
        found: dict[str, dict[str, Record]] = json.loads(text).get("entries", {})
        return found

    def entry(self, name: str) -> dict[str, Record]:
        return self.entries.get(name, {})

    def outcome(self, name: str, exporter: str) -> str | None:
        return self.entry(name).get(exporter, {}).get("outcome")

    def forget(self, pairs: Iterable[tuple[str, str]]) -> None:
        for name, exporter in pairs:
            self.entry(name).pop(exporter, None)
        if self.keep:
            self._write()

    def put(self, name: str, exporter: str, record: Record) -> None:
        """Two runs may share a file: what the other wrote meanwhile is kept."""
        if self.keep:
            self.entries = self._read()
        self.entries.setdefault(name, {})[exporter] = record
        if self.keep:
            self._write()

    def _write(self) -> None:
        """Whole or not at all: to a file beside it, which then takes its place."""
        entries = {
            name: dict(sorted(self.entries[name].items())) for name in sorted(self.entries) if self.entries[name]
        }
        content = json.dumps({"versions": versions(), "entries": entries}, indent=1, ensure_ascii=False)
        beside = self.path.with_suffix(f".{os.getpid()}.part")
        beside.write_text(content + "\n", encoding="utf-8")
        beside.replace(self.path)
