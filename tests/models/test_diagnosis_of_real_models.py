"""Whole models: a healthy one is told nothing, one with a planted number is told that line and nothing else."""

from __future__ import annotations

import importlib
import types
from pathlib import Path
from typing import Any

import pytest
import torch

import anyshape
from tests.models.planted import healthy_list
from tests.models.planted.healthy_list import Healthy

PLANTED = Path(__file__).parent / "planted"
MARK = "# planted"
CASES = sorted(path.stem for path in PLANTED.glob("*.py") if MARK in path.read_text(encoding="utf-8"))

QUICK = {"asserted", "distance_helper", "learned_queries", "table_not_sliced", "tagger-alike", "detector-alike"}
"""A few of all; each of the others takes seconds, too, and is run with `-m slow`."""
KNOWN = {"fold_literal": "nothing is told of `F.fold` to a literal size deep in a network"}
"""What is not right yet."""
UNSAFE = {"asserted", "table_not_sliced"}
"""Whose edit is for the user to decide: an assertion may be meant, and a table has an end."""


def _params(names: list[str], values: list[Any]) -> list[Any]:
    found = []
    for name, value in zip(names, values, strict=True):
        marks = [] if name in QUICK else [pytest.mark.slow]
        marks += [pytest.mark.xfail(reason=KNOWN[name], strict=True)] if name in KNOWN else []
        found.append(pytest.param(value, id=name, marks=marks))
    return found


def _examples() -> list[tuple[str, Healthy, dict[str, int]]]:
    return [
        (f"{one.name}-{kind}", one, getattr(one, kind)) for kind in ("alike", "apart") for one in healthy_list.HEALTHY
    ]


@pytest.mark.filterwarnings("ignore")  # transformers' own
@pytest.mark.parametrize("example", _params([one[0] for one in _examples()], _examples()))
def test_a_healthy_model_is_told_nothing_whatever_its_sizes_coincide_with(example: Any) -> None:
    _, one, sizes = example
    torch.manual_seed(0)
    model = one.build().eval()
    assert anyshape.diagnose(model, kwargs=one.make(**sizes), dims=one.dims, sizes=one.sizes) == []


def _planted_line(module: types.ModuleType) -> int:
    lines = Path(module.__file__).read_text(encoding="utf-8").splitlines()
    (line,) = [number for number, text in enumerate(lines, 1) if MARK in text]
    return line


def _built(source: types.ModuleType) -> torch.nn.Module:
    torch.manual_seed(0)
    return source.model().eval()


def _module_of(text: str, path: Path) -> types.ModuleType:
    """The edited text as a module of its own."""
    module = types.ModuleType(path.stem)
    exec(compile(text, str(path), "exec"), module.__dict__)
    return module


@pytest.mark.filterwarnings("ignore")  # transformers' own
@pytest.mark.parametrize("name", _params(CASES, CASES))
def test_a_planted_number_is_the_one_finding_and_its_edit_frees_the_model(name: str, tmp_path: Path) -> None:
    case: Any = importlib.import_module(f"tests.models.planted.{name}")
    found = anyshape.diagnose(_built(case), case.inputs(**case.EXAMPLE), dims=case.DIMS)

    told = [(one.rule, Path(one.span.path).name, one.span.line, list(one.dims)) for one in found]
    assert told == [(case.RULE, f"{name}.py", _planted_line(case), case.PINNED)]
    edit = found[0].edit
    assert edit is not None
    assert edit.safe == (name not in UNSAFE)
    changed = _built(_module_of(edit.source, tmp_path / f"{name}.py"))
    example, other = case.inputs(**case.EXAMPLE), case.inputs(**case.OTHER)
    with torch.no_grad():
        torch.testing.assert_close(_first(changed(*example)), _first(_built(case)(*example)))
        assert _first(changed(*other)).isfinite().all()


def _first(result: Any) -> torch.Tensor:
    """The output itself; transformers hand out more than one."""
    return result if isinstance(result, torch.Tensor) else result[0]


@pytest.mark.filterwarnings("ignore")  # transformers' own
@pytest.mark.parametrize("name", [name for name in CASES if name != "mean_literal"])
def test_a_planted_model_fails_elsewhere_without_its_edit(name: str) -> None:
    """Else its finding would prove nothing. The mean that is left out gives another result there, and no error."""
    case: Any = importlib.import_module(f"tests.models.planted.{name}")
    with pytest.raises((RuntimeError, AssertionError, IndexError)):
        _built(case)(*case.inputs(**case.OTHER))


def test_every_planted_model_that_is_known_or_slow_is_there() -> None:
    names = {*CASES, *(one[0] for one in _examples())}
    assert names >= QUICK
    assert set(CASES) >= UNSAFE
