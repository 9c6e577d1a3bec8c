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
from anyshape.diagnosis.edits import Edit, combined

FOLDER = Path(__file__).parent / "findings"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")
COMMENT = re.compile(r"# (error|warning): \[([\w-]+)\] (\w+(?:, \w+)*)")
SYMBOL = re.compile(r"\b[su]\d+\b")

KNOWN = {
    # a line that only has to fit what an earlier line pinned is told, too
    "affine_grid_batch": "`grid_sample`, which only meets the grid, is told as well",
    "arithmetic_on_numbers": "`view_as`, which only goes back, is told as well",
    "dict_of_inputs": "`view_as`, which only goes back, is told as well",
    "fold_back": "`unfold`, which has no size of the example, is told as well",
    "padding_mask_of_numbers": "the attention, which only meets the mask, is told as well",
    "three_deep": "`view_as`, which only goes back, is told as well",
    "two_names_above": "one line is told twice, the second time with half of the edit",
    "view_batch_and_rest": "the layer behind is told as well, as if the architecture fixed the batch",
    "view_product": "the way back is told as well, with an edit of a number that is no size",
    # an earlier pin hides a later one
    "loop_with_sum_and_mean": "a sum that a loop adds up is not known as a sum",
    "lstm_states": "the second state is not seen, so the first has no edit",
    "mixed_and_pinned": "a pinned dim hides that samples are mixed",
    "relative_positions": "the second count of the line is not seen, so the first has no edit",
    "two_lines_one_dim": "the second line is not seen, and the edit of the first alone mixes samples",
    # no edit, or not the right one
    "causal_buffer": "a table is not cut where only a part of the line is the cause",
    "counted_pairs": "two calls of one chain need three numbers",
    "einsum_operand": "only one of both numbers is replaced, and the einsum is told as well",
    "functional_layer_norm": "the numbers of `layer_norm` are not known as sizes",
    "hidden_state_by_argument": "the caller's number is not found",
    "mask_over_cache": "`tril(7)` stays, so the edit is called safe and gives another result where `past` is not 7",
    "name_above": "an input that is given a new value later is not known above",
    "plain_tensor_attribute": "a table that is no buffer is not cut",
    "shape_in_tuple": "the numbers of a tuple with a name are not found",
    "three_lines_three_dims": "three edits that need each other are not found",
    "two_numbers_in_one_line": "to come further within one line does not count",
    # nothing, or something else, is told
    "chunk_per_sample": "told as a limit of the export, where a number is a size",
    "empty_filled": "taken for `batch <= 3`, since one sample broadcasts and three // 2 is one",
    "global_pool_by_kernel": "the layer behind is told; numbers of a pooling are not known as sizes",
    "hidden_state_made_by_method": "the layer is told as a decision, not the call that makes the state",
    "loop_with_while": "a `while` is not known as a loop",
    "loop_writes_rows": "samples that the loop leaves out are told as mixed, as well",
    "maximum_over_time_by_kernel": "a failure of the runtime is told; numbers of a pooling are not known as sizes",
    "reshape_heads_of_one": "the line where samples meet is told, not the one that makes them one",
    "slice_whole_axis": "taken for `seq <= 7`, silently",
    "tensor_of_three": "taken for `batch <= 3`, since one sample broadcasts and three // 2 is one",
}
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
    exec(compile(source, name, "exec"), vars(module))
    return module


def _with_edits(case: ModuleType, edits: list[Edit], monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The case as it is with all edits in place, under another name."""
    source = Path(case.__file__).read_text(encoding="utf-8")
    for edit in combined(edits):
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
    without = {finding.rule for finding in findings if finding.edit is None}
    assert sorted(without) == getattr(case, "without_edit", [])
    edits = [finding.edit for finding in findings if finding.edit is not None]
    assert all(edit.safe for edit in edits) == getattr(case, "safe", True)
    changed, right = _with_edits(case, edits, monkeypatch), case.right()
    for sizes in (case.example, *case.others):
        torch.testing.assert_close(_outputs(changed.model(), case, sizes), _outputs(right, case, sizes))


@pytest.mark.filterwarnings("ignore::UserWarning")  # a model may warn
@pytest.mark.parametrize("name", NAMES)
def test_finds_what_the_comments_say(
    name: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if name in KNOWN:
        request.node.add_marker(pytest.mark.xfail(reason=KNOWN[name], strict=True))
    _checked(name, monkeypatch)
