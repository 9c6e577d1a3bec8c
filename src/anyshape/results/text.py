"""Results and findings as plain text: what `print(result)` shows."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anyshape.onnxfile.contract import RANDOM_VALUES, draw_facts
from anyshape.onnxfile.interface import port_rows
from anyshape.sizes import budgets
from anyshape.source.spans import source_line

if TYPE_CHECKING:
    from anyshape.results.finding import Finding
    from anyshape.results.result import Result, Verb
    from anyshape.results.verification import Verification
    from anyshape.source.edits import Edit


_WIDTH = 120
"""Where the words about an edit are wrapped."""


# ---- a finding


def render_finding(finding: Finding) -> str:
    """Headline, place, underlined line, notes, the edit and helps."""
    number = str(finding.span.line)
    margin = " " * len(number)
    lines = [finding.headline, *([f"{margin} --> {finding.span}"] if finding.span.is_known else [])]
    if (quoted := quoted_line(finding)) is not None:
        lines += [f"{margin} |", f"{number} | {quoted[0]}", f"{margin} | {quoted[1]}".rstrip()]
    lines += _indented_texts(margin, "note", finding.notes)
    if finding.edit is not None:
        lines += _indented_texts(margin, "help", [_shown_edit(finding.edit, room=_WIDTH - len(f"{margin} = help: "))])
    lines += _indented_texts(margin, "help", finding.helps)
    return "\n".join(lines)


def quoted_line(finding: Finding) -> tuple[str, str] | None:
    """The line that a finding stands at, and what underlines its expression; None where it cannot be read."""
    text = source_line(finding.span)
    return None if text is None else (text, _underline(finding, text))


def trial_of(edit: Edit) -> str:
    """Whether an edit is safe, and how it was tried."""
    return "; ".join(filter(None, ("" if edit.safe else "unsafe", edit.tried and f"tried: {edit.tried}")))


def edit_rows(edit: Edit) -> list[tuple[str, str]]:
    """Each changed line before and after, behind `-` and `+`, without the indent that all have."""
    rows = edit.changed_lines
    indent = min((len(text) - len(text.lstrip()) for _, text in rows if text), default=0)
    return [(sign, text[indent:]) for sign, text in rows]


def _shown_edit(edit: Edit, *, room: int) -> str:
    """What is done and how it was tried, then each changed line before and after."""
    how = trial_of(edit)
    head = [f"{edit.title}   [{how}]" if how else edit.title]
    if how and len(head[0]) > room:
        wrapped = textwrap.wrap(f"[{how}]", room, subsequent_indent=" ", break_long_words=False, break_on_hyphens=False)
        head = [edit.title, *wrapped]
    return "\n".join([*head, *(f"{sign} {text}" for sign, text in edit_rows(edit))])


def _underline(finding: Finding, text: str) -> str:
    span = finding.span
    one_line = span.end_line in (None, span.line)
    end = span.end_column - 1 if span.end_column is not None and one_line else len(text.rstrip())
    start = span.column - 1
    return " " * start + "^" * max(1, end - start) + (f" {finding.label}" if finding.label else "")


def _indented_texts(margin: str, kind: str, texts: Iterable[str]) -> list[str]:
    indent = f"\n{margin}   {' ' * len(kind)}  "
    hanging = (f"{margin} = {kind}: {text.replace(chr(10), indent)}" for text in texts)
    return ["\n".join(line.rstrip() for line in text.splitlines()) for text in hanging]


# ---- a result


def render_result(result: Result) -> str:
    lines = [result.headline, *labelled_lines(result_rows(result))]
    for finding in result.findings:
        lines += ["", str(finding)]
    return "\n".join(lines)


def labelled_lines(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    """`  dims     batch 1..`: a line for each fact."""
    return (f"  {label:<8} {text}" for label, text in rows)


def result_rows(result: Result) -> Iterator[tuple[str, str]]:
    """What is told of a result below its headline: what it is about, and what there is to say."""
    if result.verdict == "refused":
        yield from _refusal(result)
    else:
        yield from port_rows("input", [(port.name, port.typed()) for port in result.inputs])
        yield from port_rows("output", [(port.name, port.typed()) for port in result.outputs])
        yield from _facts(result)
    yield from (("note", note) for note in result.notes)


@dataclass(frozen=True)
class _Words:
    """How the results of one verb speak."""

    refused: str = "no file written"
    unchecked: str = "never run against the model"
    limited_by: str = "PyTorch itself"
    change: str = "repair"
    most_changes: int | None = None
    verb: str = ""
    """What took the time that is told; nothing is told where it is empty."""


_WORDS: Mapping[Verb, _Words] = {
    "export": _Words(verb="convert"),
    "check": _Words(refused="the file is wrong"),
    "make-dynamic": _Words(
        unchecked="not every dim could be checked",
        limited_by="",
        change="rewrite",
        most_changes=budgets.MOST_ROWS_OF_TEXT,
        verb="free",
    ),
}


def headline_of(result: Result) -> str:
    """The verdict on one file, in one line."""
    verification, words = result.verification, _WORDS[result.what]
    if result.verdict == "refused":
        # no word against a file that may be right for the weights that it was made of
        is_other = any(finding.rule == "other-weights" for finding in result.findings)
        return f"refused: {'the weights of file and model differ' if is_other else words.refused}"
    if result.verdict == "unchecked" or verification is None:
        return f"unchecked: {_file_of(result)}, {words.unchecked}"
    sizes = len(verification.sizes_run)
    where = f"{sizes} size{'s' if sizes != 1 else ''}"
    cut = ", CUT SHORT by this machine" if verification.is_cut_by_machine else ""
    if verification.own_type is not None:
        how = f"{result.verdict} in {verification.computed_in}"
        not_run = f"{verification.runtime} cannot run {verification.own_type} here"
        return (
            f"{how}: {_file_of(result)}, its graph is right at {where} against {verification.against}{cut}; {not_run}"
        )
    where = f"{where} in {verification.runtime}"
    if verification.measure == RANDOM_VALUES:
        told = f"shapes and types at {where} against {verification.against}{cut}; values are random"
        return f"{result.verdict}: {_file_of(result)}, {told}"
    if not verification.compares_values:
        return f"{result.verdict}: {_file_of(result)}, keeps the shapes it declares at {where}{cut}"
    return f"{result.verdict}: {_file_of(result)}, right at {where} against {verification.against}{cut}"


def _file_of(result: Result) -> str:
    return result.path.name if result.path is not None else "model"


def _facts(result: Result) -> Iterable[tuple[str, str]]:
    words = _WORDS[result.what]
    if result.dims:
        yield "dims", ", ".join(f"{dim} {declared}" for dim, declared in result.dims.items())
    if result.where:
        yield "where", ", ".join(result.where)
    for text in result.given_up:
        yield "given up", text
    for limit in result.limits:
        place = f", {result.limits_at[limit]})" if limit in result.limits_at else ")"
        yield "limit", f"{limit} ({words.limited_by}{place}" if words.limited_by else limit
    yield from (("assumed", f"{one}, not settled") for one in result.assumptions if one.is_for_people)
    yield from draw_facts(result.draws)
    if result.constants:
        yield "constant", ", ".join(f"{name} = {value}" for name, value in result.constants.items())
    shown = result.repairs[: words.most_changes]
    yield from ((words.change, repair) for repair in shown)
    if len(shown) < len(result.repairs):
        yield words.change, f"... and {len(result.repairs) - len(shown)} more"
    if result.verification is not None:
        yield from _verification_facts(result.verification)
    if words.verb:
        winner = next((a.strategy for a in result.attempts if a.outcome in ("checked", "narrowed")), None)
        what = f"{words.verb} by {winner}" if winner else words.verb
        yield "took", f"{result.seconds:.1f} s to {what} (opset {result.opset}), {_seconds_to_check(result)} to check"


def _seconds_to_check(result: Result) -> str:
    return f"{result.verification.seconds:.1f} s" if result.verification else "0 s"


def _verification_facts(verification: Verification) -> Iterable[tuple[str, str]]:
    if verification.how:
        yield from (("checked", f"{dim} {how}") for dim, how in verification.how.items())
    else:
        yield "run", "; ".join(_spans_of_sizes(verification))
    if verification.compares_values:
        times = f"{verification.largest_ratio:.1f} x {verification.measure}"
        yield "error", f"at most {times} ({verification.factor:g} is allowed)"
    if verification.own_type is not None:
        yield (
            "type",
            f"the same graph in {verification.computed_in} was run; the file's own {verification.own_type} was not",
        )
    if any(check.gradients for check in verification.checks):
        yield "mode", "as PyTorch with gradients on: its fast path for attention gives other values at masked places"
    if verification.skipped:
        yield "not run", _not_run(verification.skipped)
    if verification.is_cut_by_machine:
        yield "note", "the clock or the memory of this machine cut sizes: elsewhere, or later, more would be run"


def _not_run(skipped: Sequence[tuple[Mapping[str, int], str]]) -> str:
    """How many sizes were cut, the largest of them, and why."""
    largest = max((sizes for sizes, _ in skipped), key=lambda sizes: sum(sizes.values()))
    reasons = "; ".join(dict.fromkeys(reason for _, reason in skipped))
    shown = ", ".join(f"{dim} = {size}" for dim, size in largest.items())
    count = "1 planned size" if len(skipped) == 1 else f"{len(skipped)} planned sizes, up to"
    return f"{count} {shown}: {reasons}"


def _spans_of_sizes(verification: Verification) -> Iterable[str]:
    sizes = verification.sizes_run
    if not sizes or not sizes[0]:
        yield "the example's sizes"
        return
    for dim in sizes[0]:
        values = sorted({s[dim] for s in sizes})
        span = f"{values[0]} to {values[-1]}" if len(values) > 1 else f"{values[0]}"
        yield f"{dim} {span} ({len(values)})"


def _refusal(result: Result) -> Iterable[tuple[str, str]]:
    """What was tried and was not right; a finding that lists it all itself needs no such lines."""
    if any(finding.rule == "not-converted" for finding in result.findings):
        return []
    tried = [attempt for attempt in result.attempts if attempt.outcome != "checked"]
    first = {one.reason: one for one in reversed(tried)}
    whys = [one.reason if first[one.reason] is one else f"as {first[one.reason].strategy}" for one in tried]
    pairs = zip(tried, whys, strict=True)
    return [("tried", f"{one.strategy}, {one.outcome}{f': {why}' if one.reason else ''}") for one, why in pairs]
