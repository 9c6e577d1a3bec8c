"""What the commands ask the library for: whole commands on a real file, options on their way, and no torch."""

from __future__ import annotations

import inspect as python_inspect
import json
import os
import re
from pathlib import Path

import pytest
import torch

import anyshape
from tests.cli.project import TOKENS, process, run


def shown(text: str) -> str:
    text = re.sub(r"ONNX Runtime [\d.]+", "ONNX Runtime N", text)
    text = re.sub(r"at most [\d.]+ x", "at most N x", text)
    return re.sub(r"[\d.]+ s\b|opset \d+|\d+ sizes|\(\d+\)|to \d+", "N", text)


def test_export_writes_the_file_and_prints_the_result_alone(exported):
    path, result = exported
    assert result.exit_code == 0, result.output
    assert path.is_file()
    assert (
        shown(result.stdout).replace(f"{path.parent}/", "")
        == """\
checked: net.onnx, right at N in ONNX Runtime N against PyTorch
  input    tokens  int64[batch, seq]
  output   output  float32[batch, seq, 3]
  dims     batch 1.., seq 1..6
  run      batch 1 N N; seq 1 N N
  error    at most N x the model's own rounding noise (8 is allowed)
  took     N to convert by torch.export (N), N to check
  note     RANDOM WEIGHTS: `model.py:Net` loads none; give --weights FILE, or --weights random where that is meant
"""
    )


def test_check_meets_the_same_random_model_again(exported, folder):
    result = run("check", exported[0], f"{folder}/model.py:Net", "--quick", "--quiet")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("checked: net.onnx, right at ")


RANDOM = "loads none; give --weights FILE, or --weights random where that is meant"


def test_check_names_other_weights_instead_of_a_line(exported, folder):
    result = run("check", exported[0], f"{folder}/model.py:Net", "--quick", "--seed", 1, "--quiet")
    assert result.exit_code == 1
    assert re.sub(r"by \S+ \(allowed \S+\)", "by N", result.stdout) == (
        "refused: the weights of file and model differ\n\n"
        "error[other-weights]: the file holds other weights than the model\n"
        "  --> net.onnx:1:1\n"
        "  = note: 2 of 2 weights that can be compared differ: `embedding.weight`, `linear.weight`\n"
        "  = note: so `output` differs by N at batch = 3, seq = 4\n"
        "  = help: give the weights that the file was exported with: --weights FILE\n"
    )


def notes_of(*arguments: object) -> list[str]:
    result = run(*arguments, "--quiet", "--json")
    return json.loads(result.stdout)["notes"]


def test_random_weights_are_told_unless_they_are_meant(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "layers.py").write_text(
        "import torch\nfrom torch import nn\nplain = nn.ReLU()\nones = nn.LayerNorm(4)\nnet = nn.Linear(4, 2)\n"
        "def trained():\n    made = nn.Linear(4, 2)\n    made.load_state_dict(made.state_dict())\n    return made\n"
    )

    def notes(name: str, *more: object) -> list[str]:
        shown = ["--input", "input: float32[batch, 4]", "--quick", *more]
        return notes_of("export", f"layers.py:{name}", "-o", tmp_path / "m.onnx", *shown)

    assert notes("net") == [f"RANDOM WEIGHTS: `layers.py:net` {RANDOM}"]
    for name in ("plain", "ones", "trained"):
        assert notes(name) == []
    assert notes("net", "--weights", "random") == notes("net", "--seed", 0) == []
    torch.save(torch.nn.Linear(4, 2).state_dict(), folder / "state.pt")
    assert notes("net", "--weights", "state.pt") == []
    # the file holds trained weights now, and the command line gives none
    found = run("check", tmp_path / "m.onnx", "layers.py:net", "--quick", "--json", "--quiet")
    document = json.loads(found.stdout)
    assert document["notes"][0] == f"RANDOM WEIGHTS: `layers.py:net` {RANDOM}"
    assert [one["message"] for one in document["findings"]] == ["the file holds other weights than the model"]


def test_check_can_run_one_size(exported, folder):
    result = run("check", exported[0], f"{folder}/model.py:Net", "--at", "batch=1,seq=2", "--json")
    assert json.loads(result.stdout)["verification"]["sizes_run"] == [{"batch": 1, "seq": 2}]


