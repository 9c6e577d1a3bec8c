"""Every branch and every loop exports right, on both sides and at every count, or is refused; none is written wrong.

Each case is declared in one way, in turn. A few of every kind run always; the others are left to `make test-all`.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import anyshape
from tests import cases, controlflow
from tests.running import eager, is_right

NAMES = controlflow.names()
QUICK = {
    "asked_behind_another_question", "bool_of_padding_ids", "by_one_bit", "cell_over_range", "cut_to_longest",
    "first_step_is_special", "from_both_ends", "gate_of_a_submodule", "left_at_the_first_negative",
    "long_and_loud", "loop_on_both_sides", "loop_on_one_side", "memory_that_grows", "one_block_used_thrice",
    "padded_by_one_while", "pair_from_either_side", "returns_from_the_end", "rows_and_columns",
    "scale_by_three_lengths", "words_looked_up_in_python", "written_into_zeros",
}  # fmt: skip
"""Of every kind one: the others are slow."""


def _parameters() -> list[Any]:
    return [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in NAMES]


def _way(name: str, case: ModuleType) -> dict[str, Any]:
    """The example alone and a maker of inputs in turn."""
    ranges = getattr(case, "ranges", None)
    if NAMES.index(name) % 2:
        return {"make_inputs": case.inputs, "dims": case.dims, "sizes": ranges}
    args, _ = cases.example(case)
    return {"args": args, "dims": case.dims, "sizes": ranges}


def test_the_quick_ones_are_cases() -> None:
    assert set(NAMES) >= QUICK


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_pytorch_runs_every_case_at_every_size(name: str) -> None:
    case = controlflow.load(name)
    results = [eager(case.model(), args) for _, args in controlflow.calls(case)]
    assert all(value.isfinite().all() for result in results for value in result)


@pytest.mark.parametrize("name", _parameters())
def test_control_flow_exports_right_or_is_refused(name: str, tmp_path: Path) -> None:
    case, path = controlflow.load(name), tmp_path / "model.onnx"
    if not case.exports:
        with pytest.raises(anyshape.ExportError) as refused:
            anyshape.export(case.model(), f=path, **_way(name, case))
        assert refused.value.findings
        assert not path.exists()
        return
    result = anyshape.export(case.model(), f=path, **_way(name, case))
    assert result.verdict == "checked"
    assert [which for which, args in controlflow.calls(case) if not is_right(path, case.model(), args)] == []


def test_what_is_compared_to_put_a_buffer_back_is_no_repair() -> None:
    case = controlflow.load("buffer_written_on_one_side")
    result = anyshape.export(case.model(), case.inputs(5), dims=case.dims)
    assert [repair.partition(":")[0] for repair in result.repairs] == ["2 branches kept as If"]
