"""Numbers that a run compares values with: thresholds, ends of a clamp, ids that mean something.

Values that are drawn may all lie on one side of such a number, and then tell nothing of the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from anyshape.sizes import budgets
from anyshape.torchkit.operator_mode import OperatorMode


@dataclass(frozen=True)
class Comparison:
    """One number, the values that are compared with it, and whether some lie on either side, or equal it."""

    number: float
    lowest: float
    highest: float
    holds_number: bool = False
    """Whether one of the values is that very number."""
    is_about_equality: bool = False
    is_integer: bool = False
    occurrence: tuple[str, float, int] | None = None
    """The same in another run of the same code: the operator, the number, and how many of these came before."""

    @property
    def has_both_sides(self) -> bool:
        return self.holds_number if self.is_about_equality else self.lowest < self.number < self.highest


_EQUALITIES = {"eq", "ne"}
_ORDERS = {"gt", "ge", "lt", "le", "clamp", "clamp_min", "clamp_max", "maximum", "minimum", "bucketize"}
_DEFAULTS: Mapping[str, tuple[float, ...]] = {"hardtanh": (-1.0, 1.0), "hardswish": (-3.0, 3.0),
                                              "hardsigmoid": (-3.0, 3.0)}  # fmt: skip
"""What is compared with where the call does not say."""
_SYMMETRIC = {"hardshrink", "softshrink"}
_COMPARING = _EQUALITIES | _ORDERS | _SYMMETRIC | _DEFAULTS.keys() | {"threshold"}
_ORDERED_TYPES = {
    torch.float64, torch.float32, torch.float16, torch.bfloat16,
    torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8,
}  # fmt: skip


def _numbers_in(value: Any) -> Iterator[float]:
    if isinstance(value, torch.Tensor):
        yield from value.detach().flatten().tolist()
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield value


def _compared_with(name: str, arguments: Sequence[Any]) -> list[float]:
    """The numbers of a call, without the values that are compared."""
    if name == "threshold":
        arguments = arguments[:1]
    found = [number for one in arguments for number in _numbers_in(one)]
    if name in _SYMMETRIC:
        return [side * number for number in found or [0.5] for side in (1, -1)]
    return found or list(_DEFAULTS.get(name, ()))


class _ComparedNumbers(OperatorMode):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[Comparison] = []
        self._counted: Counter[tuple[str, float]] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        name = getattr(getattr(func, "overloadpacket", None), "__name__", "").rstrip("_")
        if name in _COMPARING:  # before the call, which may write to what it compares
            self._note(name, (*args, *(kwargs or {}).values()))
        return func(*args, **(kwargs or {}))

    def _note(self, name: str, arguments: Sequence[Any]) -> None:
        # of two tensors the longer one holds values; a table that these are looked up in comes second
        tensors = [one for one in reversed(arguments) if isinstance(one, torch.Tensor)]
        tensors = tensors if name == "bucketize" else sorted(tensors, key=torch.Tensor.numel)
        if not tensors or not tensors[-1].numel() or tensors[-1].dtype not in _ORDERED_TYPES:
            return
        values = tensors[-1].detach()
        if any(one.numel() > budgets.MOST_NUMBERS_COMPARED for one in tensors[:-1]):
            return
        lowest, highest = (float(one) for one in torch.aminmax(values))
        for number in _compared_with(name, [one for one in arguments if one is not tensors[-1]]):
            self._counted[name, number] += 1
            self.found.append(
                Comparison(
                    number, lowest, highest, bool((values == number).any()), name in _EQUALITIES,
                    not values.is_floating_point(), (name, number, self._counted[name, number]),
                )
            )  # fmt: skip


def compared_numbers(run: Callable[[], Any]) -> list[Comparison]:
    """Those of a run, in order."""
    with _ComparedNumbers() as mode:
        run()
    return mode.found
