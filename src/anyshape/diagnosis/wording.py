"""From what happened to findings: one function per kind of trouble, out of values alone; nothing is run or traced.

The words about an expression that a trace has blamed, with its edit, stand in `pinned_dims`.
"""

from __future__ import annotations

import functools
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from anyshape.model.limits import Limit, Pin, effective_range
from anyshape.model.oracle import Outcome, describe
from anyshape.results.attempt import Attempt, Guard, NewerOpsetError, PinnedByTrace, UntranslatedOperatorError
from anyshape.results.finding import Finding
from anyshape.results.verification import Failure, Verification
from anyshape.runtime.releases import RELEASES, Release
from anyshape.sizes.notation import SizeRange
from anyshape.sizes.spelling import give_calls, spelled
from anyshape.source.sites import is_decision, site_of_error
from anyshape.source.spans import Span, source_line, span_of_error
from anyshape.torchkit.reasons import depends_on_values, place_of_translation
from anyshape.verification.first_wrong_node import WrongNode

_of_export = functools.partial(Finding, origin="export")
"""A finding about what only the export cannot do."""


def with_and(names: Iterable[str]) -> str:
    """`batch` and `seq`, as they stand in a sentence."""
    return " and ".join(f"`{name}`" for name in names)


# ---- dims that PyTorch, or the export alone, cannot move


def pinned_in_pytorch(pins: Sequence[Pin], home: Span) -> list[Finding]:
    """PyTorch itself runs at one size only; dims that one expression pins share a finding."""
    at: dict[Span, list[Pin]] = {}
    for pin in pins:
        at.setdefault(_place_of(pin.error, home), []).append(pin)
    return [_pinned_at(span, together) for span, together in at.items()]


def _place_of(error: Exception | None, home: Span) -> Span:
    return (span_of_error(error) if error else None) or home


def _pinned_at(span: Span, pins: Sequence[Pin]) -> Finding:
    first = pins[0]
    way = "take the size from an input instead of writing a number"
    if not span.is_known:
        way = "tracing wrote its size down as a number: export the module that was traced"
    way_out = way + ", or leave {} out of the declaration"
    told = _finding_of_pins(span, pins, "must be", _where_it_breaks(first.breaks_at, first.error), way_out)
    return replace(told, breaks_at=first.breaks_at)


def _finding_of_pins(span: Span, pins: Sequence[Pin | PinnedByTrace], becomes: str, note: str, way_out: str) -> Finding:
    dims = with_and(pin.dim for pin in pins)
    label = " and ".join(f"`{pin.dim}` {becomes} {pin.size}" for pin in pins)
    named, helps = tuple(pin.dim for pin in pins), (way_out.format(dims),)
    return Finding("pinned-dim", f"{dims} cannot vary", span, f"{label} here", (note,), helps, dims=named)


def _where_it_breaks(sizes: Mapping[str, int], error: BaseException | None) -> str:
    said = "no reason given"
    if error is not None:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        # TorchScript quotes its own code before it comes to the point, and raises in none of Python's lines
        told = lines[:1] if span_of_error(error) else [line.removeprefix("RuntimeError: ") for line in lines[-1:]]
        said = ": ".join((type(error).__name__, *told))
    return f"{describe(sizes)} breaks it; PyTorch fails there too: {said}"


def limited_in_pytorch(limit: Limit, ranges: Mapping[str, SizeRange], home: Span) -> Finding:
    """The user declared sizes that PyTorch cannot do."""
    condition, sizes, dim = limit.condition, limit.breaks_at, limit.condition.names[0]
    if len(condition.names) > 1:
        dims = with_and(one for one in ranges if one in condition.names)
        rule, message = "tied-dims", f"{dims} cannot take every declared size together"
    elif "%" in condition.left.text:
        rule, message = "divided-dim", f"`{dim}` must satisfy `{condition}`"
    elif condition.others:
        rule, message = "bounded-dim", f"`{dim}` cannot take every declared size"
    else:
        rule, message = "bounded-dim", f"`{dim}` is bounded"
    span, label = _place_of(limit.error, home), f"runs only for `{condition}`"
    notes = () if sizes is None else (_where_it_breaks(sizes, limit.error),)
    helps = (_declaration_of(limit, ranges),)
    return Finding(rule, message, span, label, notes, helps, dims=condition.names, breaks_at=sizes)


