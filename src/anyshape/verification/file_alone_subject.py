"""A file without its model, run on made-up inputs and judged by what it promises itself."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from anyshape.bench.plan import Sizes
from anyshape.errors import DeclarationError
from anyshape.onnxfile.contract import Contract
from anyshape.onnxfile.interface import Interface, broken_promise
from anyshape.results.verification import Check, Failure
from anyshape.runtime.made_up_inputs_calls import Calls
from anyshape.runtime.session import RuntimeFailureError, Session
from anyshape.sizes.notation import parse_expression

MOST_ELEMENTS = 2**26
"""Of all inputs together: the sizes stand in a file that nobody vouches for."""
_CONTENTS = 3


@dataclass(frozen=True)
class Subject:
    """The loaded file and what it promises."""

    session: Session
    interface: Interface
    calls: Calls
    contract: Contract | None
    judged: dict[tuple[int, ...], Check | Failure] = field(default_factory=dict)

    def volume(self, sizes: Sizes) -> int:
        shapes = self.calls.shapes(sizes) or {}
        return sum(math.prod(max(size, 1) for size in shape) for shape in shapes.values())

    def judge(self, sizes: Sizes) -> Check | Failure:
        """The file at one size, remembered: limits ask for the same sizes again."""
        key = tuple(sizes.values())
        if key not in self.judged:
            self.judged[key] = self._judge(dict(sizes))
        return self.judged[key]

    def _judge(self, sizes: Sizes) -> Check | Failure:
        shapes = self.calls.shapes(sizes)
        if shapes is None or self.volume(sizes) > MOST_ELEMENTS:
            return Failure(sizes, 0, "runtime-error", None, "has no inputs of this size that could be made")
        first: Failure | None = None
        for content in range(_CONTENTS):
            judged = self._judge_content(sizes, shapes, content)
            if not (isinstance(judged, Failure) and judged.rule == "runtime-error"):
                return judged
            first = first or judged
        assert first is not None
        return first

    def _judge_content(self, sizes: Sizes, shapes: Mapping[str, tuple[int, ...]], content: int) -> Check | Failure:
        try:
            results = self.session.run(self.calls.make(shapes, content))
        except RuntimeFailureError as failure:
            return Failure(sizes, content, "runtime-error", None, f"fails in ONNX Runtime: {failure}")
        given = [tuple(getattr(result, "shape", ())) for result in results]  # a sequence or a map has no shape
        broken = broken_promise(self.interface, shapes, given) or self._broken_formula(sizes, given)
        if broken is not None:
            return Failure(sizes, content, "mislabelled-dim", broken[0], f"`{broken[0]}` {broken[1]}")
        return Check(sizes, content, 0.0)

    def _broken_formula(self, sizes: Sizes, given: Sequence[tuple[int, ...]]) -> tuple[str, str] | None:
        """The contract may hold more than the labels: the formula behind each of them."""
        formulas = self.contract.outputs if self.contract is not None else {}
        for port, shape in zip(self.interface.outputs, given, strict=True):
            for axis, (formula, size) in enumerate(zip(formulas.get(port.name, ()), shape, strict=False)):
                if (expected := _value(formula, sizes)) not in (None, size):
                    return port.name, f"is promised `{formula}` = {expected} on axis {axis} but has shape {shape}"
        return None


def _value(formula: str, sizes: Sizes) -> int | None:
    try:
        return parse_expression(formula).value(sizes)
    except (DeclarationError, KeyError, ZeroDivisionError):
        return None


def as_error(judged: Check | Failure) -> Exception | None:
    return (
        RuntimeFailureError(judged.sentence) if isinstance(judged, Failure) and judged.rule == "runtime-error" else None
    )
