"""`anyshape check --grid`: every declared size of a file, in processes of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

import anyshape
from anyshape.cli.grids import run_sizes
from tests.cli.test_sweeps import invoke

NET = """
import torch
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        return x * 2 if x.shape[0] > 2 else x

inputs = torch.ones(4, 5)
"""
GIVEN = {
    "dims": {}, "sizes": {}, "weights": None, "seed": None, "where": [], "custom_ops": [], "atol": None, "rtol": None,
    "trusted": True, "inputs": [],
}  # fmt: skip


class Doubled(torch.nn.Module):
    def forward(self, x):
        return x * 2


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    """A file that is right from batch 3 on, and wrong below."""
    (tmp_path / "net_of_tests.py").write_text(NET)
    path = tmp_path / "wrong.onnx"
    sizes = {"batch": "1..4", "seq": "1..3"}
    anyshape.export(Doubled(), (torch.ones(4, 2),), path, dims={"x": "batch seq"}, sizes=sizes)
    return path


def test_sizes_of_one_task_are_counted(wrong: Path) -> None:
    sizes = [{"batch": batch, "seq": 2} for batch in (1, 2, 3, 4)]
    told = run_sizes(lambda stage: None, str(wrong), f"{wrong.parent}/net_of_tests.py:Net", GIVEN, sizes)
    assert (told["outcome"], told["right"], told["refused"]) == ("wrong", 2, 0)
    assert [one["sizes"]["batch"] for one in told["failures"]] == [1, 2]
    alone = run_sizes(lambda stage: None, str(wrong), None, GIVEN, sizes)
    assert (alone["outcome"], alone["right"]) == ("checked", 4)


@pytest.mark.slow
def test_every_declared_size_is_run_across_processes(wrong: Path) -> None:
    target = f"{wrong.parent}/net_of_tests.py:Net"
    found = json.loads(
        invoke("check", wrong, target, "--grid", "--jobs", 2, "--json", "--quiet", code=1).split("\nref")[0]
    )
    assert (found["declared"], found["asked"], found["right"], len(found["failures"])) == (12, 12, 6, 6)
    text = invoke("check", wrong, target, "--grid", "--jobs", 2, "--quiet", "--size", "batch=3..4", "--share", "0.5")
    assert text.startswith("checked: wrong.onnx at ")
    assert " of 6 sizes, " in text


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--share", "0.1"], "--share, --engine, --address and --jobs are about --grid: give it, too"),
        (["--grid", "--at", "batch=1"], "--at is one size, and --grid is all of them"),
    ],
)
def test_options_of_a_grid_are_about_a_grid(wrong: Path, arguments: list[str], sentence: str) -> None:
    assert f"Error: {sentence}\n" in invoke("check", wrong, *arguments, code=2)


def test_an_open_range_has_no_grid(tmp_path: Path) -> None:
    path = tmp_path / "open.onnx"
    anyshape.export(Doubled(), (torch.ones(4, 2),), path, dims={"x": "batch 2"})
    text = invoke("check", path, "--grid", code=2)
    assert text == "error: `batch` has no largest size, so that not all can be run: give --size batch=1..512\n"


def test_a_hand_of_many_sizes_is_given_time_for_each() -> None:
    from anyshape.cli.grids import _limits_of

    assert [_limits_of([{"batch": 1}] * count).seconds for count in (1, 10, 500)] == [600.0, 600.0, 30_000.0]