@pytest.mark.parametrize("target", ["model.py:Net", None])
def test_check_says_that_the_contract_excludes_a_size(exported, folder, monkeypatch, target):
    monkeypatch.chdir(folder)
    arguments = ["check", exported[0], *filter(None, [target]), "--at", "batch=2,seq=600", "--quiet"]
    result = run(*arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines()[-1] == "error: the contract of `net.onnx` excludes seq = 600: it is for seq 1..6"
    result = run(*arguments, "--size", "seq=1..9")
    assert result.stderr.splitlines()[-1] == "error: what was declared excludes seq = 600: it is for seq 1..9"
    assert run(*arguments, "--size", "seq=1..900").exit_code == 0


def test_check_without_a_model_holds_the_file_to_its_shapes(exported):
    result = run("check", exported[0], "--size", "batch=1..3")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("checked: net.onnx, keeps the shapes it declares at ")
    assert result.stderr == f"checking {exported[0]}\n"


def test_inspect_shows_what_stands_in_the_file(exported):
    result = run("inspect", exported[0])
    assert result.exit_code == 0, result.output
    _, *lines, evidence = result.stdout.splitlines()
    assert lines == [
        "  input    tokens  int64[batch, seq]",
        "  output   output  float32[batch, seq, 3]",
        "  dims     batch 1.., seq 1..6",
        f"  contract checked by anyshape {anyshape.__version__}",
    ]
    assert re.fullmatch(r"  checked  at \d+ sizes in ONNX Runtime \S+ against PyTorch, error at most .*", evidence)
    assert json.loads(run("inspect", exported[0], "--json").stdout)["dims"] == {"batch": "1..", "seq": "1..6"}


def test_a_refused_export_leaves_what_was_there(folder, tmp_path):
    path = tmp_path / "old.onnx"
    path.write_bytes(b"old")
    result = run(
        "export", f"{folder}/model.py:Pinned", "-o", path, "--input", "x: float32[batch, 8]", "--size", "batch=3..9"
    )
    assert result.exit_code == 3
    assert result.stdout.startswith("refused: no file written\n")
    assert "error[pinned-dim]: `batch` cannot vary" in result.stdout
    assert [file.name for file in tmp_path.iterdir()] == ["old.onnx"]
    assert path.read_bytes() == b"old"


def test_a_refusal_as_json_is_the_result(folder, tmp_path):
    arguments = ["--input", "x: float32[batch, 8]", "--size", "batch=3..9", "--json", "--quiet"]
    result = run("export", f"{folder}/model.py:Pinned", "-o", tmp_path / "m.onnx", *arguments)
    assert result.exit_code == 3
    document = json.loads(result.stdout)
    assert document["verdict"] == "refused"
    assert [finding["rule"] for finding in document["findings"]] == ["pinned-dim"]
    assert result.stderr.splitlines()[-1] == "refused: no file written"


# ---- pages


def test_every_verb_writes_a_page_of_what_it_found(exported, folder, tmp_path):
    """The page of a refusal is the most wanted one; exit codes stay what they are."""
    target, x = f"{folder}/model.py:Pinned", ("--input", "x: float32[batch, 6]")
    static = tmp_path / "static.onnx"
    anyshape.export(torch.nn.Linear(3, 2), torch.randn(2, 3), static, dims={}, quick=True)
    commands = {
        "export": ("export", target, "-o", tmp_path / "m.onnx", *x, "--quick"),
        "diagnose": ("diagnose", target, *x),
        "check": ("check", exported[0], "--quick"),
        "make-dynamic": ("make-dynamic", static, "-o", tmp_path / "d.onnx", "--quick"),
    }
    expected = {
        "export": (3, "refused"),
        "diagnose": (1, "refused"),
        "check": (0, "checked"),
        "make-dynamic": (0, "checked"),
    }
    for verb, arguments in commands.items():
        page = tmp_path / f"{verb}.json"
        ran = run(*arguments, "--report", page)
        assert (ran.exit_code, json.loads(page.read_text())["verdict"]["verdict"]) == expected[verb], ran.output
        assert f"wrote {verb}.json" in ran.stderr
    assert json.loads((tmp_path / "diagnose.json").read_text())["findings"][0]["rule"] == "pinned-dim"


def test_a_report_is_written_of_a_file_with_and_without_its_model(exported, folder, tmp_path):
    page = tmp_path / "r.html"
    for target in ((), (f"{folder}/model.py:Net",)):
        ran = run("report", exported[0], *target, "-o", page, "--quick", "--quiet")
        assert ran.exit_code == 0, ran.output
        against = " against PyTorch" if target else ""
        what = "right at" if target else "keeps the shapes it declares at"
        told = re.sub(r"\d+ kB|\d+ sizes|Runtime [\d.]+", "N", ran.stdout)
        assert told == f"wrote r.html (N)\nchecked: net.onnx, {what} N in ONNX N{against}\n"


def test_a_checkpoints_folder_has_no_single_page(tmp_path):
    ran = run("export", tmp_path, "-o", tmp_path / "out", "--report", "r.html")
    assert ran.exit_code == 2
    assert "--report is about a model in a Python file, but" in ran.stderr


# ---- options


def test_options_reach_the_library(asked, folder):
    options = [
        *("--opset", 18, "--target", "onnxruntime==1.18", "--narrow", "--unchecked", "my::Op", "--dtype", "float16"),
        *("--atol", "1e-3", "--rtol", "1e-4", "--budget", 5, "--thorough", "--metadata", "a=b=c", "--no-external-data"),
        "--no-optimize",
    ]
    found = asked(f"{folder}/model.py:Net", "--input", TOKENS, *options).arguments
    expected = {
        "opset_version": 18, "target": "onnxruntime==1.18", "narrow": True, "unchecked": ("my::Op",),
        "dtype": "float16", "atol": 1e-3, "rtol": 1e-4, "budget": 5.0, "quick": False, "thorough": True,
        "metadata": {"a": "b=c"}, "external_data": False, "optimize": False, "seed": 0, "f": Path("m.onnx").absolute(),
    }  # fmt: skip
    assert {name: found[name] for name in expected} == expected


def test_every_option_is_an_argument_of_the_library():
    from anyshape.cli.tasks import CHECK_OPTIONS, EXPORT_OPTIONS
    from anyshape.verbs.export import export

    assert {*EXPORT_OPTIONS, *CHECK_OPTIONS} <= set(python_inspect.signature(export).parameters)
    assert {*CHECK_OPTIONS, "at"} <= set(python_inspect.signature(anyshape.check).parameters)


# ---- without torch


@pytest.fixture
def without_torch(tmp_path) -> dict[str, str]:
    """An environment whose torch cannot be imported."""
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])}


