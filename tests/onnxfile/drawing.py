"""Small ONNX files from text."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser

from anyshape.onnxfile.contract import KEY, Contract
from anyshape.sizes.notation import parse_condition, parse_sizes

HEAD = '<ir_version: 8, opset_import: ["" : 18]>\n'


def write(path: Path, text: str, contract: Contract | None = None) -> Path:
    """A file with one graph, and with a contract where one is given."""
    model = onnx.parser.parse_model(HEAD + text)
    if contract is not None:
        model.metadata_props.add(key=KEY, value=contract.to_text())
    onnx.save(model, path)
    return path


def contract(dims: dict[str, str], *limits: str, verdict: str = "checked", **outputs: tuple[str, ...]) -> Contract:
    ranges = {dim: parse_sizes(text, dim=dim) for dim, text in dims.items()}
    held = tuple(map(parse_condition, limits))
    return Contract(ranges, held, outputs=outputs, verdict=verdict, version="0.1.0")


PINNED = """
main (float[batch, seq, 4] x) => (float[batch, seq, 4] y)
<int64[3] shape = {2, 8, 4}> {
  [node_view] y = Reshape(x, shape)
}"""
DOUBLED = """
main (float[batch, seq] x) => (float[batch, twice] y)
{
  y = Concat<axis = 1>(x, x)
}"""
MISLABELLED = """
main (float[batch, seq] x) => (float[batch, seq] y)
{
  doubled = Concat<axis = 1>(x, x)
  y = Identity(doubled)
}"""
CONVOLUTION = """
main (float[batch, 1, height, width] image) => (float[batch, 1, rows, columns] y)
<float[1, 1, 3, 3] kernel = {1, 1, 1, 1, 1, 1, 1, 1, 1}> {
  [conv] y = Conv(image, kernel)
}"""
