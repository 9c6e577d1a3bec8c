"""How `anyshape diagnose` ends: which edits are written into the user's files, all findings, and one line that counts.

Written are the safe edits, all of them, or those that the user agrees to.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import click

from anyshape.cli.endings import DONE, SAYS_NO, Ending
from anyshape.errors import AnyshapeError
from anyshape.results.finding import Finding
from anyshape.source.edits import Edit, combined


@dataclass(frozen=True)
class EditWishes:
    """What the user wants written."""

    write: bool = False
    unsafe: bool = False
    interactive: bool = False

    @property
    def writes(self) -> bool:
        return self.write or self.interactive

    def refuse_what_cannot_be(self, *, as_json: bool) -> None:
        if self.unsafe and not self.write:
            raise click.UsageError("--unsafe is about what is written: give --write, too")
        if self.interactive and as_json:
            raise click.UsageError("--interactive and --json exclude each other")
        if self.interactive and not can_ask():
            raise click.UsageError("--interactive asks, but nobody can answer: stdin is no terminal")


@dataclass(frozen=True)
class WrittenEdits:
    """What was written."""

    files: tuple[Edit, ...] = ()
    """One edit per file that was changed."""
    applied: tuple[Edit, ...] = ()
    """The edits of the findings that stand in the files now."""

    def __str__(self) -> str:
        return "\n".join(f"wrote {one.name}: {counted(len(one.changes), 'change')}" for one in self.files)


def can_ask() -> bool:
    return sys.stdin.isatty()


def counted(number: int, noun: str) -> str:
    """`1 edit`, `2 edits`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def conclude(findings: Sequence[Finding], wishes: EditWishes, *, concise: bool) -> Ending:
    """Write the edits that are wanted, and say what was found."""
    # findings quote the source, so their text is made before the files change; who is asked has read them already
    shown = [] if wishes.interactive else [_findings_text(findings, concise=concise)]
    written = write_edits(findings, wishes)
    summary = _last_line(findings, written, wishes)
    after = "\n".join(filter(None, (str(written), summary)))
    return Ending(
        SAYS_NO if _something_is_left(findings, written, wishes) else DONE,
        ("\n" if concise else "\n\n").join(filter(None, (*shown, after))),
        {
            "findings": [finding.to_dict() for finding in findings],
            "applied": [edit.to_dict() for edit in written.applied],
        },
        summary=summary,
    )


def _findings_text(findings: Iterable[Finding], *, concise: bool) -> str:
    if concise:
        return "\n".join(f"{f.span.path}:{f.span.line}:{f.span.column}: {f.headline}" for f in findings)
    return "\n\n".join(map(str, findings))


def _something_is_left(findings: Iterable[Finding], written: WrittenEdits, wishes: EditWishes) -> bool:
    """Whether there is something to do still; who writes edits has read the warnings."""
    return any(
        finding.edit not in written.applied for finding in findings if finding.level == "error" or not wishes.writes
    )


# ---- the last line


def _last_line(findings: Sequence[Finding], written: WrittenEdits, wishes: EditWishes) -> str:
    if not findings:
        return "no findings"
    levels = [finding.level for finding in findings]
    counts = [counted(levels.count(level), level) for level in ("error", "warning") if level in levels]
    applied = counted(len(written.applied), "edit") if written.applied else "no edit"
    clauses = [f"{applied} applied"] if wishes.writes else []
    clauses += _offers(findings, written, wishes)
    return "; ".join(filter(None, (", ".join(counts), ", ".join(clauses))))


def _offers(findings: Iterable[Finding], written: WrittenEdits, wishes: EditWishes) -> list[str]:
    """What could be applied still, and how; who was asked has answered."""
    if wishes.interactive:
        return []
    left = [edit for edit in edits_of(findings) if edit not in written.applied]
    safe = sum(edit.safe for edit in left)
    offers: list[str] = []
    for number, how in ((safe, "--write"), (len(left) - safe, "--write --unsafe")):
        if number and offers:
            offers.append(f"{number} more with {how}")
        elif number:
            noun = f"{number} more" if written.applied else counted(number, "edit")
            offers.append(f"{noun} can be applied with {how}")
    return offers


# ---- writing


def edits_of(findings: Iterable[Finding]) -> list[Edit]:
    """The edits that are offered; findings with one cause may share theirs."""
    return list(dict.fromkeys(finding.edit for finding in findings if finding.edit is not None))


def write_edits(findings: Sequence[Finding], wishes: EditWishes) -> WrittenEdits:
    """Write what is wanted, all of a file at once: a second edit's lines would be off after the first was written."""
    if wishes.interactive:
        wanted = _edits_agreed_to(findings)
    else:
        wanted = [edit for edit in edits_of(findings) if wishes.write and (edit.safe or wishes.unsafe)]
    changed = {whole: _has_changed_file(whole) for whole in combined(wanted)}
    stand = [whole for whole, fresh in changed.items() if fresh is not None]
    applied = (edit for edit in wanted if any(_contains(whole, edit) for whole in stand))
    return WrittenEdits(tuple(whole for whole, fresh in changed.items() if fresh), tuple(applied))


def _has_changed_file(whole: Edit) -> bool | None:
    """Apply an edit: whether the file changed, None where it cannot be written, which does not hold up the others."""
    try:
        return whole.apply()
    except AnyshapeError as error:
        click.echo(f"error: {error}", err=True)
        return None


def _contains(whole: Edit, edit: Edit) -> bool:
    """Edits of one expression may exclude each other: not all that is wanted is always in the file."""
    return whole.path == edit.path and set(edit.changes) <= set(whole.changes)


# ---- asking


def _edits_agreed_to(findings: Iterable[Finding]) -> list[Edit]:
    """Show each finding and ask about its edit; nothing is written before the last answer."""
    answers: dict[Edit, str] = {}
    for finding in findings:
        click.echo(f"{finding}\n", err=True)
        if finding.edit is None or finding.edit in answers or "q" in answers.values():
            continue
        answers[finding.edit] = _answer_about(finding.edit)
    return [edit for edit, answer in answers.items() if answer == "y"]


def _answer_about(edit: Edit) -> str:
    question = "apply this edit" if edit.safe else "apply this edit, which may change what the code means"
    try:
        return str(click.prompt(question, type=click.Choice(["y", "n", "q"], case_sensitive=False), err=True))
    finally:
        click.echo(err=True)
