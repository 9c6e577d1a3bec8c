"""A file beside its model: what is declared, what the bench is made of, and what is wrong with the file.

What the user does not declare is read from the file: names from its inputs, sizes from its contract. A file in a
narrower type than its model is held to its own loss at the example's size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import onnx
import onnx_ir as ir
import torch

from anyshape.conversion.graph.wider_types import holds_bfloat16, widened_file
from anyshape.declaration.spec import unnamed
from anyshape.declaration.torch_forms import as_identifier
from anyshape.diagnosis import wording
from anyshape.errors import DeclarationError
from anyshape.model.limit_search import true_condition
from anyshape.model.limits import Boundaries, Limit
from anyshape.model.oracle import Outcome, RandomOutputError, Reference
from anyshape.model.random_inputs import with_random_inputs
from anyshape.model.request import Request, understand
from anyshape.model.survey import make_boundaries, make_reference, start_sizes
from anyshape.onnxfile.baked_sizes import integers_of, size_literals
from anyshape.onnxfile.contract import Contract
from anyshape.onnxfile.decided_sizes import decided_sizes, otherwise_at
from anyshape.onnxfile.interface import Interface, Port, computes_narrowly, unused_inputs
from anyshape.onnxfile.rounded_sizes import rounded_sizes
from anyshape.results.finding import Finding
from anyshape.results.verification import Check, Verification
from anyshape.runtime.custom_ops import PartedSession, unknown_operators
from anyshape.runtime.session import RuntimeFailureError, Session
from anyshape.sizes import budgets
from anyshape.sizes.notation import Condition, Sizes, did_you_mean, parse_expression
from anyshape.source.spans import Span, span_of_definition
from anyshape.testbench.batches import Row
from anyshape.testbench.checker import smallest_failure, verify
from anyshape.testbench.judgement import Tolerance
from anyshape.testbench.plan import Budget, Plan, affordable
from anyshape.torchkit.recorder import TOLD
from anyshape.verification.content_runs import run_contents
from anyshape.verification.first_wrong_node import first_difference
from anyshape.verification.given_file import CheckOptions, GivenFile, plan_of_check
from anyshape.verification.lost_digits import with_lost_digits
from anyshape.verification.model_reference import ModelChecker, checker_beside_model
from anyshape.verification.other_weights import OtherWeights, other_weights

# ---- what is declared


Named = Mapping[str, Any] | None


def declare_by_model(
    file: GivenFile,
    model: Any,
    args: Any,
    kwargs: Named,
    dims: Named,
    sizes: Named,
    where: Sequence[str],
    *,
    seed: int = 0,
    **given: Any,
) -> Request:
    """The user's declaration, with further arguments as `export` takes them; what is missing is read from the file.

    Draws are inputs where the file has them as such.
    """
    read, contract = partial(understand, model, args, kwargs, **given), file.contract
    draws = contract.draws if contract is not None else {}
    given_inputs = tuple(port for port in file.interface.inputs if port.name not in draws)
    dims = dims if dims is not None else _dims_of_file(replace(file.interface, inputs=given_inputs), read(dims={}))
    request = _declared_with_contract(contract, read, dims, sizes, where)
    return with_random_inputs(request, seed) if draws else request


def _declared_with_contract(
    contract: Contract | None, read: Callable[..., Request], dims: Named, sizes: Named, where: Sequence[str]
) -> Request:
    request = read(dims=dims, sizes=sizes, where=where)
    if contract is None or (sizes is not None and where):
        return request
    known = request.spec.ranges
    if sizes is None:
        sizes = {dim: declared for dim, declared in contract.dims.items() if dim in known}
    where = where or [str(condition) for condition in contract.where if set(condition.names) <= set(known)]
    return read(dims=dims, sizes=sizes, where=where)


def _dims_of_file(interface: Interface, bare: Request) -> dict[str, dict[int, str] | str]:
    """What the file names, for the inputs of the call that it has."""
    names = {port.name for port in interface.inputs}
    leaves = [leaf.name for leaf in bare.signature.leaves if leaf.is_tensor or leaf.name in names]
    present = _in_file(interface, leaves)  # whether the others matter is asked later
    ports = match_ports(interface.inputs, present)
    alone = {axis for port in interface.inputs for axis in port.axes or () if isinstance(axis, str)}
    return {leaf: _declared_axes(ports[leaf], leaf, alone) for leaf in leaves if leaf in present}


def _declared_axes(port: Port, leaf: str, alone: set[str]) -> dict[int, str] | str:
    """An input's axes as a declaration; an unnamed one gets a name, an odd name underscores."""
    if port.axes == ():
        return ""
    found = {}
    for axis, declared in enumerate(port.axes or ()):
        if isinstance(declared, str):
            found[axis] = _readable(declared, alone)
        elif declared is None:
            found[axis] = unnamed(leaf, axis)
    return found


