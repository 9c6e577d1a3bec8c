"""How code at a site can name a size: `x.shape[1]`, a name that holds it, or arithmetic on these."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from anyshape.sizes import budgets
from anyshape.sizes.notation import Expression
from anyshape.source.sites import Site, names_at


def names_in(node: ast.AST) -> list[str]:
    """The names in an expression, as they are written from left to right."""
    found = [one for one in ast.walk(node) if isinstance(one, ast.Name)]
    return [one.id for one in sorted(found, key=lambda one: (one.lineno, one.col_offset))]


@dataclass(frozen=True)
class Nameable:
    """A size that varies, and how the code at a site would write it."""

    text: str
    expression: Expression
    owner: str
    """The tensor it is taken from; empty for a name that holds the size itself."""


class SizeNames:
    """The sizes that can be named at a site; `first` are the names that stand in the expression itself."""

    def __init__(self, site: Site, in_dims: Callable[[Any], Expression | None], first: Sequence[str] = ()) -> None:
        found = list(_nameable_sizes(names_at(site), in_dims))
        found.sort(key=lambda one: first.index(one.owner) if one.owner in first else len(first))
        self.all = tuple(found)

    def texts(self, expression: Expression) -> list[str]:
        """Ways to write a size: as it stands on an axis, else put together from axes."""
        direct = [one.text for one in self.all if agree(one.expression, expression)]
        if not direct and (composed := self._text_of_axes(expression)) is not None:
            direct = [composed]
        return list(dict.fromkeys(direct))

    def dims_in(self, text: str) -> list[str]:
        """The dims that a text made of these sizes speaks of."""
        return [name for one in self.all if one.text in text for name in one.expression.names]

    def _text_of_axes(self, expression: Expression) -> str | None:
        named = {dim: self._text_of_dim(dim) for dim in expression.names}
        if not all(named.values()):
            return None
        return re.sub(r"[A-Za-z_]\w*", lambda found: named.get(found[0]) or found[0], expression.text)

    def _text_of_dim(self, dim: str) -> str | None:
        return next((one.text for one in self.all if one.expression.text == dim), None)


# primes: expressions that differ hardly ever agree at both
_PROBES = ((5, 7, 11, 13, 17, 19, 23, 29), (31, 2, 37, 3, 41, 43, 47, 53))


def agree(one: Expression, other: Expression) -> bool:
    """Whether two expressions are the same size, however they are written."""
    names = sorted({*one.names, *other.names})
    if set(one.names) != set(other.names) or len(names) > len(_PROBES[0]):
        return one == other
    probes = [dict(zip(names, sizes, strict=False)) for sizes in _PROBES]
    return all(_value_at(one, sizes) == _value_at(other, sizes) for sizes in probes)


def _value_at(expression: Expression, sizes: Mapping[str, int]) -> int | None:
    try:
        return expression.value(sizes)
    except ZeroDivisionError:
        return None


def _nameable_sizes(names: Mapping[str, Any], in_dims: Callable[[Any], Expression | None]) -> Iterator[Nameable]:
    tensors = list(_tensors_by_name(names))
    for name, value in names.items():
        if (expression := in_dims(value)) is not None:
            yield Nameable(name, expression, "")
    for text, tensor in tensors:
        for axis, size in enumerate(tensor.shape):
            if (expression := in_dims(size)) is not None:
                yield Nameable(f"{text}.shape[{axis}]", expression, text)


def _tensors_by_name(names: Mapping[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    """Tensors under a name, and one step below it."""
    for name, value in names.items():
        if isinstance(value, torch.Tensor):
            yield name, value
        elif isinstance(value, Mapping):
            yield from ((f'{name}["{k}"]', v) for k, v in value.items() if isinstance(v, torch.Tensor))
        elif isinstance(value, (tuple, list)) and len(value) <= budgets.FEW_SIZE_NAMES:
            yield from ((f"{name}[{i}]", v) for i, v in enumerate(value) if isinstance(v, torch.Tensor))
