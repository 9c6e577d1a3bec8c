"""Reports of real exports for the site: `python docs/_site/gallery.py` puts them where `conf.py` looks for them."""

from __future__ import annotations

import importlib.util
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

import anyshape
from pages import REPORTS, ROOT


def demo(folder: Path) -> anyshape.Result:
    """As `make demo` does it: the same model, the same declaration."""
    spec = importlib.util.spec_from_file_location("demo", ROOT / "examples/demo.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    example = (torch.randint(0, 1000, (2, 7)), torch.ones(2, 7, dtype=torch.bool), torch.randn(2, 3, 48, 64))
    dims = {"tokens": "batch seq", "mask": "batch seq", "image": "batch 3 height width"}
    sizes = {"height": "8..", "width": "8.."}
    return anyshape.export(module.TextAndImage(), example, folder / "demo.onnx", dims=dims, sizes=sizes)


class Double(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * 2 if x.shape[0] > 2 else x


def branch(folder: Path) -> anyshape.Result:
    return anyshape.export(Double(), torch.ones(4, 3), folder / "double.onnx", dims={"x": "n 3"})


class Reader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.RNN(10, 20, batch_first=True)
        self.head = nn.Linear(20, 5)

    def forward(self, steps: Tensor) -> Tensor:
        states, _ = self.cell(steps)
        return self.head(states[:, -1])


def rnn(folder: Path) -> anyshape.Result:
    dims, sizes = {"steps": "batch seq 10"}, {"seq": "1..200"}
    return anyshape.export(Reader(), torch.randn(3, 5, 10), folder / "reader.onnx", dims=dims, sizes=sizes)


def bert(folder: Path) -> anyshape.Result:
    import transformers

    config = transformers.BertConfig(
        vocab_size=500, hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=64,
    )  # fmt: skip
    model = transformers.BertModel(config).eval()
    ids = torch.randint(0, 500, (2, 7))
    dims = {"input_ids": "batch seq", "attention_mask": "batch seq"}
    return anyshape.export(model, (ids, torch.ones_like(ids)), folder / "bert.onnx", dims=dims)


class Flattened(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 8, 3, padding=1)
        self.head = nn.Linear(512, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.relu(self.convolution(x)).view(1, 512))


def static(folder: Path) -> anyshape.Result:
    torch.onnx.export(
        Flattened().eval(), (torch.randn(1, 3, 8, 8),), folder / "static.onnx", input_names=["x"], dynamo=False
    )
    return anyshape.make_dynamic(folder / "static.onnx", {"x": "batch 3 8 8"}, out=folder / "dynamic.onnx")


class Head(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.view(2, 8, 4).mean(1)


def refusal(folder: Path) -> anyshape.Result:
    try:
        return anyshape.export(Head(), torch.randn(2, 32), folder / "head.onnx", dims={"x": "batch 32"})
    except anyshape.ExportError as error:
        return error.result


SHOWN: tuple[Callable[[Path], anyshape.Result], ...] = (demo, branch, rnn, bert, static, refusal)


def main() -> None:
    write: Any = getattr(anyshape.Result, "report", None)
    if write is None:
        sys.stderr.write("no reports are made: `Result` has no `report` here\n")
        return
    warnings.simplefilter("ignore")  # torch's own, about its older exporter
    folder = REPORTS / "site/reports"
    folder.mkdir(parents=True, exist_ok=True)
    for make in SHOWN:
        torch.manual_seed(0)
        with tempfile.TemporaryDirectory() as work:
            result = make(Path(work))
            write(result, folder / f"{make.__name__}.html")
        (REPORTS / f"{make.__name__}.txt").write_text(result.headline, encoding="utf-8")


if __name__ == "__main__":
    main()
