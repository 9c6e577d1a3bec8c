"""`--input`: dims and a seeded random example in one, and one sentence about what is no input."""

from __future__ import annotations

import pytest
import torch

from tests.cli.project import TOKENS, run

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
