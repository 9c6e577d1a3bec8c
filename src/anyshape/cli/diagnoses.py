"""How `anyshape diagnose` ends: all findings, what was written, and one last line that counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from anyshape.cli.diagnoses_rewriting import Rewriting, Wishes, counted, edits_of, rewrite
from anyshape.cli.endings import DONE, SAYS_NO, Ending
from anyshape.results.finding import Finding


def conclude(findings: Sequence[Finding], wishes: Wishes, *, concise: bool) -> Ending:
    """Write the edits that are wanted, and say what was found."""
    shown = [] if wishes.interactive else [_shown(findings, concise=concise)]  # before the files change
    rewriting = rewrite(findings, wishes)
    summary = _summary(findings, rewriting, wishes)
    after = "\n".join(filter(None, (str(rewriting), summary)))
    return Ending(
        SAYS_NO if _left(findings, rewriting, wishes) else DONE,
        ("\n" if concise else "\n\n").join(filter(None, (*shown, after))),
        {
            "findings": [finding.to_dict() for finding in findings],
            "applied": [edit.to_dict() for edit in rewriting.applied],
        },
        summary=summary,
    )


def _shown(findings: Iterable[Finding], *, concise: bool) -> str:
    if concise:
        return "\n".join(f"{f.span.path}:{f.span.line}:{f.span.column}: {f.headline}" for f in findings)
    return "\n\n".join(map(str, findings))


def _left(findings: Iterable[Finding], rewriting: Rewriting, wishes: Wishes) -> bool:
    """Whether there is something to do still; who writes edits has read the warnings."""
    return any(
        finding.edit not in rewriting.applied for finding in findings if finding.level == "error" or not wishes.writes
    )


# ---- the last line


def _summary(findings: Sequence[Finding], rewriting: Rewriting, wishes: Wishes) -> str:
    if not findings:
        return "no findings"
    levels = [finding.level for finding in findings]
    counts = [counted(levels.count(level), level) for level in ("error", "warning") if level in levels]
    edits = [*_done(rewriting, wishes), *_offers(findings, rewriting, wishes)]
    return "; ".join(filter(None, (", ".join(counts), ", ".join(edits))))


def _done(rewriting: Rewriting, wishes: Wishes) -> list[str]:
    number = len(rewriting.applied)
    return [f"{counted(number, 'edit') if number else 'no edit'} applied"] if wishes.writes else []


def _offers(findings: Iterable[Finding], rewriting: Rewriting, wishes: Wishes) -> list[str]:
    """What could be applied still, and how; who was asked has answered."""
    if wishes.interactive:
        return []
    left = [edit for edit in edits_of(findings) if edit not in rewriting.applied]
    safe = sum(edit.safe for edit in left)
    offers: list[str] = []
    for number, how in ((safe, "--write"), (len(left) - safe, "--write --unsafe")):
        if number and offers:
            offers.append(f"{number} more with {how}")
        elif number:
            noun = f"{number} more" if rewriting.applied else counted(number, "edit")
            offers.append(f"{noun} can be applied with {how}")
    return offers
