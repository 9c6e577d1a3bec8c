"""The call of a target: from its file, from examples, or from options, whose inputs are random and seeded."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from anyshape.cli.target_calls import call_of
from anyshape.cli.target_texts import read_target
from anyshape.cli.targets import loaded_target
from anyshape.errors import DeclarationError
from tests.cli.project import TOKENS, run

NET = "import torch\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x + 1\n\n\n"


def call(folder: Path, text: str, dims=None):
    (folder / "model.py").write_text(NET + text)
    with loaded_target(read_target(f"{folder}/model.py:Net")) as found:
        return call_of(found, [], dims or {}, {}, 0)


WAYS = {
    "a list": "examples = [(torch.ones(2, 3),), (torch.ones(3, 5),)]\n",
    "a function": "def examples():\n    return [(torch.ones(2, 3),), (torch.ones(3, 5),)]\n",
    "a generator": "def examples():\n    for shape in (2, 3), (3, 5):\n        yield (torch.ones(shape),)\n",
}


@pytest.mark.parametrize("way", WAYS)
def test_a_file_may_show_calls_instead_of_declaring(tmp_path, way):
    found = call(tmp_path, WAYS[way])
    assert [tuple(one[0].shape) for one in found.examples] == [(2, 3), (3, 5)]
    assert found.arguments == {
        "args": (), "kwargs": None, "make_inputs": None, "dims": None, "sizes": None, "examples": found.examples,
    }  # fmt: skip


def test_calls_say_more_than_inputs_without_dims_and_less_than_inputs_with_dims(tmp_path):
    both = f"inputs = (torch.ones(4, 4),)\n{WAYS['a list']}"
    assert len(call(tmp_path, both).examples) == 2
    assert call(tmp_path, f"{both}dims = {{'x': 'n m'}}\n").examples is None
    assert call(tmp_path, both, dims={"x": "n m"}).examples is None


def test_random_calls_follow_the_seed(tmp_path):
    text = "def examples():\n    yield torch.randn(2, 3)\n"
    assert torch.equal(call(tmp_path, text).examples[0], call(tmp_path, text).examples[0])


def test_calls_that_fail_are_named_with_their_line(tmp_path):
    with pytest.raises(DeclarationError) as caught:
        call(tmp_path, "def examples():\n    yield 1\n    yield 1 // 0\n")
    assert str(caught.value) == (
        f"`examples` of `{tmp_path}/model.py:Net` fails: ZeroDivisionError: integer division or modulo by zero "
        "(model.py:11)"
    )


def test_the_first_of_several_calls_can_be_had_alone(tmp_path):
    args, kwargs = call(tmp_path, WAYS["a list"]).first
    assert [tuple(one.shape) for one in args] == [(2, 3)]
    assert kwargs is None


# ---- `inputs` of the file


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


# ---- inputs of the command line


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
    (folder / "shifted.py").write_text("def shifted(x, y):\n    return x + y.sum()\n")
    small = asked(f"{folder}/shifted.py:shifted", "--input", "x: float32[a, b + 1, c]", "--input", "y: float32[?]")
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


def test_where_no_size_runs_the_form_is_shown_in_which_one_can_be_given(tmp_path):
    (tmp_path / "own.py").write_text("def never(x, mask):\n    raise ValueError('no size is right')\n")
    inputs = ["--input", "mask: bool[3]", "--input", "x: int64[batch, seq + 1, 8] < 9"]
    for command in (["diagnose"], ["export", "-o", tmp_path / "m.onnx"]):
        result = run(command[0], tmp_path / "own.py:never", *command[1:], *inputs, "--quiet")
        assert result.exit_code == 2
        assert re.sub(r"all \d+", "all N", result.stderr) == (
            "error: the model fails at all N sizes that were tried for an example, first at batch = 3, seq = 4: "
            "ValueError: no size is right (own.py:2); give a size at which it runs, "
            "--input 'x: int64[NUMBER, NUMBER, 8] < 9' --dim 'x=batch seq + 1 8'\n"
        )


WITHOUT_CUDA = pytest.mark.skipif(torch.cuda.is_available(), reason="CUDA is here, and nothing of it fails")
ON_CUDA = {
    "moved": "return x.to('cuda') * 2",
    "made": "return x + torch.zeros(x.shape[0], 4, device='cuda')",
    "called": "return x.cuda()",
    "of a library": "return torch.nn.Linear(4, 2).cuda()(x)",
}


@WITHOUT_CUDA
@pytest.mark.parametrize("line", ON_CUDA.values(), ids=ON_CUDA)
def test_a_model_that_asks_for_cuda_where_there_is_none_is_told_with_its_line(tmp_path, line):
    (tmp_path / "own.py").write_text(f"import torch\n\ndef moves(x):\n    {line}\n")
    told = "own.py:4 asks for CUDA, which is not here: let the model stay on the device of its inputs"
    for command in (["diagnose"], ["export", "-o", tmp_path / "m.onnx"]):
        result = run(command[0], tmp_path / "own.py:moves", *command[1:], "--input", "x: float32[n, 4]", "--quiet")
        assert (result.exit_code, result.stderr) == (2, f"error: the model fails on the example: {told}\n")
