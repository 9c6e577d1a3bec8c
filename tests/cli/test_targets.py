"""TARGET and `--weights`: what may be named, and one sentence about what may not."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from anyshape.cli.target_texts import read_target
from anyshape.cli.targets import loaded_target
from tests.cli.project import TOKENS, run

MISUSES = {
    "model.py:instance.encoder": "`Net` has no `encoder`; did you mean `encode`?",
    "model.py:Needs": "`Needs` needs `width`: write `Needs(width=...)` with literals, or name an instance, or a "
    "function that returns one",
    "model.py:Needs()": "`model.py:Needs()` cannot be loaded: TypeError: Needs.__init__() missing 1 required "
    "positional argument: 'width'",
    "model.py:instance(3)": "`instance` is a Net, which is not made: leave its brackets out",
    "model.py:number": "`number()` gives a int, not a module",
    "model.py:fails": "`model.py:fails` cannot be loaded: NameError: name 'undefined_name' is not defined "
    "(model.py:58)",
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
    (folder / "exits.py").write_text("import sys\n\nsys.exit(7)\nNet = 3\n")
    (folder / "needs.py").write_text("import no_such_package\nNet = 3\n")
    monkeypatch.chdir(folder)
    before = list(sys.path)
    result = run("export", target, "-o", "m.onnx", "--quiet")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.splitlines()[-1] == f"error: {MISUSES[target]}"
    assert sys.path == before


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
        ("Net().encode", "method"),
        ("build().linear", "Linear"),
        ("Wide(4, features=3)", "Wide"),
        ("wide(features=3)", "Wide"),
        ("double", "function"),
    ],
)
def test_a_target_may_be_a_module_a_class_a_factory_a_method_or_a_function(asked, folder, name, kind):
    parameter = {"Linear": "input", "Wide": "input", "function": "x"}.get(kind, "tokens")
    states = ("--input", "states.0: float32[batch, 4]", "--input", "states.1.b: float32[batch, 4]")
    extra = states if kind == "function" else ()
    dtype = "int64" if parameter == "tokens" else "float32"
    found = asked(f"{folder}/model.py:{name}", "--input", f"{parameter}: {dtype}[batch, 4]", *extra).model
    assert type(found).__name__ == kind


def test_arguments_reach_the_constructor(asked, folder):
    found = asked(f"{folder}/model.py:Wide(4, features=3)", "--input", "input: float32[batch, 4]").model
    assert (found.in_features, found.out_features) == (4, 3)


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


def test_dims_that_are_no_dict_are_refused(tmp_path):
    (tmp_path / "own.py").write_text("import torch\nnet = torch.nn.ReLU()\ndims = ['batch']\n")
    result = run("export", tmp_path / "own.py:net", "-o", tmp_path / "m.onnx", "--quiet")
    assert result.stderr == f"error: `dims` of `{tmp_path}/own.py:net` is a list, not a dict\n"


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
        "error: `w.pt` holds no weights that can be read without running code from it: "
        "write them with `torch.save(model.state_dict(), FILE)`"
    )


def test_weights_that_the_file_loads_into_another_module_are_not_those_of_this_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save(torch.nn.Linear(4, 2).state_dict(), tmp_path / "state.pt")
    (tmp_path / "both.py").write_text(
        "import copy\nimport torch\nfrom torch import nn\nnet, filled = nn.Linear(4, 2), nn.Linear(4, 2)\n"
        "filled.load_state_dict(torch.load('state.pt'))\n"
        "around, copied = nn.Sequential(filled), copy.deepcopy(filled)\n"
    )
    for name in ("net", "filled", "around", "copied"):
        with loaded_target(read_target(f"both.py:{name}")) as loaded:
            assert loaded.is_random is (name == "net")


@pytest.mark.skipif(torch.cuda.is_available(), reason="CUDA is here, and nothing of it fails")
def test_a_model_that_is_made_on_cuda_is_told_with_its_line(tmp_path):
    (tmp_path / "own.py").write_text("import torch\n\ndef made():\n    return torch.nn.Linear(4, 2, device='cuda')\n")
    result = run("export", tmp_path / "own.py:made", "-o", tmp_path / "m.onnx", "--quiet")
    told = "own.py:4 asks for CUDA, which is not here: let the model stay on the device of its inputs"
    assert (result.exit_code, result.stderr) == (2, f"error: `{tmp_path}/own.py:made` cannot be loaded: {told}\n")


def test_weights_that_were_saved_on_cuda_are_read_anywhere(asked, folder, tmp_path, monkeypatch):
    state = {"embedding.weight": torch.ones(50, 4), "linear.weight": torch.ones(3, 4), "linear.bias": torch.ones(3)}
    monkeypatch.setattr("torch.serialization.location_tag", lambda _: "cuda:0")
    torch.save(state, tmp_path / "cuda.pt")
    assert torch.equal(ask_with_weights(asked, folder, tmp_path / "cuda.pt").linear.bias, state["linear.bias"])
