"""Operators that ONNX Runtime lacks are computed in Python, between parts of the file that it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import pytest
import torch

import anyshape
from anyshape.runtime.custom_ops import CustomOps
from anyshape.runtime.session import RuntimeFailureError

HEADER = '<ir_version: 9, opset_import: ["" : 20, "my.domain" : 1]>'

TWO_ROUNDS = f"""
{HEADER}
g (float[batch, n] x) => (float[batch, n] y, float[batch, n] first)
<float[1] weight = {{0.5}}>
{{
    half = Mul (x, weight)
    first = my.domain.Scale <by = 3.0, mode = "plain", sizes = [1, 2]> (half)
    shape = Shape (first)
    total = Add (first, x)
    second, third = my.domain.Both (total, , half)
    sum = Add (second, third)
    y = my.domain.Scale <by = 2.0, mode = "plain", sizes = [1, 2]> (sum)
}}
"""

IN_A_BRANCH = f"""
{HEADER}
g (float[batch] x, bool flag) => (float[batch] y) {{
    scaled = my.domain.Scale <by = 3.0, mode = "plain", sizes = [1, 2]> (x)
    y = If (flag) <
        then_branch = then () => (float[batch] a) {{ a = Neg (scaled) }},
        else_branch = other () => (float[batch] b) {{ b = {{inside}} (scaled) }}
    >
}}
"""

IN_A_FUNCTION = """
<ir_version: 9, opset_import: ["" : 20, "my.domain" : 1, "local" : 1]>
g (float[batch] x) => (float[batch] y) { y = local.Twice (x) }
<domain: "local", opset_import: ["" : 20, "my.domain" : 1]>
Twice (a) => (b) {
    c = my.domain.Scale <by = 2.0, mode = "plain", sizes = [1, 2]> (a)
    b = Identity (c)
}
"""


def scale(x: Any, *, by: float, mode: str, sizes: list[int]) -> Any:
    assert (mode, list(sizes)) == ("plain", [1, 2])
    x *= np.float32(by)  # what it is given is its own
    return x


def both(x: Any, nothing: Any, half: Any) -> Any:
    assert nothing is None
    return x - half, torch.from_numpy(half)


FUNCTIONS = {"my.domain::Scale": scale, "my.domain::Both": both}


def saved(text: str, folder: Path) -> Path:
    onnx.save(onnx.parser.parse_model(text), folder / "model.onnx")
    return folder / "model.onnx"


def expected(x: Any) -> tuple[Any, Any]:
    half = x * 0.5
    first = half * 3
    return (first + x) * 2, first


@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (5, 0)])
def test_functions_are_called_between_the_parts(shape: tuple[int, int], tmp_path: Path) -> None:
    session = CustomOps(functions=FUNCTIONS).open(saved(TWO_ROUNDS, tmp_path))
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    y, first = session.run({"x": x})
    np.testing.assert_allclose(y, expected(x)[0], rtol=1e-6)
    np.testing.assert_allclose(first, expected(x)[1], rtol=1e-6)


def test_weights_beside_the_file_are_found(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(TWO_ROUNDS)
    weight = model.graph.initializer[0]
    weight.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(weight), weight.name))
    path = tmp_path / "model.onnx"
    onnx.save(model, path, save_as_external_data=True, location="model.onnx.data", size_threshold=0)
    x = np.ones((2, 3), np.float32)
    assert (tmp_path / "model.onnx.data").exists()
    np.testing.assert_allclose(CustomOps(functions=FUNCTIONS).open(path).run({"x": x})[0], expected(x)[0])


def test_a_branch_reads_what_a_function_gave(tmp_path: Path) -> None:
    session = CustomOps(functions=FUNCTIONS).open(saved(IN_A_BRANCH.replace("{inside}", "Abs"), tmp_path))
    x = np.array([-1.0, 2.0], np.float32)
    assert session.run({"x": x, "flag": np.array(True)})[0].tolist() == [3.0, -6.0]
    assert session.run({"x": x, "flag": np.array(False)})[0].tolist() == [3.0, 6.0]


def test_a_function_of_the_file_is_opened(tmp_path: Path) -> None:
    session = CustomOps(functions=FUNCTIONS).open(saved(IN_A_FUNCTION, tmp_path))
    assert session.run({"x": np.array([4.0], np.float32)})[0].tolist() == [8.0]


def test_an_operator_inside_a_branch_is_refused_with_a_sentence(tmp_path: Path) -> None:
    path = saved(IN_A_BRANCH.replace("{inside}", "my.domain.Both"), tmp_path)
    with pytest.raises(anyshape.DeclarationError) as error:
        CustomOps(functions=FUNCTIONS).open(path)
    assert str(error.value) == (
        "`my.domain::Both` stands inside a If node, where no Python function can be called: "
        "give a library for ONNX Runtime"
    )


FAULTS = {
    "`my.domain::Both` in Python: ValueError: too large": lambda *_: _fail(),
    "`my.domain::Both` in Python gives 1 results, the file has 2": lambda x, *_: x,
}


def _fail() -> None:
    raise ValueError("too large\nand more")


@pytest.mark.parametrize("sentence", FAULTS)
def test_a_function_that_fails_is_named(sentence: str, tmp_path: Path) -> None:
    functions = {**FUNCTIONS, "my.domain::Both": FAULTS[sentence]}
    session = CustomOps(functions=functions).open(saved(TWO_ROUNDS, tmp_path))
    with pytest.raises(RuntimeFailureError) as error:
        session.run({"x": np.ones((2, 3), np.float32)})
    assert str(error.value) == sentence
