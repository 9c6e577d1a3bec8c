"""A call cut into two smaller calls along a batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import torch

from anyshape.bench.batches import axis_of
from anyshape.declaration.dims import Spec
from anyshape.diagnosis.meeting_place import Split
from anyshape.errors import DeclarationError
from anyshape.model.oracle import Outcome, Reference


@dataclass(frozen=True)
class Cut:
    """One call with a whole batch, and two with a part of it each: only their names and leaves are used."""

    dim: str
    split: Split
    whole: Outcome
    one: Outcome
    two: Outcome

    @property
    def calls(self) -> tuple[Outcome, Outcome, Outcome]:
        return self.whole, self.one, self.two


def splits(spec: Spec, sizes: Mapping[str, int], dim: str, tolerance: float) -> Iterator[Split]:
    """Small parts, unlike each other; then larger ones, for a model that wants two samples or a multiple."""
    declared, example = spec.ranges[dim], max(sizes[dim], 1)
    least = max(declared.lo, 1)
    for first, second in dict.fromkeys(
        [(2, 1), (3, 2), (least + declared.step, least), (2 * example, example), (1, 1)]
    ):
        if all(size in declared for size in (first, second, first + second)):
            yield Split(first, second, tolerance)


def cut(reference: Reference, spec: Spec, sizes: Mapping[str, int], dim: str, split: Split, content: int) -> Cut | None:
    """A call with a batch of this content and its parts; None where the model does not run on the whole."""
    try:
        whole = reference.run({**sizes, dim: split.total}, content)
    except DeclarationError:
        return None  # a `make_inputs` that cannot make this size is told about elsewhere
    if not whole.runs:
        return None
    one = _part(whole, spec, dim, 0, split.first)
    return Cut(dim, split, whole, one, _part(whole, spec, dim, split.first, split.second))


def _part(whole: Outcome, spec: Spec, dim: str, start: int, size: int) -> Outcome:
    sizes = {**whole.sizes, dim: size}
    leaves = dict(whole.leaves)
    for name, row in spec.axes.items():
        axis = axis_of(dim, row)
        if axis is not None:
            leaves[name] = leaves[name].narrow(axis, start, size).contiguous()
    leaves |= {name: expression.value(sizes) for name, expression in spec.scalars.items()}
    return replace(whole, sizes=sizes, leaves=leaves, outputs=())


def samples_are_alike(cut: Cut, spec: Spec) -> bool:
    """An example of ones or zeros: samples that are copies of each other can be mixed unseen."""
    for name, row in spec.axes.items():
        axis, leaf = axis_of(cut.dim, row), cut.whole.leaves[name]
        if axis is not None and not torch.equal(leaf, leaf.narrow(axis, 0, 1).expand_as(leaf)):
            return False
    return True
