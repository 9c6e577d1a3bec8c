"""One trace of the adapter by torch.export, and what it assumed about sizes, in the user's dims."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import sympy
import torch

from anyshape.conversion.control_flow.forks import Decision
from anyshape.conversion.speed.known_results import known_results
from anyshape.declaration.spec import Spec
from anyshape.results.attempt import Guard, PinnedByTrace
from anyshape.sizes import expressions
from anyshape.sizes.notation import Expression
from anyshape.torchkit import capture
from anyshape.torchkit.schemas import is_view


def trace(adapter: torch.nn.Module, leaves: Sequence[tuple[str, Any]], spec: Spec) -> torch.export.ExportedProgram:
    """Trace at the sizes of these leaves with every declared axis dynamic."""
    dynamic = [_open_axes(name, value, spec) for name, value in leaves]
    return export_program(adapter, tuple(value for _, value in leaves), dynamic)


def export_program(
    adapter: torch.nn.Module, values: tuple[Any, ...], dynamic: list[Any]
) -> torch.export.ExportedProgram:
    """A trace that is told what is known of its results."""
    with known_results():
        return capture.export_program(adapter, values, dynamic)


def _open_axes(name: str, value: Any, spec: Spec) -> Any:
    anything = torch.export.Dim.DYNAMIC
    if isinstance(value, torch.Tensor):
        return {axis: anything for axis, expression in enumerate(spec.axes.get(name, ())) if expression is not None}
    return anything if name in spec.scalars else None


def meaning_of(recorder: capture.Recorder, names: Sequence[str], spec: Spec) -> dict[sympy.Symbol, Expression]:
    """What each symbol of the trace is, from the input axis that it was made for."""
    meaning = {}
    for symbol, (leaf, axis) in recorder.sources.items():
        if leaf >= len(names):
            continue
        name = names[leaf]
        expression = spec.scalars.get(name) if axis is None else spec.axes[name][axis]
        if expression is not None:
            meaning[symbol] = expression
    return meaning


def guards_of(recorder: capture.Recorder, meaning: expressions.Meaning) -> tuple[Guard, ...]:
    """The assumptions that speak of declared dims, each once."""
    found: dict[str, Guard] = {}
    for assumption in recorder.assumptions:
        condition = assumption.condition
        if condition.free_symbols & set(meaning):
            guard = Guard(condition, meaning, expressions.to_condition(condition, meaning), assumption.span)
            found.setdefault(str(guard.condition or condition), guard)
    return tuple(found.values())


def branches_of(decisions: Iterable[Decision], meaning: expressions.Meaning) -> tuple[Guard, ...]:
    """The conditions by which the file parts, of sizes and of values."""
    return tuple(
        Guard(one.condition, meaning, expressions.to_condition(one.condition, meaning), one.span) for one in decisions
    )


def pins_of(recorder: capture.Recorder, meaning: expressions.Meaning) -> tuple[PinnedByTrace, ...]:
    """The dims that the trace replaced by a number."""
    found: dict[str, PinnedByTrace] = {}
    for event in recorder.specialisations:
        expression = meaning.get(event.symbol)
        if expression is not None and expression.is_name and isinstance(event.value, sympy.Integer):
            found.setdefault(expression.text, PinnedByTrace(expression.text, int(event.value), event.span))
    return tuple(found.values())


def output_expressions(
    program: torch.export.ExportedProgram, meaning: expressions.Meaning
) -> tuple[tuple[Expression | None, ...], ...]:
    """The size of every axis of every output, as far as it has an expression."""
    rows = []
    for node in program.graph.output_node().args[0]:
        value = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
        shape = value.shape if isinstance(value, torch.Tensor) else ()
        rows.append(tuple(expressions.to_expression(size, meaning) for size in shape))
    mutated = len(rows) - len(program.graph_signature.user_outputs)
    return tuple(rows[mutated:])


def operators_of(program: torch.export.ExportedProgram) -> Counter[str]:
    """The operators that compute something, and how often each is called."""
    return Counter(
        str(node.target) for node in program.graph.nodes if node.op == "call_function" and not is_view(node.target)
    )


def decides(program: torch.export.ExportedProgram) -> bool:
    """Whether a program reads a value as a number, or holds programs inside of it."""
    return any("unbacked_bindings" in node.meta or node.op == "get_attr" for node in program.graph.nodes)
