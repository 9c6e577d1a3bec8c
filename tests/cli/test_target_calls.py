"""The call of a target: from its file, from examples, or from options."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from anyshape.cli.target_calls import call_of
from anyshape.cli.targets import loaded_target
from anyshape.errors import DeclarationError
from tests.cli.project import run

NET = "import torch\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x + 1\n\n\n"


def call(folder: Path, text: str, dims=None):
    (folder / "model.py").write_text(NET + text)
    with loaded_target(f"{folder}/model.py:Net") as found:
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
