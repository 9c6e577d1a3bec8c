"""The command line: exit codes, what stands on stdout and stderr, and messages read whole."""

from __future__ import annotations

import inspect as python_inspect
import io
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import torch
from click.testing import CliRunner, Result
from torch import nn

import anyshape
from anyshape.cli import console, program
from anyshape.results.attempt import Attempt
from anyshape.results.result import ExportError

torch.set_num_threads(1)

TOKENS = "tokens: int64[batch, seq] < 50"
MODEL = '''
"""A model and what belongs to it."""
import ctypes, os
import torch
from torch import nn

print("the file prints")

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 4)
        self.linear = nn.Linear(4, 3)

    def forward(self, tokens):
        print("the model prints")
        os.write(1, b"C code prints\\n")
        ctypes.CDLL(None).puts(b"C code prints late")
        return self.linear(self.embedding(tokens))

    def encode(self, tokens):
        return self.embedding(tokens)

    @classmethod
    def small(cls):
        return cls()

class Pinned(nn.Module):
    def forward(self, x):
        return x.reshape(4, 6) + 1

class Needs(nn.Module):
    def __init__(self, width):
        super().__init__()

class Strided(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Conv2d(1, 1, 9, stride=2)

    def forward(self, image):
        return self.layers(image)

def build():
    return Net()

def number():
    return 3

def fails():
    return undefined_name

def double(x, states):
    return x * 2 + states[0] - states[1]["b"]

def joined(first, *rest):
    return torch.cat([first, *rest])

instance = Net()
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("project")
    (place / "model.py").write_text(MODEL)
    return place


def run(*arguments: object) -> Result:
    return CliRunner().invoke(program, [str(one) for one in arguments])


@pytest.fixture(scope="module")
def exported(folder) -> tuple[Path, Result]:
    """One real export, which all who need a file share."""
    path = folder / "net.onnx"
    return path, run("export", f"{folder}/model.py:Net", "-o", path, "--input", TOKENS, "--size", "seq=1..6")


class Recorded(Exception):
    """Raised instead of an export: what it would have been given."""

    def __init__(self, model, arguments) -> None:
        super().__init__()
        self.model, self.arguments = model, arguments


@pytest.fixture
def asked(monkeypatch):
    """Runs `export` up to the library, and returns what the library would be asked for."""

    def record(model, **arguments):
        raise Recorded(model, arguments)

    monkeypatch.setattr("anyshape.verbs.export.export", record)

    def ask(*arguments: object) -> Recorded:
        from anyshape.cli import endings

        seen = []
        original = endings.ending_of
        monkeypatch.setattr(console, "ending_of", lambda error, **rest: seen.append(error) or original(error, **rest))
        result = run("export", *arguments, "-o", "m.onnx")
        assert isinstance(seen[0], Recorded), result.output
        return seen[0]

    return ask


# ---- export, check, inspect


def shown(text: str) -> str:
    text = re.sub(r"ONNX Runtime [\d.]+", "ONNX Runtime N", text)
    text = re.sub(r"at most [\d.]+ x", "at most N x", text)
    return re.sub(r"[\d.]+ s\b|opset \d+|\d+ sizes|\(\d+\)|to \d+", "N", text)


def test_export_writes_the_file_and_prints_the_result_alone(exported):
    path, result = exported
    assert result.exit_code == 0, result.output
    assert path.is_file()
    assert (
        shown(result.stdout)
        == """\
checked: net.onnx, right at N in ONNX Runtime N against PyTorch
  input    tokens  int64[batch, seq]
  output   output  float32[batch, seq, 3]
  dims     batch 1.., seq 1..6
  run      batch 1 N N; seq 1 N N
  error    at most N x the model's own rounding noise (8 is allowed)
  took     N to convert by torch.export (N), N to check
"""
    )


def test_progress_is_plain_lines_on_stderr(exported, folder):
    lines = exported[1].stderr.splitlines()
    assert [line for line in lines if "print" not in line] == [
        f"loading {folder}/model.py:Net",
        "running the model",
        "converting with torch.export",
        "checking what torch.export made",
    ]


def test_check_meets_the_same_random_model_again(exported, folder):
    result = run("check", exported[0], f"{folder}/model.py:Net", "--quick", "--quiet")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("checked: net.onnx, right at ")


def test_check_says_no_to_another_model(exported, folder):
    result = run("check", exported[0], f"{folder}/model.py:Net", "--quick", "--seed", 1)
    assert result.exit_code == 1
    assert result.stdout.startswith("refused: the file is wrong\n")
    assert "error[wrong-values]: " in result.stdout


def test_check_can_run_one_size(exported, folder):
    result = run("check", exported[0], f"{folder}/model.py:Net", "--at", "batch=1,seq=2", "--json")
    assert json.loads(result.stdout)["verification"]["sizes_run"] == [{"batch": 1, "seq": 2}]


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


# ---- wrong usage

NO_TARGET = "names no model: write `FILE.py:NAME` or `package.module:NAME`"
MISUSES = {
    "model.py": f"`model.py` {NO_TARGET}",
    "model.py:": f"`model.py:` {NO_TARGET}",
    "model.py:3": f"`model.py:3` {NO_TARGET}",
    "absent.py:Net": "there is no file `absent.py`",
    "absent.module:Net": "there is no module `absent`",
    "model.py:Nett": "`model.py` has no `Nett`; did you mean `Net`?",
    "model.py:instance.encoder": "`Net` has no `encoder`; did you mean `encode`?",
    "model.py:Needs": "`Needs` needs `width`: name an instance, or a function that returns one",
    "model.py:number": "`number()` returns a int, not a module",
    "model.py:fails": "`model.py:fails` cannot be loaded: NameError: name 'undefined_name' is not defined "
    "(model.py:51)",
    "broken.py:Net": "`broken.py:Net` cannot be loaded: SyntaxError: '(' was never closed (broken.py, line 2)",
    "exits.py:Net": "`exits.py:Net` cannot be loaded: SystemExit: 7 (exits.py:3)",
    "needs.py:Net": "`needs.py:Net` cannot be loaded: ModuleNotFoundError: No module named 'no_such_package' "
    "(needs.py:1)",
    "model.py:Net": "`model.py:Net` has no inputs to run on: give --input 'tokens: float32[batch, 8]', "
    "or define `inputs` beside it",
    "model.py:double": "`model.py:double` has no inputs to run on: give --input 'x: float32[batch, 8]' for each of "
    "`x`, `states`, or define `inputs` beside it",
}


@pytest.mark.parametrize("target", MISUSES)
def test_a_target_that_is_none_gives_one_sentence(folder, monkeypatch, target):
    (folder / "broken.py").write_text("import torch\nNet = torch.nn.Linear(1, 2")
    (folder / "exits.py").write_text("import sys\n\nsys.exit(7)\n")
    (folder / "needs.py").write_text("import no_such_package\n")
    monkeypatch.chdir(folder)
    before = list(sys.path)
    result = run("export", target, "-o", "m.onnx", "--quiet")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines()[-1] == f"error: {MISUSES[target]}"
    assert sys.path == before


WRONG_INPUTS = {
    "x: float31[batch]": "`x` is declared float31, which is no element type; did you mean `float32`?",
    "x: float32[batch, _]": "`x` has `_` on axis 1, which tells no size: write a name or a number",
    "x: float32[..., 3]": "`x` has `...` on axis 0, which tells no size: write a name or a number",
    "x.*: float32[batch]": "`x.*` is a wildcard, but every input needs values of its own: wildcards belong to --dim",
    "x: int64[batch] < 0": "`x` is declared < 0: no value is left",
    "x: float32[batch - 9]": "`x` has no shape at batch = 3: give --size for its dims",
    "x: float32[batch]": "the example does not fit `Net(tokens)`: missing a required argument: 'tokens'",
}


@pytest.mark.parametrize("text", WRONG_INPUTS)
def test_an_input_that_is_none_gives_one_sentence(folder, text):
    result = run("export", f"{folder}/model.py:Net", "-o", "m.onnx", "--input", text, "--quiet")
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == f"error: {WRONG_INPUTS[text]}"


USAGE_ERRORS = {
    ("export", "model.py:Net"): "Missing option '-o' / '--output'.",
    ("export", "m:N", "-o", "m", "--input", "x"): "Invalid value for '--input': `x` is not an input: write "
    "`name: dtype[axes]`, such as `tokens: int64[batch, seq] < 1000`",
    ("export", "m:N", "-o", "m", "--dim", "x"): "Invalid value for '--dim': `x` has no name and `=`: write NAME=AXES",
    ("export", "m:N", "-o", "m", "--quick", "--thorough"): "--quick and --thorough exclude each other",
    ("check", "m.onnx", "--at", "batch"): "Invalid value for '--at': `batch` is no list of sizes: write batch=1,seq=1",
    ("check", "m.onnx", "--dim", "x=batch"): "--dim is about the model: give TARGET, too",
    ("check", "m.onnx", "--weights", "w.pt"): "--weights is about the model: give TARGET, too",
}


@pytest.mark.parametrize("arguments", USAGE_ERRORS, ids=" ".join)
def test_wrong_options_end_with_code_two(arguments):
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == f"Error: {USAGE_ERRORS[arguments]}"
    document = json.loads(run(*arguments, "--json").stdout)
    assert document == {"error": {"kind": "usage", "message": USAGE_ERRORS[arguments]}}


def test_errors_are_json_too(tmp_path):
    result = run("inspect", tmp_path / "no.onnx", "--json")
    sentence = f"there is no file `{tmp_path / 'no.onnx'}`"
    assert result.exit_code == 2
    assert json.loads(result.stdout) == {"error": {"kind": "declaration", "message": sentence}}
    assert result.stderr == f"error: {sentence}\n"


# ---- other endings


def ends_with(monkeypatch, error: BaseException, *arguments: str) -> Result:
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("anyshape.verbs.inspect.inspect", fail)
    return run("inspect", "m.onnx", *arguments)


def test_a_bug_of_ours_says_so(monkeypatch):
    result = ends_with(monkeypatch, ZeroDivisionError("no\nway"))
    assert (result.exit_code, result.stdout) == (4, "")
    assert result.stderr == (
        "error: this is a bug in anyshape: ZeroDivisionError: no way; --debug shows the traceback\n"
    )
    assert "Traceback (most recent call last)" in ends_with(monkeypatch, ZeroDivisionError(), "--debug").stderr


def test_the_codes_of_other_endings(monkeypatch):
    assert ends_with(monkeypatch, KeyboardInterrupt()).exit_code == 130
    assert ends_with(monkeypatch, OSError(28, "No space left on device")).stderr == (
        "error: the system refuses: [Errno 28] No space left on device\n"
    )
    stopped = ends_with(monkeypatch, SystemExit(0))
    assert (stopped.exit_code, stopped.stderr) == (2, "error: the model's own code ended the program with sys.exit\n")
    missing = ends_with(monkeypatch, ModuleNotFoundError(name="onnxruntime"))
    assert (missing.exit_code, missing.stderr) == (
        2,
        "error: onnxruntime is not installed: pip install 'anyshape[cpu]' (or 'anyshape[gpu]')\n",
    )


def test_debug_shows_the_traceback_of_every_attempt_and_what_made_it_slow(monkeypatch):
    forced = Attempt("x", "wrong", forced_by=("aten.copy_.default", "cond"))
    inlined = Attempt("y", "wrong", inlined=("aten.trapezoid.dx",))
    attempts = (Attempt("torch.export", "failed", "ValueError: inner", 0.0, ValueError("inner")), forced, inlined)
    result = ends_with(monkeypatch, ExportError(anyshape.Result("refused", attempts=attempts)), "--debug")
    assert result.exit_code == 1
    assert "  tried    torch.export, failed: ValueError: inner" in result.stdout
    assert result.stderr == (
        "---- torch.export\nValueError: inner\n\n"
        "---- x: all in simpler operators because of aten.copy_.default, cond\n"
        "---- y: in simpler operators aten.trapezoid.dx\n"
    )


# ---- what TARGET may be


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Net", "Net"),
        ("instance", "Net"),
        ("build", "Net"),
        ("Net.small", "Net"),
        ("instance.linear", "Linear"),
        ("Net.linear", "Linear"),
        ("build.linear", "Linear"),
        ("Net.encode", "method"),
        ("double", "function"),
    ],
)
def test_a_target_may_be_a_module_a_class_a_factory_a_method_or_a_function(asked, folder, name, kind):
    parameter = {"Linear": "input", "function": "x"}.get(kind, "tokens")
    extra = ["--input", "states: float32[batch]"] if kind == "function" else []
    found = asked(f"{folder}/model.py:{name}", "--input", f"{parameter}: int64[batch, 4]", *extra).model
    assert type(found).__name__ == kind


def test_a_file_of_a_package_may_import_relatively_and_runs_once(asked, tmp_path, monkeypatch):
    package = tmp_path / "mypackage"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "layers.py").write_text("import torch\nlayer = torch.nn.Linear(4, 2)\n")
    (package / "net.py").write_text("print('runs')\nfrom .layers import layer as net\ninputs = 3\n")
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    by_path = asked("mypackage/net.py:net", "--input", "input: float32[batch, 4]").model
    by_name = asked("mypackage.net:net", "--input", "input: float32[batch, 4]").model
    assert isinstance(by_path, nn.Linear)
    assert by_name is by_path
    assert sys.path == before


def test_a_file_may_import_its_neighbours_and_be_imported_by_them(asked, tmp_path):
    (tmp_path / "main_model.py").write_text("runs = []\nruns.append(1)\nimport neighbour\nnet = neighbour.net\n")
    (tmp_path / "neighbour.py").write_text("import main_model, torch\nnet = torch.nn.Linear(4, len(main_model.runs))\n")
    before = list(sys.path)
    assert asked(tmp_path / "main_model.py:net", "--input", "input: float32[batch, 4]").model.out_features == 1
    assert sys.path == before
    assert "main_model" not in sys.modules


# ---- inputs, dims and sizes


def test_inputs_on_the_command_line_are_dims_and_a_random_example(asked, folder):
    arguments = ["--input", TOKENS, "--size", "seq=2..64", "--size", "batch=8.."]
    found = asked(f"{folder}/model.py:Net", *arguments).arguments
    assert {name: [str(axis) for axis in axes] for name, axes in found["dims"].items()} == {"tokens": ["batch", "seq"]}
    assert found["sizes"] == {"seq": "2..64", "batch": "8.."}
    tokens = found["kwargs"]["tokens"]
    assert tokens.dtype == torch.int64
    assert tokens.shape == (8, 3)
    assert 1 < tokens.max() < 50
    again = asked(f"{folder}/model.py:Net", *arguments).arguments["kwargs"]["tokens"]
    other = asked(f"{folder}/model.py:Net", *arguments, "--seed", 1).arguments["kwargs"]["tokens"]
    assert torch.equal(tokens, again)
    assert not torch.equal(tokens, other)


def test_random_values_suit_their_type(asked, folder):
    inputs = ["a: float32[4, 300]", "b: bool[200, n]", "c: int32[200, n]", "d: float16[4, 300] < 2", "e: int64[] < 9"]
    arguments = [part for text in inputs for part in ("--input", text)]
    (folder / "five.py").write_text("def five(a, b, c, d, e):\n    return a\n")
    drawn = asked(f"{folder}/five.py:five", *arguments).arguments["kwargs"]
    assert drawn["a"].min() < -1
    assert drawn["b"].any(-1).all()
    assert not drawn["b"].all()
    assert drawn["c"].dtype == torch.int32
    assert drawn["c"].unique().tolist() == [0, 1]
    assert (drawn["c"] == 1).any(-1).all()
    assert drawn["d"].dtype == torch.float16
    assert 1.5 < drawn["d"].max() <= 2
    assert drawn["e"].shape == ()


def test_example_sizes_are_pairwise_different_and_large_enough_for_the_model(asked, folder):
    found = asked(f"{folder}/model.py:Strided", "--input", "image: float32[batch, 1, height, width]").arguments
    assert found["kwargs"]["image"].shape == (16, 1, 17, 18)
    small = asked(f"{folder}/model.py:double", "--input", "x: float32[a, b + 1, c]", "--input", "states: float32[?]")
    assert small.arguments["kwargs"]["x"].shape[0] != small.arguments["kwargs"]["x"].shape[2]


def test_dotted_names_make_containers(asked, folder):
    texts = ["x: float32[batch, 2]", "states.0: float32[batch, 2]", "states.1.b: float32[batch, 2]"]
    arguments = [part for text in texts for part in ("--input", text)]
    found = asked(f"{folder}/model.py:double", *arguments).arguments["kwargs"]
    assert isinstance(found["states"], tuple)
    assert list(found["states"][1]) == ["b"]


def test_a_function_of_any_number_of_tensors_takes_them_by_position(asked, folder):
    texts = ["rest.0: float32[n, 2]", "rest.1: float32[m, 2]", "first: float32[k, 2]"]
    arguments = [part for text in texts for part in ("--input", text)]
    found = asked(f"{folder}/model.py:joined", *arguments).arguments
    assert [len(tensor) for tensor in found["args"]] == [5, 3, 4]
    assert found["kwargs"] == {}


FILES = {
    "inputs = (1, 2)": ((1, 2), None, False),
    "inputs = {'tokens': 1}": ({"tokens": 1}, None, False),
    "inputs = {'args': [1], 'kwargs': {'b': 2}}": ((1,), {"b": 2}, False),
    "def inputs(): return (1, 2)": ((1, 2), None, False),
    "def inputs(batch=3, seq=4): return (batch, seq)": ((3, 4), None, True),
    "def inputs(batch, seq=4): return (batch, seq)": ((), None, True),
}


@pytest.mark.parametrize("text", FILES)
def test_the_file_may_say_how_it_is_called(asked, tmp_path, text):
    declaration = "dims = {'input': 'batch 4', 'other': 'seq'}\nsizes = {'batch': '1..4'}\n"
    (tmp_path / "own.py").write_text(f"import torch\nnet = torch.nn.Linear(4, 2)\n{declaration}{text}")
    found = asked(tmp_path / "own.py:net", "--dim", "other=n", "--size", "n=2..").arguments
    args, kwargs, makes = FILES[text]
    assert (found["args"], found["kwargs"], found["make_inputs"] is not None) == (args, kwargs, makes)
    assert found["dims"] == {"input": "batch 4", "other": "n"}
    assert found["sizes"] == {"batch": "1..4", "n": "2.."}


def test_inputs_that_fail_are_named_with_their_line(tmp_path):
    (tmp_path / "own.py").write_text("import torch\nnet = torch.nn.ReLU()\ndef inputs():\n    return torch.randn(-1)\n")
    result = run("export", tmp_path / "own.py:net", "-o", tmp_path / "m.onnx", "--quiet")
    assert result.exit_code == 2
    assert re.fullmatch(
        rf"error: `inputs` of `{tmp_path}/own.py:net` fails: RuntimeError: .* \(own\.py:4\)\n", result.stderr
    )


def test_dims_that_are_no_dict_are_refused(tmp_path):
    (tmp_path / "own.py").write_text("import torch\nnet = torch.nn.ReLU()\ndims = ['batch']\n")
    result = run("export", tmp_path / "own.py:net", "-o", tmp_path / "m.onnx", "--quiet")
    assert result.stderr == f"error: `dims` of `{tmp_path}/own.py:net` is a list, not a dict\n"


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
        "metadata": {"a": "b=c"}, "external_data": False, "optimize": False, "seed": 0, "f": "m.onnx",
    }  # fmt: skip
    assert {name: found[name] for name in expected} == expected


def test_every_option_is_an_argument_of_the_library():
    from anyshape.cli.tasks import _CHECK_OPTIONS, _EXPORT_OPTIONS
    from anyshape.verbs.export import export

    assert {*_EXPORT_OPTIONS, *_CHECK_OPTIONS} <= set(python_inspect.signature(export).parameters)
    assert {*_CHECK_OPTIONS, "at"} <= set(python_inspect.signature(anyshape.check).parameters)


# ---- weights


def ask_with_weights(asked, folder: Path, path: Path, name: str = "Net"):
    return asked(f"{folder}/model.py:{name}", "--input", TOKENS, "--weights", path).model


def test_weights_are_loaded_into_the_model_or_the_owner_of_the_method(asked, folder, tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    torch.manual_seed(5)
    state = {"embedding.weight": torch.randn(50, 4), "linear.weight": torch.randn(3, 4), "linear.bias": torch.randn(3)}
    torch.save(state, tmp_path / "plain.pt")
    torch.save({"state_dict": state, "epoch": 3}, tmp_path / "checkpoint.pt")
    safetensors.save_file(state, tmp_path / "plain.safetensors")
    for file in ("plain.pt", "checkpoint.pt", "plain.safetensors"):
        assert torch.equal(ask_with_weights(asked, folder, tmp_path / file).linear.bias, state["linear.bias"])
    method = ask_with_weights(asked, folder, tmp_path / "plain.pt", "Net.encode")
    assert torch.equal(method.__self__.linear.bias, state["linear.bias"])


def test_weights_that_do_not_fit_give_one_sentence(folder, tmp_path):
    def sentence(value: object, name: str = "w.pt") -> str:
        torch.save(value, tmp_path / name)
        options = ["--input", TOKENS, "--weights", tmp_path / name, "--quiet"]
        result = run("export", f"{folder}/model.py:Net", "-o", tmp_path / "m.onnx", *options)
        assert result.exit_code == 2
        return result.stderr.splitlines()[-1].replace(f"{tmp_path}/", "")

    wide = {"embedding.weight": torch.zeros(50, 4), "linear.weight": torch.zeros(9, 4), "head": torch.zeros(1)}
    assert sentence(wide) == (
        "error: `w.pt` does not fit `Net`: `linear.bias` is missing, `head` is not in the model, "
        "`linear.weight` is (9, 4) in the file and (3, 4) in the model"
    )
    assert sentence([1, 2]) == "error: `w.pt` holds a list, not a state dict"
    assert sentence(Path("code that would run")) == (
        "error: `w.pt` holds no weights that can be read without running code from it"
    )


# ---- terminals


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("no_color", "expected"), [("", "\x1b[1;32mchecked:\x1b[0m m.onnx"), ("1", "\x1b[1mchecked:\x1b[0m m.onnx")]
)
def test_a_terminal_gets_emphasis_and_nothing_else(monkeypatch, no_color, expected):
    for name in ("FORCE_COLOR", "COLORTERM", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("NO_COLOR", no_color)
    stream = Terminal()
    monkeypatch.setattr(sys, "stdout", stream)
    console._print_result("checked: m.onnx, right [at] :smile: " + "x" * 300)
    assert stream.getvalue() == f"{expected}, right [at] :smile: {'x' * 300}\n"


def test_progress_in_a_terminal_leaves_nothing_behind(monkeypatch):
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with console._progress(quiet=False) as tell:
        tell("converting")
        time.sleep(0.3)
    assert "converting" in stream.getvalue()
    assert stream.getvalue().endswith("\x1b[2K")


def test_help_has_an_example_everywhere_and_tells_of_completion():
    assert all("\n  Example:\n    anyshape " in run(name, "--help").stdout for name in program.commands)
    text = run("--help").stdout
    assert "\n  Example:\n    anyshape export " in text
    assert 'eval "$(_ANYSHAPE_COMPLETE=bash_source anyshape)"' in text


# ---- real processes


def process(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "anyshape", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, **options)


def test_json_is_alone_on_stdout_whatever_is_printed(folder, exported):
    loud = "import atexit, model\nNet = model.Net\natexit.register(print, 'printed at exit')\n"
    (folder / "loud.py").write_text(loud)
    result = process("check", exported[0], f"{folder}/loud.py:Net", "--quick", "--json", "--quiet")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["verdict"] == "checked"
    for text in ("the file prints", "C code prints", "C code prints late", "printed at exit"):
        assert text in result.stderr


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
    ):
        result = process(*arguments, env=without_torch)
        assert result.returncode == 0, result.stderr
        assert result.stdout


def test_a_missing_torch_gives_one_sentence_with_the_command(folder, without_torch):
    result = process("export", f"{folder}/model.py:Net", "-o", "m.onnx", "--quiet", env=without_torch)
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "error: torch is not installed: pip install 'anyshape[cpu]' (or 'anyshape[gpu]')\n"


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_leaves_nothing_behind(tmp_path, number, code):
    (tmp_path / "slow.py").write_text(
        textwrap.dedent("""
        import pathlib, time, torch
        class Slow(torch.nn.Module):
            def forward(self, x):
                if torch.compiler.is_exporting():
                    pathlib.Path(__file__).with_name("started").touch()
                    time.sleep(60)
                return x + 1
        """)
    )
    command = [sys.executable, "-m", "anyshape", "export", "slow.py:Slow", "-o", "m.onnx", "--input", "x: float32[n]"]
    running = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (tmp_path / "started").exists() and time.monotonic() < deadline and running.poll() is None:
        time.sleep(0.05)
    assert any(entry.name.startswith(".anyshape-") for entry in tmp_path.iterdir())
    running.send_signal(number)
    output, errors = running.communicate(timeout=30)
    assert (running.returncode, output) == (code, ""), errors
    assert errors.splitlines()[-1] == f"error: {'terminated' if number == signal.SIGTERM else 'stopped'}"
    assert {entry.name for entry in tmp_path.iterdir()} - {"__pycache__"} == {"slow.py", "started"}
