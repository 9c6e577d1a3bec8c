"""Does the model run when these axes have other sizes? Asked in eager, often, and without a trace left behind.

Every axis of every tensor, and the value of every Python int, is a place with a size of its own. The content of a
probed call is the example's with its last slice repeated: nothing is drawn, so that the number of special tokens, the
order of positions and the kind of a mask stay what they were.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import nn

from anyshape.declaration.calls import Signature, flatten_outputs
from anyshape.declaration.resized_calls import LEVELS, Example, resize
from anyshape.declaration.resized_values import repeat_edge
from anyshape.declaration.targets import Target
from anyshape.model.oracle import run_once
from anyshape.sizes import budgets
from anyshape.sizes.notation import Expression
from anyshape.torchkit.capture import quiet
from anyshape.torchkit.defined_calls import DefinedCalls, calls_are_checked
from anyshape.torchkit.operation_count import counted_effort
from anyshape.torchkit.recorder import FunctionRecorder, tensors_in
from anyshape.torchkit.state import untouched

Place = tuple[str, int | None]
"""A leaf and one of its axes; None: the value of a Python int."""
Shapes = tuple[tuple[int, ...], ...]
_LAST_LEVEL = LEVELS - 1


@dataclass
class RunBudget:
    """How many runs; the clock ends only what has become absurd."""

    limit: int
    count: int = 0
    exhausted: bool = False
    is_late: bool = False
    work: float = 0.0
    """Of one run of the example."""
    deadline: float = field(default_factory=lambda: time.monotonic() + budgets.SECONDS_UNTIL_ABSURD)

    @classmethod
    def for_runs_of(cls, target: Target, signature: Signature, most: int) -> RunBudget:
        """Fewer runs where one is much work."""
        counted = counted_effort(lambda: run_once(target, signature))
        work = budgets.LITTLE_WORK if counted is None else counted.work
        return cls(
            min(most, max(budgets.FEWEST_RUNS_TO_FIND, int(budgets.WORK_TO_FIND_DIMS / max(work, 1)))), work=work
        )

    def is_spent(self) -> bool:
        self.is_late = self.is_late or time.monotonic() > self.deadline
        self.exhausted = self.exhausted or self.is_late or self.count >= self.limit
        return self.exhausted


class Prober:
    """Runs one call with some places at other sizes. What it was asked once it remembers."""

    def __init__(self, target: Target, signature: Signature, *, budget: RunBudget, is_quiet: bool = False) -> None:
        self.target = target
        self.signature = signature
        self.sizes: Mapping[Place, int] = sizes_of(signature)
        self.budget = budget
        self._hushed = contextlib.nullcontext if is_quiet else quiet
        self._dims = {place: f"p{number}" for number, place in enumerate(self.sizes)}
        self._remembered: dict[tuple[tuple[Place, int], ...], Shapes | None] = {}
        self._examples = [self._example_with(signature.values)]
        flipped = _with_flipped_masks(signature.values)
        if flipped is not None and self.accepts(flipped):
            self._examples.append(self._example_with(flipped))

    def runs(self, sizes: Mapping[Place, int]) -> bool:
        """Whether the model runs with these places at these sizes, and all others as in the example.

        False, too, where the answer is refused because the budget is spent.
        """
        return self.outputs(sizes) is not None

    def outputs(self, sizes: Mapping[Place, int]) -> Shapes | None:
        """The shapes of the outputs; None where the model does not run."""
        changed = tuple(sorted((p, s) for p, s in sizes.items() if s != self.sizes[p]))
        if any(size < 0 for _, size in changed):
            return None
        if changed not in self._remembered:
            if self.budget.is_spent():
                return None
            answers = [self._shapes_of_run(self.leaves(dict(changed), example)) for example in self._examples]
            self._remembered[changed] = answers[0] if all(answer is not None for answer in answers) else None
        return self._remembered[changed]

    def accepts(self, leaves: Mapping[str, Any]) -> bool:
        """Whether the model runs with these leaves."""
        return self._shapes_of_run(leaves) is not None

    def refuses_by_weight(self, sizes: Mapping[Place, int]) -> bool:
        """Whether the operator that fails at these sizes has a weight of the model among its operands."""
        watch = WeightWatch(self.target.module)
        with watch:
            self._shapes_of_run(self.leaves(sizes))
        return watch.blames_weight

    def leaves(self, sizes: Mapping[Place, int], example: Example | None = None) -> dict[str, Any]:
        """The leaves of the call at these sizes, the last slice repeated."""
        example = example or self._examples[0]
        inert = {name: value for name, value in example.leaves.items() if _is_inert(value)}
        # integers may speak of sizes, and need all that resizing knows; the rest is cut or repeated
        rest = replace(example, leaves={name: value for name, value in example.leaves.items() if name not in inert})
        resized = resize(rest, self._sizes_by_dim(sizes), ranges={}, level=_LAST_LEVEL)
        return {
            name: resized[name] if name in resized else _cut_or_repeated(name, inert[name], sizes)
            for name in example.leaves
        }

    def meaningful_leaves(self, sizes: Mapping[Place, int], level: int) -> dict[str, Any]:
        """The leaves of the call at these sizes, as a check would make them."""
        return resize(self._examples[0], self._sizes_by_dim(sizes), ranges={}, level=level)

    def _sizes_by_dim(self, sizes: Mapping[Place, int]) -> dict[str, int]:
        return {self._dims[place]: sizes.get(place, size) for place, size in self.sizes.items()}

    def _example_with(self, leaves: Mapping[str, Any]) -> Example:
        axes: dict[str, tuple[Expression | None, ...]] = {}
        scalars = {}
        for (leaf, axis), dim in self._dims.items():
            if axis is None:
                scalars[leaf] = Expression(dim)
            else:
                axes[leaf] = (*axes.get(leaf, ()), Expression(dim))
        return Example(leaves, axes, scalars, {self._dims[place]: size for place, size in self.sizes.items()})

    def _shapes_of_run(self, leaves: Mapping[str, Any]) -> Shapes | None:
        self.budget.count += 1
        copies = {name: value.clone() if isinstance(value, torch.Tensor) else value for name, value in leaves.items()}
        try:
            args, kwargs = self.signature.build(copies)  # not of complex numbers in threes
            with (
                self._hushed(), untouched(self.target.module), torch.no_grad(), calls_are_checked(), DefinedCalls()
            ):  # fmt: skip
                torch.default_generator.manual_seed(0)  # other devices are not probed
                outputs = flatten_outputs(self.target.call(*args, **kwargs))
                return tuple(tuple(getattr(value, "shape", ())) for _, value in outputs)
        except Exception:  # noqa: BLE001  the user's own model: whatever it raises, it does not run there
            return None


def sizes_of(signature: Signature) -> dict[Place, int]:
    """Every place of a call and its size; a flag is no size, nor is a negative number."""
    found: dict[Place, int] = {}
    for leaf in signature.leaves:
        if leaf.is_tensor:
            found |= {(leaf.name, axis): size for axis, size in enumerate(leaf.value.shape)}
        elif type(leaf.value) is int and leaf.value >= 0:
            found[leaf.name, None] = leaf.value
    return found


def argument_of(leaf: str) -> str:
    """The argument that a leaf stands in: `cache` of `cache.0.key`."""
    return leaf.partition(".")[0]


def _is_inert(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.dtype == torch.bool)


def _cut_or_repeated(name: str, value: torch.Tensor, sizes: Mapping[Place, int]) -> torch.Tensor:
    shape = [sizes.get((name, axis), size) for axis, size in enumerate(value.shape)]
    if list(value.shape) == shape:
        return value
    return repeat_edge(value, shape) if value.numel() else value.new_zeros(shape)


def _with_flipped_masks(leaves: Mapping[str, Any]) -> dict[str, Any] | None:
    """The leaves with each mask that is the same everywhere flipped in its last column: `if mask.any()` is entered."""
    masks = {name: _flipped_mask(value) for name, value in leaves.items() if _is_constant_mask(value)}
    return {**leaves, **masks} if masks else None


def _is_constant_mask(value: Any) -> bool:
    is_mask = isinstance(value, torch.Tensor) and value.dtype == torch.bool and value.numel() > 1
    return is_mask and (bool(value.all()) or not bool(value.any()))


def _flipped_mask(mask: torch.Tensor) -> torch.Tensor:
    flipped = mask.clone()
    flipped[..., -1] = ~flipped[..., -1]
    return flipped


# ---- an axis that a weight fixes needs no search: seen by the operator that refuses another size

_OF_ONE_INPUT = frozenset(
    (
        "linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "embedding",
        "layer_norm", "batch_norm", "group_norm", "instance_norm", "rms_norm", "matmul", "addmm", "add", "mul", "sub",
        "div", "__matmul__", "__rmatmul__", "__add__", "__radd__", "__iadd__", "__mul__", "__rmul__", "__sub__",
        "__truediv__",
    )
)  # fmt: skip
"""Operators of one input and a weight; in `bilinear` or `einsum` beside the weight stand several inputs."""


class WeightWatch(FunctionRecorder):
    """Remembers whether the operator that failed has a weight among its operands."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self._weights = {id(tensor) for tensor in itertools.chain(module.parameters(), module.buffers())}
        self.blames_weight = False

    def failed(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        fixes = any(id(tensor) in self._weights for tensor in tensors_in((args, kwargs)))
        self.blames_weight = fixes and getattr(func, "__name__", "") in _OF_ONE_INPUT