def _declaration_of(limit: Limit, ranges: Mapping[str, SizeRange]) -> str:
    """The range that is left; a relation where no range says it."""
    condition, dim = limit.condition, limit.condition.names[0]
    kept = effective_range(ranges[dim], [limit], dim)
    if len(condition.names) == 1 and kept != ranges[dim]:
        written = shlex.quote(f"{dim}={kept}")
        return "declare it: " + spelled(
            f'sizes={{"{dim}": "{kept}"}} instead of "{ranges[dim]}"', f"--size {written} instead of {ranges[dim]}"
        )
    tied = condition.relation == "==" and condition.left.is_name and condition.right.is_name
    said = spelled(f'where=["{condition}"]', f"--where '{condition}'")
    return f"declare it: {'one name for both dims, or ' if tied else ''}{said}"


def failing_in_pytorch(
    failing: Sequence[tuple[Mapping[str, int], Exception]], dims: Sequence[str], home: Span
) -> Finding:
    """The user declared sizes that PyTorch cannot do, and no rule says which."""
    sizes, error = failing[0]
    more = f" and at {len(failing) - 1} more sizes that were run" if len(failing) > 1 else ""
    message = f"{with_and(dims)} cannot take every declared size"
    notes = (_where_it_breaks(sizes, error), f"PyTorch fails there{more}, by no rule that was found")
    helps = (f"declare only sizes that the model can do; if the values of the call are to blame, {give_calls()}",)
    rule = "bounded-dim" if len(dims) == 1 else "tied-dims"
    return Finding(rule, message, _place_of(error, home), "fails here", notes, helps, dims=tuple(dims), breaks_at=sizes)


def pinned_by_export(attempt: Attempt, home: Span) -> list[Finding]:
    """PyTorch runs at other sizes, but tracing turned a dim into a number; dims at one place share a finding."""
    at: dict[Span, list[PinnedByTrace]] = {}
    for pin in attempt.pins:
        at.setdefault(pin.span or home, []).append(pin)
    return [_pinned_by_export_at(span, pins) for span, pins in at.items()]


def _pinned_by_export_at(span: Span, pins: Sequence[PinnedByTrace]) -> Finding:
    note = "only the export is limited: PyTorch runs at other sizes"
    way_out = "leave {} out of the declaration, or write this expression in another way"
    told = _finding_of_pins(span, pins, "becomes", note, way_out)
    return replace(told, message=f"{told.message} in the export", origin="export")


# ---- a file that is wrong at some size


def implicated(guards: Iterable[Guard], failure: Failure, verification: Verification) -> list[Guard]:
    """Guards that hold at every right size and not at the wrong one: no longer suspects."""
    right = [check.sizes for check in verification.checks]
    # torch notes `!=` all the time, to no effect; the model's own code means it
    telling = [g for g in guards if g.decides or (g.condition is not None and g.condition.relation != "!=")]
    return [guard for guard in telling if guard.holds(failure.sizes) is False and all(map(guard.holds, right))]


def wrong_file(
    failure: Failure,
    verification: Verification,
    guards: Iterable[Guard],
    home: Span,
    where: WrongNode | None,
    lost: Sequence[str] = (),
) -> Finding:
    """The file is wrong at some size; a guard that tells the wrong sizes from the right ones names the branch."""
    place = describe(failure.sizes) if failure.sizes else "the example's sizes"
    total = len(verification.failures)
    found = f"smallest of {total} failing sizes found" if total > 1 else "the failing size found"
    notes = [f"{found}: {place}; PyTorch runs there"] if failure.sizes else []
    notes += [failure.note] if failure.note else []
    if broken := implicated(guards, failure, verification):
        guard = next((g for g in broken if g.span is not None), broken[0])
        return _frozen_branch(guard, (*notes, f"there {failure.sentence}"), home, failure.sizes)
    if lost:
        return lost_input(lost, home, (f"{failure.sentence} at {place}", *notes), failure.sizes)
    span = where.span if where is not None else None
    message = f"{failure.sentence} at {place}"
    label = f"first result that {where.trouble}" if where and span else ""
    told = (*notes, str(where)) if where else tuple(notes)
    sizes = failure.sizes
    return _of_export(failure.rule, message, span or home, label, told, dims=tuple(sizes), breaks_at=sizes)


def with_way_around_half(finding: Finding, where: WrongNode | None) -> Finding:
    """Of a file in float16 that fails at every size: the runtime may lack a kernel, which a converter goes around."""
    if finding.rule != "runtime-error" or where is None:
        return finding
    way = f"`convert_float_to_float16(..., op_block_list=[*DEFAULT_OP_BLOCK_LIST, '{where.operator}'])`"
    advice = f"where ONNX Runtime lacks this in float16, export in float32 and convert the file: {way}"
    return replace(finding, helps=(*finding.helps, f"{advice} of onnxruntime.transformers.float16"))


