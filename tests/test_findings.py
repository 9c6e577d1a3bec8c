"""`diagnose` says of every case just what the comments in its lines say, and its edits give what the author meant.

A case is a small model in `tests/findings`. `# error: [pinned-dim] batch, seq` stands behind every line that has a
finding: its level, its rule and its dims. Nothing may be found beside these.
"""

from __future__ import annotations

import importlib
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch

import anyshape
from anyshape.diagnosis.edits import combined

FOLDER = Path(__file__).parent / "findings"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")
COMMENT = re.compile(r"# (error|warning): \[([\w-]+)\] (\w+(?:, \w+)*)")
SYMBOL = re.compile(r"\b[su]\d+\b")

KNOWN: dict[str, str] = {}
"""What is not right yet, and what comes instead."""

Expected = tuple[str, int, str, str, tuple[str, ...]]


def _expected(path: Path) -> Iterator[Expected]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        for level, rule, dims in COMMENT.findall(line):
            yield path.name, number, level, rule, tuple(sorted(dims.split(", ")))


def _found(finding: anyshape.Finding) -> Expected:
    span = finding.span
    return Path(span.path).name, span.line, finding.level, finding.rule, tuple(sorted(finding.dims))


def _load(name: str) -> ModuleType:
    return importlib.import_module(f"tests.findings.{name}")


def _parts(case: ModuleType) -> list[ModuleType]:
    """Other files whose functions the case uses."""
    names = {getattr(value, "__module__", "") for value in vars(case).values()}
    return [sys.modules[name] for name in sorted(names) if name.startswith("tests.findings.parts.")]


def _diagnosed(case: ModuleType) -> list[anyshape.Finding]:
    torch.manual_seed(1)
    example = case.inputs(**case.example)
    return anyshape.diagnose(case.model(), example, dims=case.dims, sizes=getattr(case, "sizes", None))


def _module(name: str, source: str) -> ModuleType:
    module = types.ModuleType(name)
    sys.modules[name] = module  # dataclasses look there for their module
    exec(compile(source, name, "exec"), vars(module))  # noqa: S102
    return module


def _with_edits(case: ModuleType, findings: list[anyshape.Finding], monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The case as it is with all edits in place, under another name."""
    source = Path(case.__file__).read_text(encoding="utf-8")
    for edit in combined(finding.edit for finding in findings):
        if Path(edit.path) == Path(case.__file__):
            source = edit.source
        else:
            name = next(part.__name__ for part in _parts(case) if Path(part.__file__) == Path(edit.path))
            monkeypatch.setitem(sys.modules, name, _module(f"{name}_edited", edit.source))
    return _module(f"{case.__name__}_edited", source)


def _outputs(model: torch.nn.Module, case: ModuleType, sizes: dict[str, int]) -> torch.Tensor:
    torch.manual_seed(2)
    with torch.no_grad():
        return model(*case.inputs(**sizes))


def _checked(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = _load(name)
    findings = _diagnosed(case)
    files = [Path(case.__file__), *(Path(part.__file__) for part in _parts(case))]
    assert sorted(map(_found, findings)) == sorted(one for path in files for one in _expected(path))
    assert [text for text in map(str, findings) if SYMBOL.search(text)] == []
    if not hasattr(case, "right"):
        assert [finding.edit for finding in findings] == [None] * len(findings)
        return
    assert [str(finding) for finding in findings if finding.edit is None] == []
    assert all(finding.edit.safe for finding in findings) == getattr(case, "safe", True)
    changed, right = _with_edits(case, findings, monkeypatch), case.right()
    for sizes in (case.example, *case.others):
        torch.testing.assert_close(_outputs(changed.model(), case, sizes), _outputs(right, case, sizes))


@pytest.mark.parametrize("name", NAMES)
def test_finds_what_the_comments_say(
    name: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if name in KNOWN:
        request.node.add_marker(pytest.mark.xfail(reason=KNOWN[name], strict=True))
    _checked(name, monkeypatch)
