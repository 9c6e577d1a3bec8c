"""A suspect, and what is told about it: the words of findings about an expression that makes a size a number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from anyshape.diagnosis.causes import Cause
from anyshape.diagnosis.edit_proposals.change import EditProposal
from anyshape.diagnosis.edit_trials import TriedEdits, edit_of
from anyshape.model.oracle import describe
from anyshape.results.finding import Finding
from anyshape.sizes.notation import Sizes
from anyshape.source.edits import Edit
from anyshape.source.sites import Site
from anyshape.source.spans import Span
from anyshape.source.stacks import is_librarys

FROZEN = ("mean", "loop")
"""Causes at which nothing fails."""


@dataclass(frozen=True)
class SuspectedCause:
    """A cause that matters, the dims it pins, and what may be written instead."""

    cause: Cause
    dims: tuple[str, ...]
    breaks_at: Sizes
    """The smallest sizes found at which PyTorch fails; empty where it runs."""
    is_pin: bool = False
    """Whether PyTorch fails at all other sizes of these dims."""
    is_limit: bool = False
    """Whether PyTorch fails by a rule, such as a multiple, which the file then keeps to."""
    span: Span | None = None
    """Its place, where other changes of the line moved it."""
    proposal: EditProposal | None = None
    """What may be written instead."""
    tried: TriedEdits | None = None
    """How that was tried, alone or beside others without which it does not help."""

    @property
    def is_frozen(self) -> bool:
        """Whether nothing fails, and the result is off."""
        return self.cause.kind in FROZEN

    @property
    def is_error(self) -> bool:
        return self.is_pin or (bool(self.breaks_at) and not self.is_limit)

    @property
    def is_telling(self) -> bool:
        """Numbers that only look like a size are told where putting the size there works, and matters."""
        if self.is_pin:
            return True
        return self.tried is not None and self.tried.differs_at is not None and self.cause.kind != "decision"


def finding_of(suspect: SuspectedCause, base: Mapping[str, int]) -> Finding:
    """The finding, with its edit."""
    if not suspect.is_error and suspect.proposal is not None and suspect.proposal.dims:
        suspect = replace(suspect, dims=suspect.proposal.dims)
    found = _pinned_finding(suspect, base) if suspect.is_error else _warning_about(suspect, base)
    notes = (*found.notes, *_notes_on_callers(suspect.cause.site))
    return replace(found, notes=notes, dims=suspect.dims, edit=_tried_edit(suspect, base))


def _pinned_finding(suspect: SuspectedCause, base: Mapping[str, int]) -> Finding:
    cause, dims = suspect.cause, _dims_in_words(suspect.dims)
    notes = [f"smallest size that breaks it: {describe(suspect.breaks_at)}; PyTorch fails there too"]
    if cause.seen is not None:
        notes.append(f"it shows at {cause.seen.span}")
    notes += _notes_about(cause)
    return Finding(
        "pinned-dim",
        f"{dims} cannot vary",
        _span_of_number(suspect),
        label=_label_of_pin(cause, suspect.dims, base),
        notes=tuple(notes),
        helps=() if suspect.tried else (_way_out(cause, dims),),
        breaks_at=suspect.breaks_at,
    )


def _label_of_pin(cause: Cause, dims: Sequence[str], base: Mapping[str, int]) -> str:
    if cause.kind == "table":
        tables = [f"`{cause.table}` has {want.size} entries for `{want.expression}`" for want in cause.wants]
        return " and ".join(dict.fromkeys(tables))
    parts = [f"`{want.expression}` becomes {want.size}" for want in cause.wants]
    parts = parts or [f"`{dim}` becomes {base[dim]}" for dim in dims]
    return f"{' and '.join(dict.fromkeys(parts))} here"


def _notes_about(cause: Cause) -> Iterator[str]:
    if cause.layer:
        yield f"the architecture fixes the size: `{cause.layer}` was made for {cause.wants[0].size} features"
    if cause.kind == "input":
        yield f"input `{cause.name}` has a static axis here"


def _way_out(cause: Cause, dims: str) -> str:
    if cause.kind == "input":
        return f"declare that axis of `{cause.name}`, too, or leave {dims} out of the declaration"
    if cause.layer:
        return f"pool to a fixed size in front of `{cause.layer}`, or leave {dims} out of the declaration"
    if cause.kind == "decision":
        return f"write the model without this condition on {dims}, or leave {dims} out of the declaration"
    return f"take the size from an input instead of writing a number, or leave {dims} out of the declaration"


def _warning_about(suspect: SuspectedCause, base: Mapping[str, int]) -> Finding:
    """Nothing fails, and the result is off: a size frozen as a number, or samples that are folded into each other."""
    dims = _dims_in_words(suspect.dims)
    if suspect.is_frozen:
        want = suspect.cause.wants[0]
        what = "divides by" if suspect.cause.kind == "mean" else "counts to"
        rule, message = "frozen-value", f"the size of {dims} is written as a number"
        label = f"{what} {want.size}, which is `{want.expression}` in the example"
    else:
        rule, message = "mixed-batch", f"samples are mixed at other sizes of {dims}"
        label = f"fits {' and '.join(f'`{dim}` = {base[dim]}' for dim in suspect.dims)} alone"
    differs_at = suspect.tried.differs_at if suspect.tried else None
    told = "the result is another than with the size itself"
    notes = () if differs_at is None else (f"at {describe(differs_at)} {told}",)
    return Finding(
        rule, message, _span_of_number(suspect), label=label, notes=notes, level="warning", breaks_at=differs_at
    )


def _span_of_number(suspect: SuspectedCause) -> Span:
    """Where the number was written, which may be further up than where it is used."""
    moved = suspect.proposal.span if suspect.proposal is not None else None
    return moved or suspect.span or suspect.cause.site.span


def _notes_on_callers(site: Site) -> Iterator[str]:
    """For a line of a library: the user's own that leads to it."""
    if not is_librarys(site.code.co_filename):
        return
    caller = site.caller
    while caller is not None and is_librarys(caller.code.co_filename):
        caller = caller.caller
    if caller is not None:
        yield f"called from {caller.span}"


def _tried_edit(suspect: SuspectedCause, base: Mapping[str, int]) -> Edit | None:
    tried = suspect.tried
    if tried is None or suspect.proposal is None:
        return None
    same = describe({dim: base[dim] for dim in suspect.dims})
    runs = _sizes_that_ran(tried, suspect.dims[0], base) if len(suspect.dims) == 1 else f"{len(tried.ran)} other sizes"
    text = f"same result at {same}, runs at {runs}"
    file = [one for one in tried.proposals if one.filename == suspect.proposal.filename]
    edit = edit_of(*file, tried=text, safe=tried.keeps_samples_apart)
    lines = sorted({change.line for change in edit.changes} - {change.line for change in suspect.proposal.changes})
    beside = f", together with line{'s' if len(lines) > 1 else ''} {' and '.join(map(str, lines))}" if lines else ""
    return replace(edit, title=f"{suspect.proposal.title}{beside}")


def _sizes_that_ran(tried: TriedEdits, dim: str, base: Mapping[str, int]) -> str:
    return ", ".join(str(n) for n in sorted({sizes[dim] for sizes in tried.ran} - {base[dim]}))


def _dims_in_words(dims: Sequence[str]) -> str:
    *most, last = [f"`{dim}`" for dim in dims]
    return f"{', '.join(most)} and {last}" if most else last
