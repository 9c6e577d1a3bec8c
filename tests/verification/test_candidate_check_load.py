"""Whatever the machine is doing: the verdict, the sizes and the bytes are the same."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import pytest
import torch
from torch import Tensor, nn

import anyshape
from anyshape.declaration.calls import bind_call
from anyshape.declaration.targets import resolve_target
from anyshape.model.proposal.one_call import propose
from anyshape.sizes import budgets

STATIC = """<ir_version: 9, opset_import: ["" : 20]>
g (float[2, 6] x) => (float[2, 6] y) <int64 axis = {1}> { y = CumSum(x, axis) }"""


class Attending(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)


class Forgetful(nn.Module):
    """Wrong beyond eight rows in every way that it can be traced."""

    def forward(self, x: Tensor) -> Tensor:
        return x * 2 if len(x.tolist()) > 8 else x


def _told(result: anyshape.Result) -> list[Any]:
    found = result.to_dict()
    sizes = {name: (found["verification"] or {}).get(name) for name in ("sizes_run", "sizes_not_run", "failures")}
    attempts = [(one["strategy"], one["outcome"], one["reason"]) for one in found["attempts"]]
    return [found["verdict"], sizes, attempts, found["notes"], found["limits"], [str(one) for one in result.findings]]


def _outcome(run: Callable[..., anyshape.Result], *args: Any, **kwargs: Any) -> list[Any]:
    try:
        return _told(run(*args, **kwargs))
    except anyshape.ExportError as refusal:
        return _told(refusal.result)


def _exported(folder: Path, most: int = 1024) -> list[Any]:
    path = folder / "m.onnx"
    sizes = {"batch": f"1..{most}", "seq": f"1..{most}"}
    x = torch.randn(2, 5, 32, generator=torch.Generator().manual_seed(0))
    told = _outcome(anyshape.export, Attending().eval(), x, path, dims={"x": "batch seq 32"}, sizes=sizes)
    return [*told, hashlib.sha256(path.read_bytes()).hexdigest()]


def _refused(folder: Path) -> list[Any]:
    return _outcome(anyshape.export, Forgetful(), torch.randn(3, 2), folder / "m.onnx", dims={"x": "n 2"})


def _checked_alone(folder: Path) -> list[Any]:
    onnx.save(onnx.parser.parse_model(STATIC.replace("2, 6", "batch, seq")), folder / "m.onnx")
    return _outcome(anyshape.check, folder / "m.onnx", sizes={"batch": "1..10000", "seq": "1..10000"})


def _freed(folder: Path) -> list[Any]:
    onnx.save(onnx.parser.parse_model(STATIC), folder / "s.onnx")
    told = _outcome(anyshape.make_dynamic, folder / "s.onnx", {"x": "batch seq"}, out=folder / "m.onnx")
    return [*told, hashlib.sha256((folder / "m.onnx").read_bytes()).hexdigest()]


def _found_dims(folder: Path) -> list[Any]:
    del folder
    target = resolve_target(Attending().eval())
    return [str(propose(target, bind_call(target, (torch.ones(2, 5, 32),))))]


@pytest.mark.parametrize("run", [_exported, _refused, _checked_alone, _freed, _found_dims])
def test_a_clock_that_runs_a_hundred_times_as_fast_changes_nothing(
    run: Callable[[Path], list[Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budgets, "WORK_TO_CHECK", 2e7)
    (tmp_path / "quiet").mkdir()
    (tmp_path / "hurried").mkdir()
    quiet = run(tmp_path / "quiet")
    real = {name: getattr(time, name) for name in ("monotonic", "perf_counter", "process_time", "time")}
    for name, clock in real.items():
        monkeypatch.setattr(time, name, lambda clock=clock: 100 * clock())
    assert run(tmp_path / "hurried") == quiet


def test_a_wide_range_is_cut_by_work_and_not_by_size_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budgets, "WORK_TO_CHECK", 1e8)
    verdict, sizes, *_ = _exported(tmp_path)
    assert verdict == "checked"
    assert {"batch": 1024, "seq": 1024} in [one["sizes"] for one in sizes["sizes_not_run"]]
    assert [max(one[dim] for one in sizes["sizes_run"]) for dim in ("batch", "seq")] == [1024, 1024]


_ALONE = """import json, pathlib, sys
from {module} import _exported
print(json.dumps(_exported(pathlib.Path(sys.argv[1]), 4096)))"""


def _in_a_process(folder: Path) -> list[Any]:
    folder.mkdir()
    code = _ALONE.format(module=__name__)
    done = subprocess.run([sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def _spin() -> None:
    while True:
        pass


@pytest.mark.slow
def test_two_runs_print_the_same_sizes_with_six_busy_loops_beside_them(tmp_path: Path) -> None:
    quiet = _in_a_process(tmp_path / "quiet")
    loops = [multiprocessing.get_context("spawn").Process(target=_spin, daemon=True) for _ in range(6)]
    for loop in loops:
        loop.start()
    try:
        busy = _in_a_process(tmp_path / "busy")
    finally:
        for loop in loops:
            loop.terminate()
    assert busy == quiet
