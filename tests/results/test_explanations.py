"""The table of rules and its pages: one source, of which the documentation holds copies."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import anyshape
from anyshape.results.explanations import RULES, page_of, write_pages

ROOT = Path(__file__).parent.parent.parent
HOUSE = Path(anyshape.__file__).parent


@pytest.mark.parametrize("rule", RULES)
def test_the_documentation_holds_a_copy_of_the_page(rule: str) -> None:
    assert (ROOT / f"docs/rules/{rule}.md").read_text(encoding="utf-8") == page_of(rule), (
        "run: python -m anyshape.results.explanations docs/rules"
    )


def test_every_page_belongs_to_a_rule() -> None:
    assert {page.stem for page in (HOUSE / "results/pages").glob("*")} == set(RULES)


def test_every_rule_that_the_code_names_is_in_the_table() -> None:
    """A rule stands in the code as the first argument of a finding, or as one of two to choose from."""
    named = set()
    for path in HOUSE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        named |= set(re.findall(r'Finding\(\s*"([a-z-]+)"', text))
        named |= set(re.findall(r'rule(?:, message)? = "([a-z-]+)"', text))
        named |= set(re.findall(r'"([a-z]+-[a-z-]+)" if .* else "[a-z-]+",$', text, re.MULTILINE))
    assert {"pinned-dim", "tied-dims", "unsupported-op"} <= named <= set(RULES)


def test_a_meaning_is_one_short_line() -> None:
    for rule, meaning in RULES.items():
        assert 0 < len(meaning) < 80, rule
        assert "\n" not in meaning, rule
        assert not meaning.endswith("."), rule


def test_an_unknown_rule_is_named_with_the_nearest() -> None:
    with pytest.raises(anyshape.DeclarationError) as raised:
        page_of("pined-dim")
    assert str(raised.value) == "there is no rule `pined-dim`; did you mean `pinned-dim`?"


def test_a_rule_is_no_path() -> None:
    with pytest.raises(anyshape.DeclarationError) as raised:
        page_of("../edits")
    assert str(raised.value) == "there is no rule `../edits`"


def test_the_pages_are_written_into_a_folder(tmp_path: Path) -> None:
    write_pages(tmp_path)
    assert {page.stem: page.read_text(encoding="utf-8") for page in tmp_path.iterdir()} == {
        rule: page_of(rule) for rule in RULES
    }


def test_the_pages_are_written_by_the_module(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", "-m", "anyshape.results.explanations", str(tmp_path)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (ran.stdout, ran.stderr) == ("", "")
    assert len(list(tmp_path.glob("*.md"))) == len(RULES)
