"""`anyshape explain`: pages, the list of rules, and names that are no rule."""

from __future__ import annotations

import json
import subprocess
import sys

from click.testing import CliRunner, Result

from anyshape.cli import program
from anyshape.results.explanations import RULES, page_of


def run(*arguments: str) -> Result:
    return CliRunner().invoke(program, ["explain", *arguments])


def test_explain_prints_the_page_of_a_rule():
    result = run("pinned-dim")
    assert (result.exit_code, result.stdout, result.stderr) == (0, page_of("pinned-dim"), "")


def test_explain_gives_the_page_as_a_document():
    result = run("tied-dims", "--json")
    assert result.exit_code == 0
    assert json.loads(result.stdout) == {
        "rule": "tied-dims",
        "summary": "declared dims depend on each other",
        "page": page_of("tied-dims"),
    }


def test_without_a_rule_all_rules_are_listed():
    result = run()
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "pinned-dim           a declared dim has a single size"
    assert {line.split("  ")[0]: line.split("  ")[-1].strip() for line in lines} == dict(RULES)


def test_without_a_rule_the_document_lists_all_rules():
    result = run("--json")
    listed = [{"rule": rule, "summary": summary} for rule, summary in RULES.items()]
    assert (result.exit_code, json.loads(result.stdout)) == (0, {"rules": listed})


def test_what_is_no_rule_is_wrong_usage_with_the_nearest_name():
    result = run("frozen-brunch")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "error: there is no rule `frozen-brunch`; did you mean `frozen-branch`?\n"


def test_what_is_no_rule_is_a_document_too():
    result = run("xyz", "--json")
    assert result.exit_code == 2
    assert json.loads(result.stdout) == {"error": {"kind": "declaration", "message": "there is no rule `xyz`"}}


def test_explaining_needs_no_torch():
    code = (
        "import sys; sys.argv[1:] = ['explain', 'mixed-batch']\n"
        "import anyshape.cli\n"
        "try:\n    anyshape.cli.program.main()\n"
        "finally:\n    print([m for m in ('torch', 'onnx', 'onnxruntime') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == f"{page_of('mixed-batch')}[]\n"