def _readable(name: str, alone: set[str]) -> str:
    """A file may call a dim anything: an expression if its names stand alone on other axes, else underscores."""
    try:
        expression = parse_expression(name)
    except DeclarationError:
        return as_identifier(name)
    return expression.text if set(expression.names) <= alone else as_identifier(name)


def match_ports(ports: Sequence[Port], leaves: Sequence[str]) -> dict[str, Port]:
    """Leaf -> input of the file: by name where all names agree, else in order."""
    by_name = {port.name: port for port in ports}
    if set(by_name) == set(leaves):
        return {leaf: by_name[leaf] for leaf in leaves}
    if len(ports) != len(leaves):
        missing = next((leaf for leaf in leaves if leaf not in by_name), None)
        more = f"; the call's `{missing}` is not in the file{did_you_mean(missing, by_name)}" if missing else ""
        raise DeclarationError(f"the file has {len(ports)} inputs ({', '.join(by_name)}), the call {len(leaves)}{more}")
    return dict(zip(leaves, ports, strict=True))


def _in_file(interface: Interface, names: Sequence[str]) -> list[str]:
    """The call's inputs that the file has, where it has no others: an exporter drops what the model ignores."""
    ports = {port.name for port in interface.inputs}
    return [name for name in names if name in ports] if ports < set(names) else list(names)


# ---- the bench


@dataclass(frozen=True)
class ModelSubject:
    """A model that runs on its example, and where it is defined."""

    request: Request
    reference: Reference
    start: Sizes
    """The sizes of the example, moved into the declared ones."""
    example: Outcome
    home: Span


def run_example(request: Request, seed: int) -> ModelSubject:
    """The model at the example's sizes; DeclarationError where it fails there."""
    reference = make_reference(request, seed)
    start, example = start_sizes(reference, request)
    return ModelSubject(request, reference, start, example, span_of_definition(request.target.source))


def incomparable(subject: ModelSubject, interface: Interface, *, compares_values: bool = True) -> tuple[Finding, ...]:
    """Why no file can be compared with this model, or not this one."""
    request, reference, example = subject.request, subject.reference, subject.example
    if compares_values and reference.is_random(example):
        return (wording.random_output(example, subject.home, reference.drawing_places(example)),)
    names = {request.input_names[leaf]: leaf for leaf in request.spec.inputs(request.signature)}
    missing = set(names) - set(_in_file(interface, list(names)))
    lost = [name for name, leaf in names.items() if name in missing and reference.depends_on(leaf, example)]
    return (wording.lost_input(lost, subject.home),) if lost else ()


@dataclass(frozen=True)
class ModelBench:
    """The file and its model side by side, ready to be run."""

    checker: ModelChecker
    boundaries: Boundaries
    plan: Plan
    options: CheckOptions
    subject: ModelSubject
    file: GivenFile
    graph: ir.Model
    """The file's, with the user's dims on its inputs."""

    @property
    def proto(self) -> onnx.ModelProto:
        """What is run: the file, or the same graph in a wider type."""
        is_widened = self.checker.reference.computed_in is not None
        return ir.to_proto(widened_file(self.file.path)) if is_widened else self.file.proto

    def verify(self) -> Verification:
        verification = verify(self.checker, self.plan, self.boundaries, Budget(self.options.seconds))
        if (wide := self.checker.reference.computed_in) is None:
            return verification
        return replace(verification, computed_in=str(wide).removeprefix("torch."), own_type="bfloat16")


def open_beside_model(file: GivenFile, options: CheckOptions) -> tuple[Session, torch.dtype | None]:
    """The file in ONNX Runtime; where it cannot run bfloat16, the same graph in float32."""
    graph = ir.from_proto(file.proto)
    is_widened = holds_bfloat16(graph) and 2 * file.proto.ByteSize() < budgets.MOST_BYTES_INLINE
    try:
        session = file.open(options)
    except RuntimeFailureError:
        if not is_widened or unknown_operators(file.proto, options.custom_ops):
            raise
    else:
        # what passes between parts of a file are numpy's arrays, which have no bfloat16
        if not (is_widened and isinstance(session, PartedSession)):
            return session, None
    wide = ir.to_proto(widened_file(file.path)).SerializeToString()
    return options.custom_ops.open(wide, options.providers, folder=file.path.parent), torch.float32