def other_weights(names: Sequence[str], total: int, failure: Failure, file: Span) -> Finding:
    """A file with other weights than its model: no line of the source is to blame."""
    listed = ", ".join(f"`{name}`" for name in names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    notes = (
        f"{len(names)} of {total} weights that can be compared differ: {listed}",
        f"so {failure.sentence}{f' at {describe(failure.sizes)}' if failure.sizes else ''}",
    )
    advice = "give the weights that the file was exported with"
    help_text = spelled(f"{advice}: load them into the model first", f"{advice}: --weights FILE")
    return _of_export("other-weights", "the file holds other weights than the model", file, "", notes, (help_text,))


def lost_input(
    names: Sequence[str], home: Span, notes: tuple[str, ...] = (), sizes: Mapping[str, int] | None = None
) -> Finding:
    """A file in which an input is a constant, or is not there at all."""
    listed = with_and(names)
    message = f"the file does not depend on {listed}, the model does"
    helps = (f"keep {listed} in tensors on the way to the outputs: what passes through Python becomes a constant",)
    return _of_export("lost-input", message, home, "", notes, helps, dims=tuple(sizes or ()), breaks_at=sizes)


def unsettled(guard: Guard, sizes: Mapping[str, int], verification: Verification, home: Span) -> Finding:
    """A declared size takes another path than the export did, and nobody knows what the file gives there."""
    reason = next((f": {why}" for skipped, why in verification.skipped if skipped == sizes), "")
    note = f"{describe(sizes)} breaks it, and was not run{reason}"
    return _frozen_branch(guard, (note,), home, sizes)


def _frozen_branch(guard: Guard, notes: tuple[str, ...], home: Span, sizes: Mapping[str, int]) -> Finding:
    dims = guard.dims
    rule, listed = "bounded-dim" if len(dims) == 1 else "tied-dims", with_and(dims)
    message = f"{listed} cannot take every declared size in the export"
    label = f"exported only for `{guard.text}`"
    helps = (f"declare only these sizes, or write the model without this condition on {listed}",)
    return _of_export(rule, message, guard.span or home, label, notes, helps, dims=dims, breaks_at=sizes)


# ---- models that no strategy converts


def not_converted(attempts: Sequence[Attempt], home: Span) -> Finding:
    notes = tuple(f"{attempt.strategy}: {attempt.reason}" for attempt in attempts if attempt.reason)
    errors = [attempt.error for attempt in attempts if attempt.error is not None]
    raised = next(filter(None, map(span_of_error, errors)), None)
    span = raised or next(filter(None, map(place_of_translation, errors)), None)
    label = "what cannot be translated" if span and not raised else ""
    return _of_export("not-converted", "no exporter could convert the model", span or home, label, notes)


def untranslated_operator(error: UntranslatedOperatorError, home: Span) -> Finding:
    """An operator of the user's that can be neither traced nor translated; shown with what the user would write."""
    arguments = ", ".join(error.arguments)
    function = error.name.partition("::")[2].replace(".", "_")
    if error.shapeless:
        message = f"torch does not know the shape of `{error.name}`"
        lines: tuple[str, ...] = (
            "say it, before the export:",
            f'@torch.library.register_fake("{error.name}")',
            f"def _({arguments}):",
            "    return ...  # a tensor of the result's shape and type, such as torch.empty_like(x)",
        )
    else:
        message = f"`{error.name}` has no ONNX translation"
        lines = (
            "write its translation, before the export:",
            "from onnxscript import opset18 as op\n",
            f"@anyshape.translation(torch.ops.{error.overload})",
            f"def {function}({arguments}):",
            f"    return ...  # what `{error.name}` computes, in ONNX operators such as op.Mul",
        )
    label = "called here" if error.span else ""
    is_torchs = error.name.startswith(("aten::", "prims::"))
    helps = ("\n".join(lines), *[_WAYS_AROUND] * is_torchs)
    return _of_export("unsupported-op", message, error.span or home, label, (error.why,), helps)


_WAYS_AROUND = (
    "or compute it before or after the file; or translate it to a node of your own, which a library or a Python "
    "function computes: `custom_ops`"
)


def missing_operator(error: BaseException | None, runtime: Release | None, home: Span) -> Finding | None:
    """What an attempt failed for, where it is an operator that torch or the opset lacks."""
    if isinstance(error, NewerOpsetError):
        return newer_opset(error, runtime, home)
    return untranslated_operator(error, home) if isinstance(error, UntranslatedOperatorError) else None


def newer_opset(error: NewerOpsetError, runtime: Release | None, home: Span) -> Finding:
    """Operators of the model that the opset which was asked for does not have."""
    newest, *others = sorted(error.needed, key=lambda row: -row[1])
    message = f"opset {error.asked} cannot hold the model: `{newest[0]}`, as it is used here, needs opset {newest[1]}"
    notes = tuple(f"`{operator}` needs opset {opset}" for operator, opset in others)
    if runtime is not None and runtime.opset < error.smallest:
        notes = (*notes, f"{runtime} takes opset {runtime.opset} at most")
    oldest, *newer = RELEASES.values()
    release = next((one for one in newer if oldest.opset < error.smallest <= one.opset), None)
    since = f", which {release} and newer take" if release is not None else ""
    return _of_export(
        "newer-opset", message, error.span or home, "", notes, (f"opset {error.smallest} would do{since}",)
    )


def random_output(
    outcome: Outcome, home: Span, places: Mapping[Span | None, str] | None = None, *, elsewhere: bool = False
) -> Finding:
    """`places` are those that draw, and by what; `elsewhere`: at other sizes than the first."""
    listed = ", ".join(f"`{name}`" for name in outcome.names)
    where = f" at {describe(outcome.sizes)}" if elsewhere and outcome.sizes else ""
    message = f"{listed} changes from call to call{where}, so that no file can be checked against it"
    (place, by), *others = [(span, by) for span, by in (places or {}).items() if span] or [(home, "")]
    seed = " in the next call" if by else ", although no generator was drawn from"
    seed = " under another random seed" if outcome.draws else seed  # which a generator of the model's own is not given
    notes = [f"in eval mode, the same inputs gave other results{seed}"]
    if others:
        lines = dict.fromkeys(f"{span.path}:{span.line}" for span, _ in others)
        notes.append(f"random numbers are drawn at {', '.join(lines)}, too")
    return Finding(
        "random-output", message, place, "draws random numbers" if by else "", tuple(notes), _ways_out_of_chance(by),
        breaks_at=outcome.sizes if where else None,
    )  # fmt: skip


def seeded_output(outcome: Outcome, place: Span) -> Finding:
    """The model draws alike in every call, since it seeds what it draws from."""
    listed = ", ".join(f"`{name}`" for name in outcome.names)
    message = f"{listed} holds random numbers of a seed that the model sets itself, and no file draws these numbers"
    notes = ("ONNX Runtime has generators of its own",)
    return Finding("random-output", message, place, "draws random numbers", notes, _ways_out_of_chance("torch")[:1])


def _ways_out_of_chance(by: str) -> tuple[str, ...]:
    shapes = spelled('random="shapes"', "--random shapes")
    inputs = spelled('random="inputs"', "--random inputs")
    given = f"{inputs} makes each draw an input of the file"
    alone = f"{shapes} checks shapes and types alone"
    if by and by not in ("random", "numpy.random"):
        return (f"{given}, which is then checked as any other", alone)
    return (
        ("pass the random numbers as an input, or draw them with torch: then " + given, alone)
        if by
        else (
            "pass the random numbers as an input, or draw them from a fixed table",
            "or fill memory before it is read: `torch.empty` and `x.resize_()` leave in it what stood there",
        )
    )


def frozen_decisions(places: Sequence[Span | None], home: Span) -> list[Finding]:
    """The model decides on values in Python, and a trace would keep the path that the example took."""
    message, label = "a decision on values would be frozen in the export", "a value decides here"
    notes = ("a trace keeps the path that the example took, whatever other values would do",)
    return [
        _of_export("frozen-branch", message, place or home, label, notes, (_instead_of_decision(place),))
        for place in places
    ]


def _instead_of_decision(place: Span | None) -> str:
    line = "" if place is None else source_line(place) or ""
    if line.lstrip().startswith("while "):
        return "use torch._higher_order_ops.while_loop, or a fixed number of steps with torch.where"
    return "write both paths as tensors and choose with torch.where, or use torch.cond"


def decided_by_values(attempts: Sequence[Attempt]) -> list[Finding]:
    """Where a trace had to know what only the values tell: a decision, or a size."""
    sites = [site_of_error(attempt.error) for attempt in attempts if attempt.error and depends_on_values(attempt.error)]
    site = next((site for site in sites if site is not None), None)
    if site is None:
        return []
    if is_decision(site):
        return frozen_decisions([site.span], site.span)
    message, label = "a size that comes from values blocks the export", "needs a size that only the values tell"
    notes = ("PyTorch knows the values when it runs, a trace does not",)
    helps = ("take the size from an input's shape, or pass it as a Python integer of its own",)
    return [_of_export("data-dependent-size", message, site.span, label, notes, helps)]
