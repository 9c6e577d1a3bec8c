"""How long checking may take, and which sizes are too dear for it."""

from __future__ import annotations

import time

from anyshape.sizes import budgets


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

    def is_cheap(self, volume: int) -> bool:
        """Whether a size of this volume may be run to learn from, and teaches something new."""
        return (
            self.remaining > 0
            and volume <= budgets.SMALL_CALL
            and all(volume > 4 * known for known, _ in self._measured)
        )

    def refuses(self, volume: int, largest_result: int) -> str | None:
        """Why a size of this volume is not run, or None."""
        if self.remaining <= 0:
            return "the budget was used up"
        if self._memory and volume * budgets.BYTES_PER_ELEMENT > self._memory:
            return "predicted to need more memory than there is"
        if self._measured and volume > budgets.SMALL_CALL:
            base, seconds = max(self._measured)
            growth = max(volume / max(base, 1), 0.0)
            # squared: attention and all pairs cost so much, and to be wrong the other way would cost the user's time
            if growth > 1 and seconds * growth**2 > self.remaining:
                return "predicted to take longer than the budget"
            if self._memory and largest_result * max(growth, 1.0) ** 2 > self._memory:
                return "predicted to need more memory than there is"
        return None