def bench_beside_model(
    opened: tuple[Session, torch.dtype | None], file: GivenFile, subject: ModelSubject, options: CheckOptions
) -> ModelBench:
    """The file with the model for a reference, inside the limits that PyTorch has and the file claims."""
    session, computed_in = opened
    request, start, spec = subject.request, subject.start, subject.request.spec
    leaf_of = leaves_by_input(file, request)
    leaves = [leaf_of[port.name] for port in file.interface.inputs]
    boundaries = make_boundaries(subject.reference, request, start)
    if claimed := conditions_claimed(file, subject):
        boundaries = boundaries.with_limits([_confirmed_limit(one, subject, boundaries) for one in claimed])
    boundaries.probe()  # after the claims: dims that these tie together are not asked for ties again
    graph = ir.from_proto(file.proto)
    plan = plan_of_check(spec.ranges, start, integers_of(graph), boundaries.admit, options, size_literals(graph))
    _name_by_user(graph, {name: spec.axes.get(leaf, ()) for name, leaf in leaf_of.items()})
    if options.at is None:
        far = [*rounded_sizes(graph, spec.ranges, start, options.seed), *decided_sizes(graph, spec.ranges, start)]
        plan = replace(plan, first=tuple(affordable(far, subject.reference.effort)))
    is_narrow = computes_narrowly(file.proto) and not (computed_in is not None and _is_in_bfloat16(subject))
    checker = checker_beside_model(
        session, file.interface, subject.reference, leaves, options.tolerance, computed_in, takes_narrower=is_narrow,
        compares_values=file.compares_values,
    )  # fmt: skip
    return ModelBench(checker, boundaries, plan, options, subject, file, graph)


def leaves_by_input(file: GivenFile, request: Request) -> dict[str, str]:
    """The leaf of a call that each input of the file takes."""
    names = [request.input_names[leaf] for leaf in request.spec.inputs(request.signature)]
    ports = match_ports(file.interface.inputs, _in_file(file.interface, names))
    return {port.name: leaf for leaf, port in ports.items()}


def conditions_claimed(file: GivenFile, subject: ModelSubject) -> list[Condition]:
    """What the file's contract says of these dims, where the example keeps to it."""
    if file.contract is None:
        return []
    conditions, known = (*file.contract.limits, *file.contract.conditions), set(subject.request.spec.ranges)
    return [one for one in conditions if set(one.names) <= known and one.holds(subject.start)]


def _name_by_user(model: ir.Model, axes: Mapping[str, Row]) -> None:
    """Write the user's dims to the inputs, whatever the file calls them."""
    for value in model.graph.inputs:
        row = axes.get(value.name or "", ())
        if value.shape is not None and len(row) == len(value.shape):
            value.shape = ir.Shape([n if one is None else one.text for one, n in zip(row, value.shape, strict=True)])


def _confirmed_limit(condition: Condition, subject: ModelSubject, boundaries: Boundaries) -> Limit:
    """A file is not believed: what it calls the model's limit is the file's own, unless PyTorch fails beyond it."""
    start, reference = subject.start, subject.reference
    number = None if condition.right.names else condition.right.value({})
    just_beyond = () if number is None else (number + 1, number - 1)
    for dim in condition.names:
        size = start[dim]
        # near first: one run that fails is enough, and these are the cheapest
        for moved in (size + 1, size - 1, 2 * size, 4 * size + 1, *just_beyond):
            sizes = {**start, dim: moved}
            if moved > 0 and not condition.holds(sizes) and (error := reference.run(sizes).error) is not None:
                is_own = true_condition(boundaries, condition, sizes, most_others=0) is None
                return Limit(condition, of_export=True) if is_own else Limit(condition, error, sizes)
    return Limit(condition, of_export=True)


# ---- files in a narrower type

_LOSS_FACTOR = 4.0
"""How much more than at the example's size a narrow file may lose at another size."""
_LARGEST_LOSS = 0.1
"""Of the largest value: a file that loses more at the example's own size is too coarse to tell a size bug."""
_TOO_COARSE = (
    "the file computes in a narrower type and loses more than a tenth of the largest value at the example's own size: "
    "too coarse to tell a size bug from the loss of precision"
)


