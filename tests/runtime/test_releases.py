"""Which opset is written for whom, and what each release of ONNX Runtime really loads."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

import anyshape
from anyshape.errors import DeclarationError
from anyshape.runtime.releases import (
    DEFAULT_OPSET,
    OLDEST_OPSET,
    RELEASES,
    choose_opset,
    installed_release,
    ir_version_for,
    understand_target,
)
from anyshape.runtime.session import Session

INSTALLED = installed_release()


def chosen(asked: int | None, target: str | None) -> int:
    return choose_opset(asked, None if target is None else understand_target(target), 23)


@pytest.mark.parametrize(
    ("asked", "target", "opset"),
    [
        (None, None, DEFAULT_OPSET), (18, None, 18), (24, None, 24), (11, None, 11), (None, "onnxruntime==1.18", 21),
        (17, " onnxruntime >= 1.18.2 ", 17), (None, "onnxruntime==1.12", 17), (None, "onnxruntime@1.13", 17),
        (None, "onnxruntime==1.31", 23), (None, "onnxruntime", 23), (24, "onnxruntime", 24),
    ],
)  # fmt: skip
def test_the_opset(asked: int | None, target: str | None, opset: int) -> None:
    assert chosen(asked, target) == opset


TAKES = f"the installed ONNX Runtime {onnxruntime.__version__} takes {OLDEST_OPSET} to {INSTALLED.opset}"
HOW = "write `onnxruntime==1.18`, or `onnxruntime` for the installed one"


@pytest.mark.parametrize(
    ("asked", "target", "sentence"),
    [
        (6, None, f"opset_version is 6, {TAKES}"),
        ("18", None, f"opset_version is '18', {TAKES}"),
        (True, None, f"opset_version is True, {TAKES}"),
        (99, None, f"opset_version is 99, {TAKES}"),
        (22, "onnxruntime==1.18", "opset_version is 22, but target ONNX Runtime 1.18 takes 21 at most"),
        (None, "tensorrt", f"target is `tensorrt`: {HOW}"),
        (None, "onnxruntime1.18", f"target is `onnxruntime1.18`: {HOW}"),
        (None, "onnxruntime==1", f"target is `onnxruntime==1`: {HOW}"),
        (None, "onnxruntime==1.2", "target is `onnxruntime==1.2`, but ONNX Runtime 1.12 is the oldest that is known"),
        (None, "onnxruntime==9.9", "target is `onnxruntime==9.9`, but ONNX Runtime 1.31 is the newest that is known"),
    ],
)
def test_what_cannot_be_is_refused(asked: int, target: str, sentence: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        chosen(asked, target)
    assert str(caught.value) == sentence


def test_every_release_takes_the_ir_version_of_its_own_opsets() -> None:
    for release in RELEASES.values():
        assert all(ir_version_for(opset) <= release.ir_version for opset in range(OLDEST_OPSET, release.opset + 1))


def test_the_installed_release_is_as_the_table_says() -> None:
    major, minor = (int(part) for part in onnxruntime.__version__.split(".")[:2])
    assert (INSTALLED.opset, INSTALLED.version) == (RELEASES[major, minor].opset, onnxruntime.__version__)


# ---- the releases themselves, each in a folder of its own

WHEELS = (
    "1.15.1", "1.16.3", "1.17.3", "1.18.1", "1.19.2", "1.20.1", "1.21.1", "1.22.1", "1.23.2", "1.24.4", "1.25.1",
    "1.26.0", "1.27.0", "1.28.0", "1.29.0", "1.30.0",
)  # fmt: skip
NUMPY_2_SINCE = (1, 19)

PROGRAM = """
import json, sys
sys.path[:0] = json.loads(sys.argv[1])
import numpy, onnxruntime
onnxruntime.set_default_logger_severity(4)
assert onnxruntime.__version__ == sys.argv[2], onnxruntime.__file__
told = {}
for path in sys.argv[3:]:
    try:
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        feeds = {one.name: numpy.ones([2 if isinstance(n, str) else n for n in one.shape], "float32")
                 for one in session.get_inputs()}
        told[path] = [float(one.astype("float64").sum()) for one in session.run(None, feeds)]
    except Exception as error:
        told[path] = None
print(json.dumps(told))
"""


def installed_in(folder: Path, *packages: str) -> str:
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder), *packages]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        pytest.skip(f"pip cannot get {' '.join(packages)}: {done.stderr.strip().splitlines()[-1]}")
    return str(folder)


def told_by(version: str, folder: Path, files: Sequence[Path]) -> dict[str, list[float] | None]:
    """What a release gives for each file on ones; None where it does not load or run it."""
    old = tuple(map(int, version.split(".")[:2])) < NUMPY_2_SINCE
    places = [installed_in(folder, f"onnxruntime=={version}", *(["numpy==1.26.4"] if old else []))]
    command = [sys.executable, "-c", PROGRAM, json.dumps(places), version, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    told = json.loads(done.stdout.splitlines()[-1])
    return {Path(path).stem: values for path, values in told.items()}


def smallest_file(path: Path, opset: int, ir_version: int) -> Path:
    graph = "g (float[1] x) => (float[1] y) { y = Relu(x) }"
    onnx.save(onnx.parser.parse_model(f'<ir_version: {ir_version}, opset_import: ["": {opset}]> {graph}'), path)
    return path


class Mixed(nn.Module):
    """What older releases had in other forms: norms, parts, attention, a recurrent layer, a softmax along an axis."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, activation="gelu")
        self.recurrent = nn.LSTM(8, 4, batch_first=True)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        left, right = self.layer(x).chunk(2, dim=-1)
        return nn.functional.pad(left, (1, 0)).softmax(1) + right.amax(1, keepdim=True).mean(), self.recurrent(x)[0]


@pytest.mark.slow
@pytest.mark.parametrize("version", WHEELS)
def test_a_release_takes_what_the_table_says_and_runs_what_is_written_for_it(version: str, tmp_path: Path) -> None:
    release = understand_target(f"onnxruntime=={version}")
    newest = {"1.15": 19}.get(release.version, release.opset)  # which loads, and lacks kernels
    opsets = {opset: smallest_file(tmp_path / f"opset{opset}.onnx", opset, 8) for opset in range(14, 28)}
    ir_versions = {one: smallest_file(tmp_path / f"ir{one}.onnx", 14, one) for one in range(7, 15)}
    torch.manual_seed(0)
    mixed = tmp_path / "mixed.onnx"
    result = anyshape.export(
        Mixed(), torch.randn(2, 3, 8), mixed, dims={"x": "batch seq 8"}, target=f"onnxruntime=={version}", quick=True
    )
    assert result.opset == min(release.opset, 23)
    told = told_by(version, tmp_path / "runtime", [*opsets.values(), *ir_versions.values(), mixed])
    assert max(opset for opset in opsets if told[f"opset{opset}"]) == newest
    assert max(one for one in ir_versions if told[f"ir{one}"]) == release.ir_version
    expected = [
        float(one.astype(np.float64).sum()) for one in Session(mixed).run({"x": np.ones((2, 2, 8), np.float32)})
    ]
    assert told["mixed"] == pytest.approx(expected, rel=1e-4)
