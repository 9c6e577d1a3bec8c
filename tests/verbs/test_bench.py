"""What `bench` promises: sizes as asked, a file beside its model and others, and sentences for what cannot be timed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from torch import nn

import anyshape
from anyshape.errors import DeclarationError
from anyshape.results.times import Times
from tests.cli.project import run
from tests.onnxfile.strangers import endless_loop, text_model

RELATED = {"dims": {"batch": "1..8", "seq": "1..512"}, "where": ["batch*seq <= 1024"]}


def _written(path: Path, text: str, contract: dict[str, object] | None = None) -> Path:
    model = text_model(text)
    if contract is not None:
        entry = {"version": "1", "verdict": "checked", "limits": [], "outputs": {}, "constants": {}, **contract}
        model.metadata_props.add(key="anyshape.contract", value=json.dumps(entry))
    path.write_bytes(model.SerializeToString())
    return path


NEGATED = "main (float[batch, seq] x) => (float[batch, seq] y) { y = Neg(x) }"


@pytest.fixture
def negated(tmp_path: Path) -> Path:
    return _written(tmp_path / "model.onnx", NEGATED, RELATED)


def _few(path: Path, *more: object, **options: object) -> Times:
    return anyshape.bench(path, *more, rounds=6, threads=1, **options)


def test_a_file_alone_is_timed_at_a_few_sizes_of_its_contract(negated: Path) -> None:
    times = _few(negated)
    assert [dict(sizes) for sizes in times.sizes] == [
        {"batch": 1, "seq": 16}, {"batch": 1, "seq": 64}, {"batch": 4, "seq": 16}, {"batch": 8, "seq": 16},
        {"batch": 1, "seq": 256},
    ]  # fmt: skip
    (series,) = times.series
    assert series.name == "model.onnx"
    assert all(point is not None for point in series.points)
    assert times.ratios == ()
    assert list(times.nodes.values()) == [("Neg", 1.0)]


def test_sizes_are_those_that_are_asked_for(negated: Path) -> None:
    times = _few(negated, sizes={"seq": [8, 512], "batch": [2, 4]})
    assert [tuple(sizes.values()) for sizes in times.sizes] == [(2, 8), (4, 8), (2, 512)]
    assert "left out, since the file is not for it: seq = 512, batch = 4" in times.notes


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"sizes": {"seq": [600]}}, "the contract of `model.onnx` excludes seq = 600: it is for seq 1..512"),
        (
            {"sizes": {"len": [3]}},
            "sizes given for `len`, but the file only names `batch`, `seq`",
        ),
        (
            {"sizes": {"seq": [512], "batch": [8]}},
            "`model.onnx` is for none of the sizes that are asked for: it is for batch * seq <= 1024",
        ),
        (
            {"sizes": {"seq": [8], "batch": [2]}, "where": ["batch >= seq"]},
            "`model.onnx` is for none of the sizes that are asked for: it is for batch * seq <= 1024 and batch >= seq",
        ),
        ({"threads": 0}, "threads is 0: give a whole number from 1 to 1024"),
        ({"rounds": 0}, "rounds is 0: give a whole number from 1 to 1000000000"),
        ({"rounds": 2.5}, "rounds is 2.5: give a whole number from 1 to 1000000000"),
        ({"session_options": "x=1"}, "session_options is 'x=1': give a dict, such as {'enable_mem_pattern': False}"),
        ({"dims": {"x": "batch"}}, "dims= is about the model, but no model is given: pass it as the second argument"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_sentence(negated: Path, options: dict[str, object], sentence: str) -> None:
    with pytest.raises(DeclarationError) as refusal:
        anyshape.bench(negated, **options)
    assert str(refusal.value) == sentence


def test_a_provider_that_is_not_there_is_one_sentence(negated: Path) -> None:
    with pytest.raises(DeclarationError, match=r"^this ONNX Runtime has no `NoneExecutionProvider`, only "):
        anyshape.bench(negated, providers=["NoneExecutionProvider"])


def test_sizes_that_exclude_each_other_are_one_sentence(tmp_path: Path) -> None:
    contract = {"dims": {"batch": "1..4", "seq": "8..16"}, "where": ["batch > seq"]}
    with pytest.raises(DeclarationError) as refusal:
        anyshape.bench(_written(tmp_path / "m.onnx", NEGATED, contract))
    assert str(refusal.value) == (
        "no sizes were found that fit `batch > seq` with batch 1..4, seq 8..16: at the smallest, batch = 1, seq = 8, "
        "`batch > seq` does not hold"
    )


def test_an_input_of_texts_is_one_sentence(tmp_path: Path) -> None:
    path = _written(tmp_path / "m.onnx", "main (string[n] x) => (string[n] y) { y = Identity(x) }")
    with pytest.raises(DeclarationError) as refusal:
        anyshape.bench(path)
    assert str(refusal.value) == "input `x` is string, so no call can be made up: give the model, too"


def test_a_file_that_fails_at_one_size_is_timed_at_the_others(tmp_path: Path) -> None:
    text = "main (float[n] x) => (float[n] y) <int64[2] s = {2, -1}, int64[1] t = {-1}> "
    path = _written(tmp_path / "m.onnx", text + "{ z = Reshape(x, s) y = Reshape(z, t) }")
    times = _few(path, sizes={"n": [4, 5]})
    assert [point is not None for point in times.series[0].points] == [True, False]
    assert [note for note in times.notes if note.startswith("`m.onnx` is not timed at n = 5: fails in ONNX Runtime: ")]


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(x)


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Net]:
    torch.manual_seed(0)
    model, path = Net(), tmp_path_factory.mktemp("net") / "net.onnx"
    anyshape.export(model, torch.randn(2, 4), path, dims={"x": "batch 4"}, quick=True)
    return path, model


def test_a_model_runs_beside_its_file(net: tuple[Path, Net]) -> None:
    path, model = net
    times = _few(path, model, torch.randn(2, 4), compiled=False, sizes={"batch": [3]}, against=[path])
    assert [series.name for series in times.series] == ["net.onnx", f"{path.parent.name}/net.onnx", "eager"]
    assert {ratio.name for ratio in times.ratios} == {f"{path.parent.name}/net.onnx", "eager"}
    eager = times.series[2].points[0]
    assert eager is not None
    assert eager.memory is None


def test_another_model_is_told_and_the_file_not_timed(net: tuple[Path, Net]) -> None:
    times = _few(net[0], Net(), torch.randn(2, 4), compiled=False, sizes={"batch": [3]})
    assert times.series[0].points == (None,)
    assert times.ratios == ()
    (note,) = [note for note in times.notes if note.startswith("`net.onnx` is not timed at batch = 3: ")]
    assert "gives other numbers than PyTorch: output 0 differs by " in note


@pytest.mark.usefixtures("strangers")
def test_a_strangers_file_is_stopped(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(endless_loop("n").SerializeToString())
    with pytest.raises(DeclarationError) as refusal:
        anyshape.bench(path)
    assert str(refusal.value) == (
        "`m.onnx` was still running after 2 s and was stopped: trusted=True runs it without limits"
    )


# ---- the command line


def test_the_command_prints_the_table_and_writes_the_picture(negated: Path) -> None:
    picture = negated.with_name("times.svg")
    options = ("--size", "seq=16", "--rounds", "6", "--threads", "1", "--quiet")
    ran = run("bench", str(negated), *options, "-o", str(picture))
    assert ran.exit_code == 0
    assert ran.stdout.startswith("timed: model.onnx at 1 size in ONNX Runtime ")
    assert picture.read_text().startswith("<svg ")
    document = json.loads(run("bench", str(negated), *options, "--json").stdout)
    assert (document["threads"], document["rounds"], document["sizes"]) == (1, 6, [{"batch": 1, "seq": 16}])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--threads", "0"), "--threads is 0: give a whole number from 1 to 1024"),
        (("--size", "seq=600"), "the contract of `model.onnx` excludes seq = 600: it is for seq 1..512"),
        (("--against", "none.onnx"), "there is no file `none.onnx`"),
        (("-o", "t.pdf"), "`t.pdf` is neither .svg or .png, for a picture, nor .json, for the figures"),
    ],
)
def test_wrong_usage_ends_with_code_two(negated: Path, arguments: tuple[str, ...], sentence: str) -> None:
    ran = run("bench", str(negated), *arguments, "--quiet")
    assert (ran.exit_code, ran.stderr) == (2, f"error: {sentence}\n")


def test_a_file_that_is_timed_nowhere_ends_with_code_one(tmp_path: Path) -> None:
    text = "main (float[n] x) => (float[n] y) <float[7] k = {1, 1, 1, 1, 1, 1, 1}> { z = Add(k, x) y = Neg(z) }"
    path = _written(tmp_path / "m.onnx", text)
    ran = run("bench", str(path), "--size", "n=3", "--quiet")
    assert ran.exit_code == 1
    assert "  note     `m.onnx` is not timed at n = 3: fails in ONNX Runtime: Add node" in ran.stdout


@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_an_interrupt_ends_all_processes(negated: Path) -> None:
    command = [sys.executable, "-m", "anyshape", "bench", str(negated), "--rounds", "10000000", "--threads", "1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stderr is not None
        while "timing at" not in process.stderr.readline():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
    deadline = time.monotonic() + 20
    while _group_lives(process.pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not _group_lives(process.pid)


def _group_lives(number: int) -> bool:
    try:
        os.killpg(number, 0)
    except ProcessLookupError:
        return False
    return True


def test_without_a_model_torch_is_not_loaded(negated: Path) -> None:
    timed = f"anyshape.bench({str(negated)!r}, rounds=1, sizes={{'seq': [4]}})"
    code = f"import anyshape, sys; {timed}; print('torch' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"
