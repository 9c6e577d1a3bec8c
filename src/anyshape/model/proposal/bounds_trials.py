"""A declaration tried out: does the model run at these sizes of its dims, with calls as a check would make them?"""

from __future__ import annotations

from collections.abc import Mapping

import torch

from anyshape.declaration.calls import Signature
from anyshape.declaration.dims import declare
from anyshape.declaration.targets import Target
from anyshape.model.oracle import from_example
from anyshape.model.proposal.probe import Budget

_MOST_ELEMENTS = 2**20
"""Of all inputs together: a trial is small."""
_LONGEST, _MOST_TIMES = 1.0, 8
"""A trial takes a second at most, or so many times as long as the example."""


_GROWTH = 1.25
"""Between what is linear in the elements and attention, which is not."""


class SpentError(Exception):
    """No further run is granted, so there is no answer."""


class Trials:
    """One declaration of one call."""

    def __init__(
        self,
        target: Target,
        signature: Signature,
        dims: Mapping[str, tuple[str, ...]],
        *,
        seconds: float,
        budget: Budget,
        seed: int,
    ) -> None:
        """`seconds`: how long one run of the example takes."""
        self.spec = declare(signature, dims)
        self._reference = from_example(target, signature, self.spec, seed=seed)
        self._shapes = {leaf.name: tuple(leaf.value.shape) for leaf in signature.leaves if leaf.is_tensor}
        self._seconds = seconds
        self._budget = budget

    @property
    def ranks(self) -> dict[str, int]:
        """How many axes each tensor has."""
        return {leaf: len(shape) for leaf, shape in self._shapes.items()}

    def runs(self, sizes: Mapping[str, int]) -> bool:
        """Whether the model runs at these sizes, and at the example's for all other dims; SpentError at the end."""
        if self._budget.is_spent():
            raise SpentError
        with torch.no_grad():
            return self._reference.run({**self.spec.example, **sizes}).runs

    def is_small(self, sizes: Mapping[str, int]) -> bool:
        """Whether the inputs at these sizes take little memory and time, or hardly more than the example's."""
        wanted, given = self._elements({**self.spec.example, **sizes}), self._elements(self.spec.example)
        seconds = self._seconds * (wanted / max(given, 1)) ** _GROWTH
        return wanted <= max(_MOST_ELEMENTS, 2 * given) and seconds <= max(_LONGEST, _MOST_TIMES * self._seconds)

    def _elements(self, sizes: Mapping[str, int]) -> int:
        shapes = (self.spec.shape(leaf, sizes, shape) for leaf, shape in self._shapes.items())
        return sum(torch.Size(shape).numel() for shape in shapes)
