"""What the export of a checkpoint returns: one result per model file, what they generate, and all files written."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from anyshape.results.result import Result

if TYPE_CHECKING:
    from anyshape.results.attempt import Attempt


@dataclass(frozen=True)
class Exported(Sequence[Result]):
    """The results of one checkpoint, in the order in which the files are used; `print` it."""

    path: Path
    """The folder."""
    model: str
    """The class that the checkpoint was loaded as."""
    results: tuple[Result, ...]
    files: tuple[str, ...]
    """Everything that was written, below the folder."""
    generation: tuple[str, ...] = ()
    """What was seen when the files generated."""
    notes: tuple[str, ...] = ()

    @overload
    def __getitem__(self, index: int) -> Result: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Result]: ...
    def __getitem__(self, index: int | slice) -> Result | Sequence[Result]:
        return self.results[index]

    def __len__(self) -> int:
        return len(self.results)

    @property
    def verdict(self) -> str:
        """The weakest of the files' verdicts."""
        order = ("checked", "narrowed", "unchecked")
        return max((result.verdict for result in self.results), key=order.index)

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        return tuple(attempt for result in self.results for attempt in result.attempts)

    def __str__(self) -> str:
        count = f"{len(self.results)} model file{'s' if len(self.results) != 1 else ''}"
        lines = [f"{self.verdict}: {self.path.name}/, {self.model} in {count}"]
        lines += [textwrap.indent(str(result), "  ") for result in self.results]
        lines += [f"  decoded  {fact}" for fact in self.generation]
        lines += [f"  note     {note}" for note in self.notes]
        others = [file for file in self.files if not file.endswith((".onnx", ".data", "_data"))]
        return "\n".join([*lines, f"  beside   {', '.join(others)}"])

    def to_dict(self) -> dict[str, Any]:
        return {
            "verdict": self.verdict,
            "path": str(self.path),
            "model": self.model,
            "files": list(self.files),
            "results": [result.to_dict() for result in self.results],
            "generation": list(self.generation),
            "notes": list(self.notes),
        }
