"""Torch's own database of operators as models: each sample of an operator is a module, tensors, and other contents."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

DTYPES = (torch.float32, torch.int64, torch.bool)

UNINITIALISED = ("empty", "new_empty", "empty_like", "empty_strided", "empty_permuted", "new_empty_strided")
"""Their values are whatever stood in memory: as random as those that draw."""

OPEN_TIES = ("topk", "sort", "argsort", "kthvalue", "median", "nanmedian", "mode", "masked.median", "max", "min")
"""Which of equal values they point at is left open by PyTorch: places are not compared where values are alike."""


SORTED = {"bucketize": 1, "searchsorted": 0}
"""Which tensor must stay sorted: unsorted boundaries mean nothing to PyTorch, either."""


@dataclass(frozen=True)
class Sample:
    operator: str
    dtype: torch.dtype
    index: int
    function: Callable[..., Any]
    spec: Any
    leaves: tuple[Any, ...]

    @property
    def key(self) -> str:
        return f"{self.operator} {str(self.dtype).removeprefix('torch.')} {self.index}"

    def tensors(self) -> list[torch.Tensor]:
        return [leaf.detach().clone() for leaf in self.leaves if isinstance(leaf, torch.Tensor)]

    def module(self) -> torch.nn.Module:
        return _Call(self) if self.tensors() else _CallOfNothing(self)


class _Call(torch.nn.Module):
    """The operator with the sample's tensors as inputs and all else written down."""

    def __init__(self, sample: Sample) -> None:
        super().__init__()
        self.sample = sample

    def forward(self, *tensors: torch.Tensor) -> Any:
        given = iter(tensors)
        leaves = [next(given) if isinstance(leaf, torch.Tensor) else leaf for leaf in self.sample.leaves]
        first, args, kwargs = pytree.tree_unflatten(leaves, self.sample.spec)
        outputs = pytree.tree_leaves(self.sample.function(first, *args, **kwargs))
        return tuple(_real(one) for one in outputs if one is not None)


class _CallOfNothing(_Call):
    """Exporters ask for names of arguments, and there is none."""

    def forward(self) -> Any:
        return super().forward()


def _real(value: Any) -> Any:
    return torch.view_as_real(value) if isinstance(value, torch.Tensor) and value.is_complex() else value


def operators() -> dict[str, Any]:
    from torch.testing._internal.common_methods_invocations import op_db

    named = {f"{one.name}{f' ({one.variant_test_name})' if one.variant_test_name else ''}": one for one in op_db}
    return {name: one for name, one in named.items() if one.name not in UNINITIALISED and set(DTYPES) & one.dtypes}


def samples(name: str, info: Any, most: int = 5) -> Iterator[Sample]:
    """At most so many of floats, half as many of whole numbers, and one of truths where there is nothing else; spread
    over all that torch gives, the first among them.
    """
    for dtype, most_of_it in zip(DTYPES, (most, (most + 1) // 2, 1), strict=True):
        if dtype not in info.dtypes or (dtype == torch.bool and set(DTYPES[:2]) & info.dtypes):
            continue
        torch.manual_seed(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            given = list(info.sample_inputs("cpu", dtype, requires_grad=False))
        for index in sorted(
            {round(i * (len(given) - 1) / max(most_of_it - 1, 1)) for i in range(min(most_of_it, len(given)))}
        ):
            one = given[index]
            leaves, spec = pytree.tree_flatten((one.input, tuple(one.args), dict(one.kwargs)))
            yield Sample(name, dtype, index, info.op, spec, tuple(leaves))


def draws_itself(function: Any) -> bool:
    """Torch's tests set the seed of operators that draw."""
    return "wrapper_set_seed" in getattr(getattr(function, "__code__", None), "co_names", ())


def is_random(sample: Sample) -> bool:
    """Whether two calls draw different numbers; what fails does not draw."""
    results = []
    try:
        for seed in (1, 2):
            torch.manual_seed(seed)
            results.append([one for one in sample.module()(*sample.tensors()) if isinstance(one, torch.Tensor)])
        return any(not torch.equal(torch.nan_to_num(a), torch.nan_to_num(b)) for a, b in zip(*results, strict=True))
    except Exception:
        return False


# ---- other contents of the same shapes


def _with_one(value: float) -> Callable[[torch.Tensor], torch.Tensor]:
    def change(x: torch.Tensor) -> torch.Tensor:
        x = x.clone()
        if x.numel():
            x.view(-1)[x.numel() // 2] = value
        return x

    return change


def _ties(x: torch.Tensor) -> torch.Tensor:
    """Two values in turn, so that every row has equal ones."""
    flat = torch.arange(x.numel(), dtype=torch.float64) % 2
    return (flat + 1).reshape(x.shape).to(x.dtype)


def _signed_zeros(x: torch.Tensor) -> torch.Tensor:
    flat = torch.arange(x.numel()) % 2
    return torch.where(flat.reshape(x.shape) == 0, torch.tensor(-0.0, dtype=x.dtype), torch.tensor(0.0, dtype=x.dtype))


FLOATS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "as given": lambda x: x,
    "30 times": lambda x: x * 30,
    "negated": lambda x: -x,
    "zero": torch.zeros_like,
    "-0.0": _signed_zeros,
    "ties": _ties,
    "tiny": lambda x: x * 1e-30,
    "huge": lambda x: x * 1e30,
    "one NaN": _with_one(float("nan")),
    "one inf": _with_one(float("inf")),
    "one -inf": _with_one(float("-inf")),
}
WHOLE: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "as given": lambda x: x,
    "30 times": lambda x: x * 30,
    "negated": lambda x: -x,
    "zero": torch.zeros_like,
    "ties": _ties,
    "smallest": _with_one(torch.iinfo(torch.int64).min),
    "largest": _with_one(torch.iinfo(torch.int64).max),
}
TRUTHS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "as given": lambda x: x,
    "negated": torch.logical_not,
    "zero": torch.zeros_like,
    "ties": torch.ones_like,
}
CONTENTS = {torch.float32: FLOATS, torch.int64: WHOLE, torch.bool: TRUTHS}
FINITE = ("30 times", "negated", "zero", "-0.0", "ties", "tiny", "huge", "smallest", "largest")


def contents(sample: Sample) -> Iterator[tuple[str, list[torch.Tensor]]]:
    """Tensors of the sample's type change; indices, masks and lengths beside them stay."""
    for name, change in CONTENTS[sample.dtype].items():
        kept = SORTED.get(sample.operator)
        yield (
            name,
            [
                change(one.contiguous()) if one.dtype == sample.dtype and place != kept else one
                for place, one in enumerate(sample.tensors())
            ],
        )
