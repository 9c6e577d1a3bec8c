"""From a job to a candidate by torch's exporters: by torch.export and torch's translation, with a record of what both
assumed, or by the older one.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import onnx_ir as ir
import sympy
import torch
from torch.onnx.errors import SymbolicValueError

from anyshape.conversion.candidates import Candidate, Conversion, Job
from anyshape.conversion.control_flow.forks import Decision, Forks
from anyshape.conversion.control_flow.lowering import lower_regions
from anyshape.conversion.control_flow.samples import Samples, Table
from anyshape.conversion.graph.known_sizes import DeclaredAxis
from anyshape.conversion.graph.recurrent_weights import lay_out_weights
from anyshape.conversion.graph.rewrites import rewrite
from anyshape.conversion.graph.runtime_gaps import keep_pads_of_pools, spread_rotary_tables
from anyshape.conversion.operators.custom import CustomOperators
from anyshape.conversion.operators.repair import Acted, Repair, applied
from anyshape.conversion.speed.alike_parts import repeated_parts
from anyshape.conversion.speed.known_results import known_results, layouts_unasked, lines_unread, plain_maxima
from anyshape.conversion.translation import Translation, named_operator, translate_program
from anyshape.declaration.spec import Spec
from anyshape.garbage import uncollected
from anyshape.onnxfile.temporary_folders import temporary_folder
from anyshape.results.attempt import Attempt, Guard, MadeOfDim, PinnedByTrace, UntranslatedOperatorError
from anyshape.sizes import budgets, expressions
from anyshape.sizes.notation import Expression
from anyshape.source.live_code import literals_in
from anyshape.source.spans import Span, span_of_error, steps_of_error
from anyshape.torchkit import capture
from anyshape.torchkit.patches import replaced
from anyshape.torchkit.reasons import reason_of
from anyshape.torchkit.schemas import is_view
from anyshape.torchkit.state import put_back

_log = logging.getLogger(__name__)


def by_export(
    job: Job, name: str, repairs: Sequence[Repair], *, both_sides: bool = False, copying: bool = False
) -> tuple[Candidate | None, Attempt, Acted]:
    """One try; with `both_sides` the trace takes every branch both ways, with `copying` parts alike are traced once."""
    start = time.monotonic()
    custom = CustomOperators(job.extra.get("custom_translation_table", {}), job.opset)
    with (
        capture.recording() as recorder,
        applied((*repairs, custom.repair)) as acted,
        capture.texts_noted(recorder),
        _forks_of(job, recorder, both_sides=both_sides) as forks,
        uncollected(),
    ):
        program = None
        try:
            with repeated_parts(wanted=copying) as copied:
                program = _program_of(job, forks)
            custom.refuse_untranslated(program)
            meaning = meaning_of(recorder, job.names, job.spec)
            outputs, operators = output_expressions(program, meaning), operators_of(program)
            translation = _translation_of(program, job)
        except Exception as error:  # noqa: BLE001  an attempt: kept and shown
            meaning = meaning_of(recorder, job.names, job.spec)
            pins, guards = pins_of(recorder, meaning), guards_of(recorder, meaning)
            named = named_operator(error, job.opset)
            cause = cause_of(named, pins)
            made = made_of(recorder, meaning) + (() if program is not None else _unrecorded_uses(error, job))
            return None, Attempt(name, "failed", cause, time.monotonic() - start, named, pins, guards, made), acted
    branches = branches_of(forks.branches.values(), meaning) if forks else ()
    if branches:
        acted.note(_sentence_about(branches))
    guards, pins = guards_of(recorder, meaning), pins_of(recorder, meaning)
    made, seconds = made_of(recorder, meaning), time.monotonic() - start
    attempt = Attempt(
        name, "converted", "", seconds, None, pins, guards, made, translation.forced_by, translation.inlined,
        tuple(copied),
    )  # fmt: skip
    candidate = Candidate(
        translation.model, job.opset, guards, branches, operators, outputs,
        repairs=tuple(acted.sentences), suspects=tuple(sorted(acted.suspects)), texts=tuple(recorder.texts),
        made=made,
        # a program with several paths is translated with the knowledge of its trace
        program=None if both_sides else program,
    )  # fmt: skip
    return candidate, attempt, acted


def assumptions_at(job: Job, repairs: Sequence[Repair]) -> tuple[Guard, ...]:
    """What a trace at the job's sizes assumes, as far as it comes."""
    custom = CustomOperators(job.extra.get("custom_translation_table", {}), job.opset)
    with (
        capture.recording() as recorder,
        applied((*repairs, custom.repair)),
        uncollected(),
        contextlib.suppress(Exception),  # what was asked up to there is known all the same
    ):
        trace(job.adapter, job.leaves, job.spec)
    return guards_of(recorder, meaning_of(recorder, job.names, job.spec))


