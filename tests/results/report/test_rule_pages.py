"""Every rule has its page in a report, with nothing in it that is not its own."""

from __future__ import annotations

import re

import pytest

from anyshape.results.explanations import RULES, page_of
from anyshape.results.report.rule_pages import rule_page


@pytest.mark.parametrize("rule", RULES)
def test_all_words_of_a_page_are_there(rule):
    page = str(rule_page(rule))
    assert re.findall(r"<h4>(.*?)</h4>", page) == ["What it means", "Why", "Example", "What to do"]
    assert page.count("<pre>") == page_of(rule).count("```") // 2
    prose = re.sub(r"```.*?```", "", page_of(rule), flags=re.DOTALL)
    assert page.count("<li>") == len(re.findall(r"^- ", prose, flags=re.MULTILINE))
    assert "```" not in page
    assert "](" not in page


def test_code_in_a_page_is_escaped():
    assert "<code>x.view(x.shape[0], 8, 4)</code>" in rule_page("pinned-dim")
    assert "--&gt; script.py:7:16" in rule_page("pinned-dim")