def verify_by_loss(bench: ModelBench, verification: Verification) -> tuple[ModelBench, Verification, list[str]]:
    """A narrow file that fails, once more with what it loses at the example's size allowed; any other as it is."""
    if not verification.failures or bench.options.tolerance.is_given or not bench.checker.reference.takes_narrower:
        return bench, verification, []
    loss = _loss_at_example(bench)
    if loss is None:
        return bench, verification, [_TOO_COARSE]
    # capped: a file that is just not too coarse may not be wrong by half of its largest value
    allowed = min(loss * _LOSS_FACTOR, 2 * _LARGEST_LOSS)
    bench = replace(bench, checker=replace(bench.checker, tolerance=Tolerance(of_largest=allowed)))
    note = f"the file computes in a narrower type: at the example's size it loses {loss:.1e} of the largest value"
    return bench, bench.verify(), [f"{note}, and {_LOSS_FACTOR:g} times that is allowed elsewhere"]


def _with_contents(bench: ModelBench, verification: Verification) -> Verification:
    """Other values at the example's size, too; a file in a narrower type holds fewer of them than its model."""
    if not verification.is_right or bench.checker.reference.takes_narrower or not bench.file.compares_values:
        return verification
    start, run = bench.subject.start, verification.sizes_run
    budget = Budget(bench.options.seconds).part(0.25)
    traced = start if start in run else run[0]
    otherwise = otherwise_at(bench.graph, traced, run)
    return run_contents(bench.checker, verification, traced, bench.graph, budget, otherwise)


def _notes_on_reads(bench: ModelBench, verification: Verification) -> list[str]:
    """Where the model decides by values: the file may follow, or keep the way that was traced."""
    reference, found = bench.subject.reference, dict[Span, None]()
    reading = [check for check in verification.checks if reference.reads_at(check.sizes, check.content)]
    for check in reading[: budgets.RUNS_READ_FOR_DECISIONS]:
        read = reference.value_decisions(reference.run(check.sizes, check.content))
        found |= {place or bench.subject.home: None for place, answers in read.items() if answers != {TOLD}}
    listed = ", ".join(map(str, found))
    return [f"the model decides by values, of which only those that were run are checked: {listed}"] if found else []


def _loss_at_example(bench: ModelBench) -> float | None:
    """What the file loses there, relative to the largest value; None where that is too much."""
    tolerant = replace(bench.checker, tolerance=Tolerance(of_largest=_LARGEST_LOSS))
    example = bench.subject.example
    judged = [tolerant.judge(run) for run in (example, bench.checker.reference.run(example.sizes, 1))]
    right = [one for one in judged if isinstance(one, Check)]
    if len(right) != len(judged):
        return None
    return max(torch.finfo(torch.float16).eps, *(one.ratio * _LARGEST_LOSS for one in right))


def _is_in_bfloat16(subject: ModelSubject) -> bool:
    """Whether the model computes in it by itself: then the two agree in float32 as closely as others do."""
    held = (*subject.request.target.module.parameters(), *subject.example.outputs)
    return any(tensor.dtype == torch.bfloat16 for tensor in held)


# ---- what is found


def compare_with_model(bench: ModelBench) -> tuple[ModelBench, Verification | None, tuple[Finding, ...], list[str]]:
    """All runs, what they show to be wrong, and notes."""
    try:
        bench, verification, notes = verify_by_loss(bench, bench.verify())
        verification = _with_contents(bench, verification)
        return (
            bench,
            verification,
            findings_beside_model(bench, verification),
            [*notes, *_notes_on_reads(bench, verification)],
        )
    except RandomOutputError as error:
        places = bench.subject.reference.drawing_places(error.outcome)
        return bench, None, (wording.random_output(error.outcome, bench.subject.home, places, elsewhere=True),), []


def findings_beside_model(bench: ModelBench, verification: Verification) -> tuple[Finding, ...]:
    """The smallest size at which the file is wrong, and the line that it comes from, where that can be told."""
    home = bench.subject.home
    if not verification.failures:
        return () if verification.checks else (Finding("runtime-error", "no size could be run", home),)
    first = verification.failures[0]
    if first.rule == "wrong-values" and (others := _other_weights(bench)) is not None:
        return (wording.other_weights(others.names, others.total, first, Span(bench.file.path.name, 1)),)
    if first.values:
        # the size is no cause of it
        return (wording.wrong_file(first, verification, (), home, None, unused_inputs(bench.file.proto)),)
    smallest = smallest_failure(bench.checker, verification.failures, bench.plan, Budget().part(0.25))
    proto = bench.proto
    where = first_difference(proto, bench.checker, smallest) if bench.file.compares_values else None
    smallest = with_lost_digits(proto, bench.checker, smallest)
    return (wording.wrong_file(smallest, verification, (), home, where, unused_inputs(proto)),)


def _other_weights(bench: ModelBench) -> OtherWeights | None:
    return other_weights(bench.file.proto, bench.file.path.parent, bench.subject.request.target.module)