def operators_at(job: Job, repairs: Sequence[Repair]) -> Counter[str] | None:
    """What a trace at the job's very sizes calls, with none of them left open; None where it does not come through, or
    keeps something for the run to decide.
    """
    custom = CustomOperators(job.extra.get("custom_translation_table", {}), job.opset)
    values = tuple(value for _, value in job.leaves)
    try:
        with applied((*repairs, custom.repair)), uncollected():
            program = export_program(job.adapter, values, [None for _ in values])
    except Exception:  # noqa: BLE001  whatever it is
        return None
    return None if decides(program) else operators_of(program)


@contextlib.contextmanager
def _forks_of(job: Job, recorder: capture.Recorder, *, both_sides: bool) -> Iterator[Forks | None]:
    if not both_sides:
        yield None
        return
    from anyshape.conversion.control_flow.module_paths import branching  # few models need it

    table = Table(job.spread(), recorder.sources, partial(meaning_of, recorder, job.names, job.spec))
    with branching(job.adapter, Samples.of(table), recorder) as forks:
        yield forks


def _program_of(job: Job, forks: Forks | None) -> torch.export.ExportedProgram:
    """Once; anew where the sides of a branch turn out to meet only further out than they were run."""
    for _ in range(budgets.MOST_TRACES):
        try:
            return trace(job.adapter, job.leaves, job.spec)
        except Exception:
            if forks is None or not forks.begin_anew():
                raise
    return trace(job.adapter, job.leaves, job.spec)


def _sentence_about(branches: Sequence[Guard]) -> str:
    spans = sorted({(branch.span.path, branch.span.line) for branch in branches if branch.span is not None})
    places = ", ".join(f"{path}:{line}" for path, line in spans)
    count = "1 branch" if len(branches) == 1 else f"{len(branches)} branches"
    return f"{count} kept as If: {places}"


def _translation_of(program: torch.export.ExportedProgram, job: Job) -> Translation:
    translation = translate_program(program, job.opset, job.extra)
    model = translation.model
    spread_rotary_tables(model)  # its nodes are given names that differ in all graphs when regions are lowered
    keep_pads_of_pools(model)
    lower_regions(model)
    lay_out_weights(model)
    if not (job.rewrites and job.extra.get("optimize", True)):
        return translation
    try:
        rewrite(model, [_declared_axes(job, name) for name in job.names])
    except Exception:  # noqa: BLE001  a faster file is no reason to have none
        _log.exception("a rewrite failed; the file is written without")
        return _translation_of(program, replace(job, rewrites=False))
    return translation


def _declared_axes(job: Job, name: str) -> list[DeclaredAxis | None]:
    """What the axes of an input were declared as, and how small each may be; an expression may be anything."""
    return [
        None if axis is None else DeclaredAxis(str(axis), job.spec.ranges[axis.text].nearest(0) if axis.is_name else 0)
        for axis in job.spec.axes.get(name, ())
    ]


def translate_again(job: Job, name: str, candidate: Candidate) -> Conversion:
    """The candidate's own program in the form that the job asks for."""
    assert candidate.program is not None
    start = time.monotonic()
    try:
        model = _translation_of(candidate.program, job).model
    except Exception as error:  # noqa: BLE001  an attempt: kept and shown
        return None, Attempt(name, "failed", cause_of(error), time.monotonic() - start, error)
    return replace(candidate, model=model, opset=job.opset), Attempt(name, "converted", "", time.monotonic() - start)


def cause_of(error: BaseException, pins: Sequence[PinnedByTrace] = ()) -> str:
    """One line about why a strategy failed: the dims that it pinned, or what torch said."""
    if pins:
        return "; ".join(f"`{pin.dim}` became {pin.size}" + (f" at {pin.span}" if pin.span else "") for pin in pins)
    return str(error) if isinstance(error, UntranslatedOperatorError) else reason_of(error)


# ---- one trace by torch.export, and what it assumed about sizes, in the user's dims


def trace(adapter: torch.nn.Module, leaves: Sequence[tuple[str, Any]], spec: Spec) -> torch.export.ExportedProgram:
    """Trace at the sizes of these leaves with every declared axis dynamic."""
    dynamic = [_open_axes(name, value, spec) for name, value in leaves]
    return export_program(adapter, tuple(value for _, value in leaves), dynamic)


def export_program(
    adapter: torch.nn.Module, values: tuple[Any, ...], dynamic: list[Any]
) -> torch.export.ExportedProgram:
    """A trace that is told what is known of its results."""
    with known_results(), layouts_unasked(), lines_unread(), plain_maxima():
        return capture.export_program(adapter, values, dynamic)