def test_help_inspect_and_check_alone_do_without_torch(exported, without_torch):
    for arguments in (
        ["--version"],
        ["--help"],
        ["export", "-h"],
        ["inspect", exported[0]],
        ["check", exported[0], "--quick"],
        ["report", exported[0], "--quick", "-o", exported[0].with_suffix(".html")],
    ):
        result = process(*arguments, env=without_torch)
        assert result.returncode == 0, result.stderr
        assert result.stdout


def test_a_missing_torch_gives_one_sentence_with_the_command(folder, without_torch):
    result = process("export", f"{folder}/model.py:Net", "-o", "m.onnx", "--quiet", env=without_torch)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "error: torch is not installed: pip install 'anyshape[cpu]' (or 'anyshape[gpu]')\n"


WANDERER = """
import os
import torch

os.chdir(os.path.dirname(__file__) + "/elsewhere")


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        os.chdir("/")
        return x * self.w


inputs = {"x": torch.ones(1, 3)}
"""


def test_paths_are_those_of_the_folder_in_which_the_command_was_given(tmp_path, monkeypatch):
    """Wherever the code of the model changes to, when it is loaded and when it runs."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "wanderer.py").write_text(WANDERER)
    torch.save({"w": torch.tensor([1.0, 2.0, 3.0])}, "w.pt")
    target, weights = "wanderer.py:Net", ("--weights", "w.pt", "--quick", "--quiet")
    for command in (
        ("export", target, "--dim", "x=_ _", "-o", "static.onnx", *weights),
        ("make-dynamic", "static.onnx", "--model", target, "-o", "free.onnx", *weights),
        ("check", "free.onnx", target, *weights),
    ):
        monkeypatch.chdir(tmp_path)
        done = run(*command)
        assert done.exit_code == 0, (command, done.output)
    monkeypatch.chdir(tmp_path)
    torch.save({"v": torch.ones(3)}, "w.pt")
    done = run("check", "free.onnx", target, *weights)
    assert done.output == f"error: `{tmp_path}/w.pt` does not fit `Net`: `w` is missing, `v` is not in the model\n"
