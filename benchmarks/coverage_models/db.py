"""Every case of torch's own database of export examples that takes and returns tensors."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch._export.db.examples import all_examples

from coverage_models.entry import Entry, dims_in, shape_of, under
from coverage_models.structure import flatten, named_call, rebuild

SKIPPED = {"scalar_output": "returns a number, no tensor"}
"""Cases that are no entries, and why."""

NOTATION: dict[str, dict[str, str]] = {
    "assume_constant_result": {"x": "n m"},
    "class_method": {"x": "n 4"},
    "cond_closed_over_variable": {"x": "n m"},
    "cond_operands": {"x": "n m", "y": "m"},
    "constrain_as_size_example": {},
    "dictionary": {"x": "n m"},
    "dynamic_shape_map": {"xs": "n m", "y": "m"},
    "dynamic_shape_view": {"x": "n 10"},
    "list_contains": {"x": "n 2"},
    "list_unpack": {"args.0": "n m"},
    "nested_function": {"a": "n m", "b": "m"},
    "optional_input": {},
    "tensor_setattr": {"x": "n m"},
}
"""Axes that are not simply `n m k` from the first."""

COLUMNS: dict[str, dict[str, tuple[int, ...]]] = {
    "dynamic_shape_assert": {"n": (3, 4, 7, 9)},
    "list_contains": {"n": (3, 1, 7, 9)},
    "cond_branch_nested_function": {"n": (3, 1, 9, 10, 15)},
    "cond_branch_nonlocal_variables": {"n": (6, 1, 5, 9)},
    "cond_predicate": {"k": (3, 1, 10, 11)},
    "unsupported_operator": {"n": (3, 1, 50, 150)},
}
USUAL = {"n": (3, 1, 2, 7), "m": (4, 1, 5, 2), "k": (5, 1, 2, 8)}

VALUES: dict[str, Callable[[], torch.Tensor]] = {
    "cond_closed_over_variable.pred": lambda: torch.rand(()) > 0.5,
    "constrain_as_size_example.x": lambda: torch.randint(0, 6, ()),
    "constrain_as_value_example.x": lambda: torch.randint(0, 6, ()),
    "dictionary.y": lambda: torch.randint(1, 9, ()),
}
"""Inputs without axes whose values callers choose; others keep the example's."""


def _dims(name: str, leaves: list[tuple[str, torch.Tensor]]) -> dict[str, str]:
    if name in NOTATION:
        return NOTATION[name]
    return {leaf: " ".join("nmk"[: tensor.ndim]) for leaf, tensor in leaves if tensor.ndim}


def _maker(case: Any, dims: Mapping[str, str], leaves: list[tuple[str, torch.Tensor]]) -> Callable[..., Any]:
    def tensors(sizes: Mapping[str, int]) -> Iterator[torch.Tensor]:
        for name, tensor in leaves:
            if name in dims:
                yield torch.randn(shape_of(dims[name], sizes))
            else:
                yield VALUES.get(f"{case.name}.{name}", tensor.clone)()

    def make(**sizes: int) -> dict[str, Any]:
        made = tensors(sizes)
        return {"args": rebuild(case.example_args, made), "kwargs": rebuild(case.example_kwargs, made)}

    return make


def entries() -> list[Entry]:
    found = []
    for name, case in sorted(all_examples().items()):
        if name in SKIPPED:
            continue
        leaves = named_call(case.model, case.example_args, case.example_kwargs)
        assert list(flatten(case.example_args)), f"{name} takes no tensor"
        dims = _dims(name, leaves)
        columns = {dim: COLUMNS.get(name, {}).get(dim, USUAL[dim]) for dim in dims_in(list(dims.values()))}
        make = _maker(case, dims, leaves)
        found.append(Entry(name, lambda case=case: copy.deepcopy(case.model), make, dims, columns))
    return under("db", found)