def _open_axes(name: str, value: Any, spec: Spec) -> Any:
    anything = torch.export.Dim.DYNAMIC
    if isinstance(value, torch.Tensor):
        return dict.fromkeys(_varying_axes(name, spec), anything)
    return anything if name in spec.scalars else None


def _varying_axes(name: str, spec: Spec) -> list[int]:
    return [axis for axis, expression in enumerate(spec.axes.get(name, ())) if expression is not None]


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
        if assumption.condition.free_symbols & set(meaning):
            guard = _guard_of(assumption, meaning)
            found.setdefault(str(guard.condition or assumption.condition), guard)
    return tuple(found.values())


def _guard_of(one: capture.RecordedAssumption | Decision, meaning: expressions.Meaning) -> Guard:
    decides = isinstance(one, Decision) or one.decides
    return Guard(one.condition, meaning, expressions.to_condition(one.condition, meaning), one.span, decides)


def branches_of(decisions: Iterable[Decision], meaning: expressions.Meaning) -> tuple[Guard, ...]:
    """The conditions by which the file parts, of sizes and of values."""
    return tuple(_guard_of(one, meaning) for one in decisions)


def pins_of(recorder: capture.Recorder, meaning: expressions.Meaning) -> tuple[PinnedByTrace, ...]:
    """The dims that the trace replaced by a number."""
    found: dict[str, PinnedByTrace] = {}
    for event in recorder.specialisations:
        expression = meaning.get(event.symbol)
        if expression is not None and expression.is_name and isinstance(event.value, sympy.Integer):
            pin = PinnedByTrace(expression.text, int(event.value), event.span, event.literals)
            found.setdefault(expression.text, pin)
    return tuple(found.values())


def made_of(recorder: capture.Recorder, meaning: expressions.Meaning) -> tuple[MadeOfDim, ...]:
    """The numbers and texts that code made of dims, each once."""
    found: dict[tuple[str, str, Span | None], MadeOfDim] = {}
    for event in recorder.sizes_in_python:
        spoken = [meaning[symbol] for symbol in event.symbols if isinstance(symbol, sympy.Symbol) and symbol in meaning]
        for dim in sorted({name for expression in spoken for name in expression.names}):
            found[event.what, dim, event.span] = MadeOfDim(event.what, dim, event.span, event.literals)
    return tuple(found.values())


def _unrecorded_uses(error: BaseException, job: Job) -> tuple[MadeOfDim, ...]:
    """A trace that does not come to its end has no record of what is done with any dim from there on."""
    span, steps = span_of_error(error), steps_of_error(error)
    literals = frozenset(literals_in(step.tb_frame.f_code for step in steps))
    return tuple(MadeOfDim("use", dim, span, literals) for dim in job.spec.ranges)


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


# ---- torch's older exporter: it runs the module on real tensors and writes down what they went through


def by_torchscript(job: Job, name: str) -> Conversion:
    start = time.monotonic()
    opset = min(job.opset, capture.newest_torchscript_opset())
    if any(not isinstance(value, torch.Tensor) for _, value in job.leaves):
        reason = "TorchScript cannot take a Python number as an input"
        return None, Attempt(name, "failed", reason, time.monotonic() - start)
    if any(value.numel() == 0 for _, value in job.leaves):
        # its inference of shapes divides by an empty size, in C++, and the process ends
        return None, Attempt(name, "failed", "TorchScript cannot take an empty input", time.monotonic() - start)
    try:
        model = torchscript_model(job, opset)
    except Exception as error:  # noqa: BLE001  an attempt: kept and shown
        return None, Attempt(name, "failed", cause_of(error), time.monotonic() - start, error)
    attempt = Attempt(name, "converted", "", time.monotonic() - start)
    return Candidate(model, opset, records_guards=False), attempt


def torchscript_model(job: Job, opset: int) -> ir.Model:
    """The job as this exporter writes it; inputs are called `input_<index>`, and unused ones are left out."""
    names = [f"input_{index}" for index in range(len(job.leaves))]
    dynamic_axes = {
        name: {axis: f"{name}_{axis}" for axis in _varying_axes(leaf, job.spec)}
        for name, leaf in zip(names, job.names, strict=True)
    }

    def arguments() -> tuple[torch.Tensor, ...]:
        """Copies: each run writes to what it is given, where the model does."""
        return tuple(value.detach().clone() for _, value in job.leaves)

    with temporary_folder() as folder, capture.quiet(), _without_log(), _symbolics(opset), put_back(job.adapter):
        path = folder / "model.onnx"
        # with gradients on, attention layers do not take the fast path that this exporter cannot translate
        with torch.enable_grad():
            with put_back(job.adapter):
                traceable = _traceable(job.adapter, arguments())
            torch.onnx.export(
                traceable, arguments(), str(path), dynamo=False, input_names=names,
                dynamic_axes=dynamic_axes, opset_version=opset, verbose=False,
            )  # fmt: skip
        model = ir.load(path)
        ir.external_data.load_to_model(model)
    return model


