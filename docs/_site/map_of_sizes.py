"""The picture of the README: one model, the file of torch's exporter and ours, at the same sizes.

`python docs/_site/map_of_sizes.py docs/map_of_sizes.svg` exports both, runs both in ONNX Runtime at every size that
`anyshape.export` has chosen, and draws what was run. Nothing in the picture is written by hand but its words.
"""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import onnxruntime
import torch
from torch import Tensor, nn

import anyshape

DIMS, SIZES = {"x": "batch seq 4"}, {"batch": "1..32", "seq": "1..128"}
EXAMPLE = (3, 40, 4)
CLOSE = 1e-4
"""Of the largest value. Files that take the other side of the branch are off by more than a hundred times that."""


class Thinned(nn.Module):
    """Long sequences are thinned before they are read."""

    def __init__(self) -> None:
        super().__init__()
        self.read = nn.Conv1d(4, 8, kernel_size=3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > 16:
            x = x[:, ::2]
        return self.read(x.transpose(1, 2)).mean(-1)


Size = tuple[int, int]
Runs = Mapping[Size, bool]
"""Batch and seq -> whether the file gave what PyTorch gives."""


def main(picture: Path) -> None:
    torch.manual_seed(0)
    model = Thinned().eval()
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = Path(folder, "ours.onnx"), Path(folder, "theirs.onnx")
        result = anyshape.export(model, torch.randn(EXAMPLE), ours, dims=DIMS, sizes=SIZES)
        assert result.verification is not None
        axes = ({0: "batch", 1: "seq"},)
        torch.onnx.export(
            model, (torch.randn(EXAMPLE),), theirs, dynamic_shapes=axes, dynamo=True, verify=True, verbose=False
        )
        sizes = sorted({(size["batch"], size["seq"]) for size in result.verification.sizes_run})
        panels = (
            ("torch.onnx.export, verify=True", runs(model, theirs, sizes)),
            ("anyshape.export", runs(model, ours, sizes)),
        )
    picture.write_text(drawing(panels), encoding="utf-8")


def runs(model: nn.Module, path: Path, sizes: Sequence[Size]) -> Runs:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return {size: _is_right(model, session, size) for size in sizes}


def _is_right(model: nn.Module, session: onnxruntime.InferenceSession, size: Size) -> bool:
    x = torch.randn(*size, 4)
    with torch.no_grad():
        expected = model(x)
    (given,) = session.run(None, {"x": x.numpy()})
    return given.shape == expected.shape and bool(
        (torch.from_numpy(given) - expected).abs().max() <= CLOSE * expected.abs().max()
    )


# ---- drawing

WIDTH, HEIGHT, LEFT, TOP, GAP = 350, 190, 46, 46, 40
STYLE = """
.page { fill: #fff } text { font: 13px system-ui, sans-serif; fill: #3b4252 }
.title { font-weight: 600; font-size: 14px } .small { font-size: 11px }
.frame { fill: none; stroke: #8a94a6 } .right { fill: #2563a8 }
.wrong { stroke: #c2410c; stroke-width: 2.4; fill: none }
@media (prefers-color-scheme: dark) {
  .page { fill: #15181d } text { fill: #d8dee9 } .right { fill: #7cb7f0 } .wrong { stroke: #ff9e64 }
}
"""


def drawing(panels: Sequence[tuple[str, Runs]]) -> str:
    whole = 2 * (LEFT + WIDTH) + GAP, TOP + HEIGHT + 50
    parts = "".join(
        f'<g transform="translate({LEFT + number * (WIDTH + LEFT + GAP - 20)} {TOP})">{"".join(_panel(*panel))}</g>'
        for number, panel in enumerate(panels)
    )
    spoken = "; ".join(f"{title}: {_count(given)}" for title, given in panels)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {whole[0]} {whole[1]}" role="img">'
        f"<title>The sizes at which two files of one model were run. {spoken}</title>"
        f'<style>{STYLE}</style><rect class="page" width="100%" height="100%" rx="6"/>{parts}</svg>\n'
    )


def _count(given: Runs) -> str:
    wrong = sum(not right for right in given.values())
    return f"{wrong} of {len(given)} sizes wrong" if wrong else f"right at {len(given)} sizes"


def _panel(title: str, given: Runs) -> Iterator[str]:
    yield f'<text class="title" y="-24">{title}</text><text y="-7">{_count(given)}</text>'
    yield f'<rect class="frame" width="{WIDTH}" height="{HEIGHT}" rx="3"/>'
    for seq in (1, 2, 4, 8, 16, 32, 64, 128):
        yield f'<text class="small" text-anchor="middle" x="{_across(seq):.1f}" y="{HEIGHT + 17}">{seq}</text>'
    for batch in (1, 2, 4, 8, 16, 32):
        yield f'<text class="small" text-anchor="end" x="-7" y="{_down(batch) + 4:.1f}">{batch}</text>'
    yield f'<text text-anchor="middle" x="{WIDTH / 2}" y="{HEIGHT + 36}">seq</text>'
    yield f'<text text-anchor="middle" transform="translate(-31 {HEIGHT / 2}) rotate(-90)">batch</text>'
    for (batch, seq), right in given.items():
        yield _mark(_across(seq), _down(batch), right=right)


def _mark(x: float, y: float, *, right: bool) -> str:
    if right:
        return f'<circle class="right" cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
    return f'<path class="wrong" d="M{x - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8"/>'


def _across(seq: int) -> float:
    return 14 + (WIDTH - 28) * math.log(seq) / math.log(128)


def _down(batch: int) -> float:
    return HEIGHT - 12 - (HEIGHT - 24) * math.log(batch) / math.log(32)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
