from __future__ import annotations

import linecache
from pathlib import Path

import pytest
import torch

import anyshape
from anyshape.source.edits import Edit

SOURCE = """\
import torch


class Net(torch.nn.Module):
    def forward(self, x):
        y = x * 2
        return y.view(3, 8) + 1
"""


def _built(filename: str) -> torch.nn.Module:
    names: dict[str, type[torch.nn.Module]] = {}
    exec(compile(SOURCE, filename, "exec"), names)  # type: ignore[arg-type]
    return names["Net"]()


def _diagnosed(model: torch.nn.Module) -> anyshape.Finding:
    (finding,) = anyshape.diagnose(model, torch.randn(3, 2, 4), dims={"x": "batch 2 4"})
    return finding


def test_code_without_source_keeps_its_line_and_has_no_edit() -> None:
    finding = _diagnosed(_built("<string>"))
    assert (finding.rule, finding.span.path, finding.span.line, finding.edit) == ("pinned-dim", "<string>", 7, None)


def test_a_notebook_s_cell_has_an_edit_that_is_made_by_hand() -> None:
    name = "<ipython-input-3-0123456789ab>"
    linecache.cache[name] = (len(SOURCE), None, SOURCE.splitlines(keepends=True), name)
    finding = _diagnosed(_built(name))
    assert isinstance(finding.edit, Edit)
    assert "y.view(y.shape[0], 8)" in finding.edit.source
    assert str(finding.span) == "In [3]:7:16 in Net.forward"
    assert "return y.view(3, 8) + 1" in str(finding)
    assert name not in finding.to_json()
    with pytest.raises(anyshape.AnyshapeError, match=r"`In \[3\]` is a notebook's cell: make the change at line 7 by"):
        finding.edit.apply()


def test_an_edit_is_written_and_the_model_is_healthy_then(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(SOURCE, encoding="utf-8")
    finding = _diagnosed(_built(str(path)))
    assert finding.edit is not None
    assert finding.edit.apply()
    names: dict[str, type[torch.nn.Module]] = {}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), names)  # type: ignore[arg-type]
    assert anyshape.diagnose(names["Net"](), torch.randn(3, 2, 4), dims={"x": "batch 2 4"}) == []


def test_a_finding_goes_to_json_and_back_with_its_edit() -> None:
    finding = _diagnosed(_built("<ipython-input-4-0123456789ab>"))
    again = anyshape.Finding.from_json(finding.to_json())
    assert again == finding
    assert str(again) == str(finding)


def test_the_model_is_as_before(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(SOURCE, encoding="utf-8")
    model = _built(str(path))
    code = type(model).forward.__code__
    _diagnosed(model)
    assert type(model).forward.__code__ is code
    assert path.read_text(encoding="utf-8") == SOURCE


def test_an_export_may_use_the_safe_edits_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "net.py"
    path.write_text(SOURCE, encoding="utf-8")
    model = _built(str(path))
    result = anyshape.export(model, torch.randn(3, 2, 4), dims={"x": "batch 2 4"}, repair="edits")
    assert result.repairs == ("net.py:7: `3` read as `y.shape[0]`",)
    assert result(torch.ones(5, 2, 4))[0].shape == (5, 8)
    with pytest.raises(RuntimeError):
        model(torch.ones(5, 2, 4))
    assert path.read_text(encoding="utf-8") == SOURCE


def test_edits_that_change_the_meaning_are_not_used_by_an_export() -> None:
    class Table(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.nn.Parameter(torch.randn(5, 4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.table

    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.export(Table(), torch.randn(3, 5, 4), dims={"x": "batch seq 4"}, repair="edits")
    (finding,) = refused.value.findings
    assert finding.edit is not None
    assert not finding.edit.safe


def test_what_is_no_argument_is_told_of_this_verb() -> None:
    model, call = torch.nn.Linear(2, 2), torch.randn(3, 2)
    for given, said in {
        "write": "diagnose() has no argument `write`: it writes nothing",
        "f": "diagnose() has no argument `f`: it writes nothing",
        "unsave": "diagnose() has no argument `unsave`",
        "dim": "diagnose() has no argument `dim`; did you mean `dims`?",
    }.items():
        with pytest.raises(anyshape.DeclarationError) as caught:
            anyshape.diagnose(model, call, **{given: "x.onnx"})
        assert str(caught.value) == said
