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
from anyshape.source.edits import Edit, combined

FOLDER = Path(__file__).parent / "findings"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")
COMMENT = re.compile(r"# (error|warning): \[([\w-]+)\] (\w+(?:, \w+)*)")
SYMBOL = re.compile(r"\b[su]\d+\b")

KNOWN = {
    "chunk_per_sample": "told as a limit of the export, where a number is a size",
    "global_pool_by_kernel": "the layer behind is told; numbers of a pooling are not known as sizes",
    "loop_with_sum_and_mean": "a sum that a loop adds up is not known as a sum",
    "loop_with_while": "a `while` is not known as a loop",
    "maximum_over_time_by_kernel": "a failure of the runtime is told; numbers of a pooling are not known as sizes",
    "reshape_heads_of_one": "the line where samples meet is told, not the one that makes them one",
    "slice_whole_axis": "taken for `seq <= 7`, silently",
}
"""What is not right yet, and what comes instead."""

SLOW = {
    "affine_grid_batch", "attention_over_batch", "attribute_given_to_init", "batch_equals_channels",
    "batch_equals_length", "causal_buffer", "causal_mask_tril", "causal_mask_triu", "chunk_per_sample",
    "clean_cache", "clean_causal_buffer_cut", "clean_detection_grid", "clean_first_three_steps", "clean_group_norm",
    "clean_patches", "clean_state_given", "clean_two_lengths", "counted_pairs", "dict_of_inputs", "einsum_operand",
    "empty_filled", "flatten_and_linear", "fold_back", "fold_of_batch", "fold_of_steps", "forward_put_in_place",
    "full_column", "function_of_another_file", "global_pool_by_kernel", "gru_state_time_first",
    "hidden_state_by_argument", "images_flattened_to_pixels", "in_place_division", "interpolate_to_a_size",
    "layer_of_another_file", "list_of_inputs", "loop_in_comprehension", "loop_over_samples", "loop_over_steps",
    "loop_with_select", "loop_with_sum_and_mean", "loop_with_while", "loop_writes_rows", "lstm_states",
    "mask_over_cache", "maximum_over_time_by_kernel", "mean_by_attribute", "mean_by_factor", "mean_by_float",
    "mean_by_function", "mean_by_method", "mean_by_name", "mean_by_number", "mean_over_batch", "mean_over_pixels",
    "meshgrid_of_pixels", "method_of_base", "method_of_model", "mixed_and_pinned", "moved_to_device", "name_above",
    "narrow_whole_axis", "nested_function", "new_zeros_literal", "not_only_ascii", "number_shared_by_two_lines",
    "only_one_of_two_dims", "pad_then_table", "padding_mask_of_numbers", "pin_and_mean", "plain_tensor_attribute",
    "position_ids", "position_parameter", "positions_of_a_list", "product_written_out", "query_repeated",
    "relative_positions", "reshape_seq", "rnn_state_of_ones", "scattered_into_zeros", "shape_in_tuple",
    "shape_starred", "sinusoidal_table", "slice_whole_axis", "stacked_with_zeros", "steps_taken_apart",
    "sum_in_a_line_of_its_own", "table_and_literal", "table_turned_first", "three_deep", "three_lines_three_dims",
    "two_lines_one_dim", "two_names_above", "two_numbers_in_one_line", "two_places_need_both",
    "two_statements_in_a_line", "unflatten_both", "upsample_function", "view_and_linear", "view_batch_and_rest",
    "view_batch_and_seq", "view_for_transpose", "view_multiple", "view_product", "walrus", "weight_of_embedding",
    "written_into_zeros",
}  # fmt: skip
"""A second and a half or more: run with `-m slow`."""

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
@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] if n in SLOW else []) for n in NAMES])
def test_finds_what_the_comments_say(
    name: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if name in KNOWN:
        request.node.add_marker(pytest.mark.xfail(reason=KNOWN[name], strict=True))
    _checked(name, monkeypatch)
