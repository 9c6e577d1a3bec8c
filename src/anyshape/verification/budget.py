"""How long checking may take, and which sizes are too dear for it."""

from __future__ import annotations

import time


class Budget:
    """Seconds for checking, and what a size is predicted to cost."""

    def __init__(self, seconds: float, memory: int | None = None) -> None:
        self.seconds = seconds
        self._start = time.monotonic()
        self._memory = memory
        self._measured: list[tuple[int, float]] = []

    @property
    def remaining(self) -> float:
        return self.seconds - (time.monotonic() - self._start)

    def measured(self, volume: int, seconds: float) -> None:
        self._measured.append((volume, seconds))

    def refuses(self, volume: int, largest_result: int) -> str | None:
        """Why a size of this volume is not run, or None."""
        if self.remaining <= 0:
            return "the budget was used up"
        if self._measured:
            base, seconds = max(self._measured)
            growth = max(volume / max(base, 1), 0.0)
            if growth > 1 and seconds * growth**1.5 > self.remaining:
                return "predicted to take longer than the budget"
            if self._memory and largest_result * max(growth, 1.0) ** 2 > self._memory:
                return "predicted to need more memory than there is"
        return None
