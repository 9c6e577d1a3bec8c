"""The user's line from which the first wrong result of a file comes.

A node of the file knows its line, and so does every result of a run in eager. The last floating result of a line in the
file must be among the results of that line in eager; the first line for which it is not is where the file goes wrong.
Where the runtime fails altogether, the first node that cannot be run is found by bisection.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx
import torch

from anyshape.model.oracle import Outcome
from anyshape.results.verification import Failure
from anyshape.runtime.session import RuntimeFailureError
from anyshape.sizes import budgets
from anyshape.source.spans import Span, span_of_node
from anyshape.verification.model_reference import ModelChecker


@dataclass(frozen=True)
class WrongNode:
    """The first node that is wrong, and the user's line that it came from, where known."""

    node: str
    operator: str
    span: Span | None
    trouble: str = "differs"

    def __str__(self) -> str:
        return f"first node that {self.trouble}: `{self.node}` ({self.operator})"


def first_difference(model: onnx.ModelProto, checker: ModelChecker, failure: Failure) -> WrongNode | None:
    """Where the file goes wrong at a failing size; None where that cannot be told, or would cost too much."""
    return difference_with(model, checker, checker.reference.run(failure.sizes, failure.content), failure.rule)


def difference_with(model: onnx.ModelProto, checker: ModelChecker, outcome: Outcome, rule: str) -> WrongNode | None:
    """The same for a call that was made, and the rule that the file breaks there."""
    is_large = len(model.graph.node) > budgets.MOST_NODES_TO_SEARCH or model.ByteSize() > budgets.MOST_BYTES_TO_SEARCH
    if is_large or any(tensor.data_location == onnx.TensorProto.EXTERNAL for tensor in model.graph.initializer):
        return None
    search = _SEARCHES.get(rule)
    if search is None or not outcome.runs:
        return None
    try:
        return search(model, checker, outcome)
    except RuntimeFailureError:
        return None


# ---- a runtime error


def _first_that_fails(model: onnx.ModelProto, checker: ModelChecker, outcome: Outcome) -> WrongNode | None:
    nodes = model.graph.node
    runs, fails = -1, len(nodes)
    while fails - runs > 1:
        middle = (runs + fails) // 2
        if _runs_up_to(model, middle, checker, outcome):
            runs = middle
        else:
            fails = middle
    return None if fails == len(nodes) else replace(_place_of(nodes[fails]), trouble="fails")


def _runs_up_to(model: onnx.ModelProto, index: int, checker: ModelChecker, outcome: Outcome) -> bool:
    head = onnx.ModelProto()
    head.CopyFrom(model)
    del head.graph.node[index + 1 :]  # the runtime runs every node that is there, used or not
    try:
        _run_with_outputs(head, [name for name in head.graph.node[-1].output if name], checker, outcome)
    except RuntimeFailureError:
        return False
    return True


# ---- other values


def _first_that_differs(model: onnx.ModelProto, checker: ModelChecker, outcome: Outcome) -> WrongNode | None:
    # nodes that no line of the user's made (constants, casts between types) have nothing to be compared with
    candidates = [node for node in model.graph.node if span_of_node(node) is not None and node.output]
    values = _values_of(model, [node.output[0] for node in candidates], checker, outcome)
    eager: dict[tuple[str, int], list[torch.Tensor]] = {}
    try:
        floating = checker.reference.oracle.floating_results(outcome)
    except Exception:  # noqa: BLE001  the user's own model, which may not run with gradients on
        return None
    for span, tensor in floating:
        eager.setdefault((span.path, span.line), []).append(tensor)
    last: dict[tuple[str, int], tuple[onnx.NodeProto, torch.Tensor]] = {}
    for node in candidates:
        place, value = span_of_node(node), values.get(node.output[0])
        if place is not None and value is not None and value.is_floating_point():
            last[place.path, place.line] = (node, value)
    for line, results in eager.items():
        if line in last and not any(_are_alike(last[line][1], result) for result in results):
            return _place_of(last[line][0])
    return None


def _are_alike(value: torch.Tensor, result: torch.Tensor) -> bool:
    if value.numel() != result.numel() or sorted(value.shape) != sorted(result.shape):
        return False
    if value.shape != result.shape:  # a layout that the runtime prefers
        return torch.allclose(value.double().sum(), result.double().sum(), rtol=1e-3, atol=1e-4)
    scale = float(result.abs().nan_to_num(0.0, 0.0, 0.0).max()) if result.numel() else 0.0
    return torch.allclose(value.double(), result.double(), rtol=1e-3, atol=1e-4 * max(scale, 1e-6), equal_nan=True)


def _values_of(
    model: onnx.ModelProto, names: Sequence[str], checker: ModelChecker, outcome: Outcome
) -> dict[str, torch.Tensor]:
    found = _run_with_outputs(model, names, checker, outcome).items()
    arrays = [(name, value) for name, value in found if isinstance(value, np.ndarray)]
    return {name: torch.from_numpy(value) for name, value in arrays if value.dtype.kind in "fiub"}


def _run_with_outputs(
    model: onnx.ModelProto, names: Sequence[str], checker: ModelChecker, outcome: Outcome
) -> dict[str, np.ndarray[Any, Any]]:
    """Run a copy of the model that returns these inner values."""
    twin = onnx.ModelProto()
    twin.CopyFrom(model)
    del twin.graph.output[:]
    del twin.graph.value_info[:]
    twin.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    # the runtime may fuse what is asked for: a session with these values as outputs keeps them
    session = checker.session.reopened(twin.SerializeToString())
    return dict(zip(names, session.run(checker.reference.inputs(outcome)), strict=True))


_SEARCHES = {"runtime-error": _first_that_fails, **dict.fromkeys(("wrong-values", "wrong-shape"), _first_that_differs)}
"""What is searched for, by the rule that a file breaks."""


# ---- where a node came from


def _place_of(node: onnx.NodeProto) -> WrongNode:
    return WrongNode(node.name or node.output[0], node.op_type, span_of_node(node))
