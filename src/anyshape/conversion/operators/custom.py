"""A custom operator with a Python implementation is traced through it.

Recognised: every call, from Python, of an operator of the user's (`torch.library.custom_op`, `Library.define`) that
nobody translates. Put there: the Python function that eager runs for it, on the tensors of the trace, so that the
operators inside are traced; no fake kernel is needed. The same, because eager runs that very function. An operator with
a translation stays a single node; one with neither is named, with the user's line.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from anyshape.conversion.operators import custom_kernels
from anyshape.conversion.operators.repair import Repair, Used
from anyshape.conversion.translation_registry import is_translated
from anyshape.errors import AnyshapeError
from anyshape.results.finding import Span
from anyshape.source.stacks import span_of_recorded_stack
from anyshape.torchkit import custom_operators_operators
from anyshape.torchkit.reasons import is_known, reason_of


class UntranslatedOperatorError(Exception):
    """An operator that can be neither traced nor translated, the user's call of it, and why.

    Where it is `shapeless`, it has a translation, but torch cannot tell the shape of its result.
    """

    def __init__(self, overload: Any, span: Span | None, why: str, *, shapeless: bool = False) -> None:
        self.name: str = overload.name()
        self.overload = str(overload)
        """As it is found below `torch.ops`."""
        self.arguments = custom_operators_operators.written_arguments(overload)
        self.span, self.why, self.shapeless = span, why, shapeless
        super().__init__(f"`{self.name}` has no {'shape' if shapeless else 'ONNX translation'}; {why}")


_NOT_PYTHON = "its implementation is not in Python, so it cannot be traced"


class CustomOperators:
    """The custom operators of one trace; `table` holds the user's translations."""

    def __init__(self, table: Mapping[Any, Any], opset: int) -> None:
        self._translated = {
            overload.name() for key in table for overload in custom_operators_operators.overloads_of(key)
        }
        self._opset = opset
        self._known: dict[str, bool] = {}
        self._shapeless: set[str] = set()
        self._calls: dict[str, Span] = {}

    @property
    def repair(self) -> Repair:
        return Repair("custom operators", self._apply, always=True)

    @contextlib.contextmanager
    def _apply(self, used: Used) -> Iterator[None]:
        def answer(overload: Any, call: custom_operators_operators.Call) -> Any:
            return self._answer(overload, call, used)

        kept = [overload for overload in custom_operators_operators.custom_overloads() if self._is_translated(overload)]
        shapeless = [overload for overload in kept if not custom_kernels.has_shapes(overload)]
        self._shapeless = {overload.name() for overload in shapeless}
        with custom_operators_operators.answered(answer), custom_kernels.shaped_by_implementation(shapeless):
            yield

    def _is_translated(self, overload: Any) -> bool:
        name = overload.name()
        if name not in self._known:
            self._known[name] = name in self._translated or is_translated(overload, self._opset)
        return self._known[name]

    def _answer(self, overload: Any, call: custom_operators_operators.Call, used: Used) -> Any:
        if call.span is not None:
            self._calls.setdefault(overload.name(), call.span)
        if self._is_translated(overload):
            return self._kept(overload, call)
        run = custom_kernels.implementation(overload, call.args, call.kwargs)
        if run is None and custom_operators_operators.decomposes(overload):
            return call.plainly()
        try:
            result = call.plainly() if run is None else run()
        except AnyshapeError:
            raise  # an operator inside has no translation, or there are too many paths through it
        except Exception as error:
            if run is not None and is_known(error):
                raise  # a decision on sizes or values, which has findings of its own
            why = f"its Python implementation cannot be traced: {reason_of(error)}" if run else _NOT_PYTHON
            raise UntranslatedOperatorError(overload, call.span, why) from error
        if run is not None:
            used(f"{overload.name()}: traced through its Python implementation")
        return result

    def _kept(self, overload: Any, call: custom_operators_operators.Call) -> Any:
        """An operator that is translated as a whole; for a trace, its shapes are enough."""
        try:
            return call.plainly()
        except Exception as error:
            if overload.name() not in self._shapeless or is_known(error):
                raise
            why = f"on tensors without values it fails: {reason_of(error)}"
            raise UntranslatedOperatorError(overload, call.span, why, shapeless=True) from error

    def refuse_untranslated(self, program: torch.export.ExportedProgram) -> None:
        """Name an operator that is left in the program although nobody can translate it."""
        for part in program.graph_module.modules():
            for node in part.graph.nodes if isinstance(part, torch.fx.GraphModule) else ():
                target = node.target
                if (
                    not custom_operators_operators.is_custom(target)
                    or self._is_translated(target)
                    or custom_operators_operators.decomposes(target)
                ):
                    continue
                span = self._calls.get(target.name()) or span_of_recorded_stack(node.meta.get("stack_trace") or "")
                raise UntranslatedOperatorError(target, span, _NOT_PYTHON)
