"""A batch: which dims are one, and a call cut into two smaller calls along it.

Only dims that are named like a batch count: to mix nodes, tokens or points is what models are for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from anyshape.declaration.dims import Spec
from anyshape.declaration.notation import Expression
from anyshape.diagnosis.mixing_place import Split
from anyshape.errors import DeclarationError
from anyshape.verification.reference import Outcome, Reference

_BATCH = re.compile(r"(?!.*_(per|in)_batch)(b|bs|bsz|.*batch(_?(size|dim|axis))?)", re.IGNORECASE)


def batch_dims(spec: Spec) -> list[str]:
    """Dims named like a batch that stand alone on an axis wherever they stand, and once in each input."""
    return [dim for dim in spec.dims if _is_named_like_a_batch(dim, spec) and _can_be_cut(dim, spec)]


def _is_named_like_a_batch(dim: str, spec: Spec) -> bool:
    """`batch`, `batch_size`, `bs`, `B`, `text_batch`; `N` and `n` only in front of all inputs, as of images."""
    if dim not in ("n", "N"):
        return _BATCH.fullmatch(dim) is not None
    # `n 3` may be a set of points, `n` a signal: N is torch's own word for a batch, n needs more axes
    least = 2 if dim == "N" else 3
    rows = spec.axes.values()
    return all(axis_of(dim, row) == 0 for row in rows) and any(len(row) >= least for row in rows)


def _can_be_cut(dim: str, spec: Spec) -> bool:
    rows = spec.axes.values()
    held = [[e for e in row if e is not None and dim in e.names] for row in rows]
    if not any(held) or any(len(row) > 1 or not all(e.is_name for e in row) for row in held):
        return False
    # lengths or offsets of samples that lie one behind the other in another input: that one cannot be cut
    whole = [row for row, found in zip(rows, held, strict=True) if not found and any(row)]
    return not whole or any(len(row) > 1 for row, found in zip(rows, held, strict=True) if found)


def axis_of(dim: str, row: Sequence[Expression | None]) -> int | None:
    """The axis of an input that is this dim."""
    return next((axis for axis, e in enumerate(row) if e is not None and e.text == dim), None)


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
