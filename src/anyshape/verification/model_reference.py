"""A model as the reference of a file: its tensors become numpy's arrays here, and nowhere else.

The noise of an output is what PyTorch itself loses against float64, or what moves when every result is rounded anew.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import torch

from anyshape.model.oracle import Outcome, RandomOutputError, Reference, are_near
from anyshape.onnxfile.interface import Interface
from anyshape.runtime.model_call import as_numpy
from anyshape.runtime.session import Array, Feeds, Session
from anyshape.sizes.effort import Effort
from anyshape.testbench.checker import BESIDE_A_MODEL, BESIDE_A_RANDOM_MODEL, BenchReference, Checker, Expected
from anyshape.testbench.judgement import FACTOR, Noises, Oracles, Tolerance


@dataclass(frozen=True)
class ModelReference(BenchReference[Outcome]):
    """The user's module beside one file."""

    oracle: Reference
    interface: Interface
    """Of the file."""
    leaves: tuple[str, ...]
    """The leaf that each input of the file takes, in the file's order."""
    computed_in: torch.dtype | None = None
    """The wider type in which the graph is run, where the runtime cannot run its own."""
    takes_narrower: bool = False
    """Whether the file computes in a narrower type than the model."""
    compares_values: bool = True
    """Whether the model gives the same for the same inputs, as the user has it."""
    noises: defaultdict[str, Noises] = field(default_factory=partial(defaultdict, Noises))
    """What was measured of each output's rounding."""

    @property
    def is_widened(self) -> bool:
        return self.computed_in is not None

    def run(self, sizes: Mapping[str, int], content: int = 0) -> Outcome:
        return self._repeatable(self.oracle.run(sizes, content))

    def with_leaves(self, run: Outcome, leaves: Mapping[str, Any]) -> Outcome:
        """The same call with other values for these leaves."""
        return self._repeatable(self.oracle.with_leaves(run, leaves))

    def _repeatable(self, run: Outcome) -> Outcome:
        if self.compares_values and run.draws and self.oracle.is_random(run):
            raise RandomOutputError(run)
        return run

    def volume(self, sizes: Mapping[str, int]) -> int:
        return self.oracle.volume(sizes)

    def effort(self, sizes: Mapping[str, int]) -> Effort:
        return self.oracle.effort(sizes)

    def inputs(self, run: Outcome) -> Feeds:
        ports = zip(self.interface.inputs, self.leaves, strict=True)
        return {port.name: as_numpy(run.leaves[leaf], port.dtype) for port, leaf in ports}

    def input_shapes(self, run: Outcome) -> dict[str, tuple[int, ...]]:
        ports = zip(self.interface.inputs, self.leaves, strict=True)
        return {port.name: tuple(getattr(run.leaves[leaf], "shape", ())) for port, leaf in ports}

    def expected(self, run: Outcome) -> Iterator[Expected]:
        outputs = run.outputs
        if self.computed_in is not None:
            outputs = self.oracle.computed_in(self.computed_in, run) or outputs
        further = _FurtherRuns(self.oracle, run)
        for index, (port, output) in enumerate(zip(self.interface.outputs, outputs, strict=True)):
            exact, jittered = partial(further.exact, index), partial(further.jittered, index)
            reordered = partial(further.reordered, index)
            oracles = Oracles(exact, jittered, self.noises[port.name], self.takes_narrower, reordered)
            yield Expected(index, array_of(output), oracles)

    def other_answer(self, run: Outcome) -> Outcome | None:
        """With gradients on: PyTorch's fast paths give another result."""
        return self.oracle.with_gradients(run)


class _FurtherRuns:
    """Further runs of the model for one call, each made once and only when asked for."""

    def __init__(self, oracle: Reference, run: Outcome) -> None:
        self._oracle, self._run = oracle, run
        self._exact: tuple[torch.Tensor, ...] | None = None
        self._jittered: dict[int, tuple[torch.Tensor, ...] | None] = {}
        self._is_exact_asked = self._is_repeatable = False
        self._reordered: tuple[torch.Tensor, ...] | None = None
        self._is_order_asked = False

    def exact(self, index: int) -> Array | None:
        if not self._is_exact_asked:
            self._is_exact_asked = True
            # in float64, other numbers are drawn
            self._exact = None if self._run.draws else self._oracle.exact(self._run)
            self._is_repeatable |= self._exact is not None and are_near(self._run.outputs, self._exact)
            self._require_repeatable()
        return None if self._exact is None else array_of(self._exact[index])

    def jittered(self, index: int, number: int) -> Array | None:
        if number not in self._jittered:
            self._require_repeatable()
            self._jittered[number] = self._oracle.jittered(self._run, number, strength=FACTOR)
        run = self._jittered[number]
        return None if run is None else array_of(run[index])

    def reordered(self, index: int) -> Array | None:
        if not self._is_order_asked:
            self._is_order_asked = True
            self._require_repeatable()
            self._reordered = self._oracle.lowest_first(self._run)
        return None if self._reordered is None else array_of(self._reordered[index])

    def _require_repeatable(self) -> None:
        """What changes from run to run would be taken for rounding."""
        if not self._is_repeatable and self._oracle.is_random(self._run):
            raise RandomOutputError(self._run)
        self._is_repeatable = True


def array_of(tensor: torch.Tensor) -> Array:
    """A tensor as an array of its own type, without a copy on the CPU; numpy borrows types that it lacks."""
    tensor = tensor.detach().cpu()
    if tensor.is_conj() or tensor.is_neg():
        tensor = tensor.resolve_conj().resolve_neg()
    try:
        return tensor.numpy()
    except TypeError:
        borrowed = getattr(ml_dtypes, str(tensor.dtype).removeprefix("torch."), None)
    if borrowed is None:  # a quantised tensor, say, which is none of ONNX's: its type differs from any
        return np.empty(tuple(tensor.shape), object)
    bits = torch.int16 if tensor.element_size() == 2 else torch.uint8
    return tensor.contiguous().view(bits).numpy().view(borrowed)


def checker_beside_model(
    session: Session,
    interface: Interface,
    oracle: Reference,
    leaves: Iterable[str],
    tolerance: Tolerance | None = None,
    computed_in: torch.dtype | None = None,
    *,
    takes_narrower: bool = False,
    compares_values: bool = True,
) -> ModelChecker:
    """A loaded file beside its model; each of its inputs takes one of these leaves."""
    reference = ModelReference(
        oracle, interface, tuple(leaves), computed_in, takes_narrower, compares_values=compares_values
    )
    rules = BESIDE_A_MODEL if compares_values else BESIDE_A_RANDOM_MODEL
    return ModelChecker(session, interface, reference, rules, tolerance or Tolerance())


@dataclass(frozen=True)
class ModelChecker(Checker[Outcome]):
    """The bench with a model on it."""

    reference: ModelReference