def _traceable(adapter: torch.nn.Module, arguments: tuple[Any, ...]) -> torch.nn.Module:
    """The adapter, traced before where it holds TorchScript: the exporter's own trace knows no modules inside of it.

    What TorchScript decides by itself stays in that trace as branches and loops.
    """
    if not any(isinstance(part, torch.jit.ScriptModule) for part in adapter.modules()):
        return adapter
    return torch.jit.trace(adapter, arguments, check_trace=False)  # type: ignore[no-any-return]


def _is_one_of(graph: Any, items: Any, element: Any) -> Any:
    """`x.dim() in (1, 2)`, as recurrent cells ask: torch's own knows no list that became a constant before."""
    if items.node().kind() != "onnx::Constant":
        raise SymbolicValueError("Unsupported: `in` a list of numbers that are not known", items)
    is_same = graph.op("Cast", graph.op("Equal", items, element), to_i=ir.DataType.INT64.value)
    return graph.op("Cast", graph.op("ReduceMax", is_same, keepdims_i=0), to_i=ir.DataType.BOOL.value)


def _gates(graph: Any, values: Any, weight: Any, bias: Any, count: int) -> list[Any]:
    made = graph.op("MatMul", values, graph.op("Transpose", weight, perm_i=(1, 0)))
    made = made if bias.node().mustBeNone() else graph.op("Add", made, bias)
    counted = {"num_outputs_i": count} if graph.opset >= 18 else {}
    return list(graph.op("Split", made, axis_i=-1, outputs=count, **counted)) if count > 1 else [made]


def _sums(graph: Any, x: Any, h: Any, weights: Sequence[Any], count: int) -> list[Any]:
    given, kept = _gates(graph, x, weights[0], weights[2], count), _gates(graph, h, weights[1], weights[3], count)
    return [graph.op("Add", *pair) for pair in zip(given, kept, strict=True)]


def _plain_cell(activation: str) -> Callable[..., Any]:
    def cell(graph: Any, x: Any, h: Any, *weights: Any) -> Any:
        return graph.op(activation, *_sums(graph, x, h, weights, 1))

    return cell


def _gru_cell(graph: Any, x: Any, h: Any, *weights: Any) -> Any:
    given, kept = _gates(graph, x, weights[0], weights[2], 3), _gates(graph, h, weights[1], weights[3], 3)
    reset, update = (
        graph.op("Sigmoid", graph.op("Add", one, two)) for one, two in zip(given[:2], kept[:2], strict=True)
    )
    new = graph.op("Tanh", graph.op("Add", given[2], graph.op("Mul", reset, kept[2])))
    return graph.op("Add", new, graph.op("Mul", update, graph.op("Sub", h, new)))


def _lstm_cell(graph: Any, x: Any, states: Any, *weights: Any) -> Any:
    h, c = states.node().inputs()
    enter, keep, new, leave = _sums(graph, x, h, weights, 4)
    kept = graph.op("Mul", graph.op("Sigmoid", keep), c)
    state = graph.op("Add", kept, graph.op("Mul", graph.op("Sigmoid", enter), graph.op("Tanh", new)))
    return graph.op("Mul", graph.op("Sigmoid", leave), graph.op("Tanh", state)), state


_SYMBOLICS: dict[str, Callable[..., Any]] = {
    "aten::__contains_": _is_one_of, "aten::rnn_tanh_cell": _plain_cell("Tanh"),
    "aten::rnn_relu_cell": _plain_cell("Relu"), "aten::gru_cell": _gru_cell, "aten::lstm_cell": _lstm_cell,
}  # fmt: skip
"""Recurrent cells, which this exporter does not know in TorchScript, and what they ask."""


@contextlib.contextmanager
def _symbolics(opset: int) -> Iterator[None]:
    for name, symbolic in _SYMBOLICS.items():
        torch.onnx.register_custom_op_symbolic(name, symbolic, opset)  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for name in _SYMBOLICS:
            torch.onnx.unregister_custom_op_symbolic(name, opset)  # type: ignore[attr-defined]


def _without_log() -> contextlib.AbstractContextManager[None]:
    """Inside, this exporter does not write graphs straight to the process's descriptors, past Python.

    It turns that on itself, and forgets to turn it off again.
    """

    def kept_off(turn: Any) -> Any:
        turn(False)
        return lambda _is_on: None

    return replaced("torch._C._jit_set_onnx_log_enabled", kept_off)
