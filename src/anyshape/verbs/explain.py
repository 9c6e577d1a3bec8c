"""`explain`: the page of a rule, or the list of all rules. It needs neither a model nor torch."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from anyshape.results.explanations import RULES, page_of


def explain(rule: str | None = None) -> Explanation | Overview:
    """What a rule means, why it is one and what to do; without a name, all rules in a line each."""
    return Overview() if rule is None else Explanation(rule, page=page_of(rule), summary=RULES[rule])


@dataclass(frozen=True)
class Explanation:
    """One rule."""

    rule: str
    summary: str
    page: str

    def __str__(self) -> str:
        return self.page.rstrip("\n")

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Overview:
    """All rules."""

    def __str__(self) -> str:
        width = max(map(len, RULES))
        return "\n".join(f"{rule:<{width}}  {summary}" for rule, summary in RULES.items())

    def to_dict(self) -> dict[str, Any]:
        return {"rules": [{"rule": rule, "summary": summary} for rule, summary in RULES.items()]}
