"""Every opset that people ask for, tried with models of all kinds: delivered and checked, or refused with the operator.

Each model is exported with `opset_version` 11 to 24. A delivered file is one that the check found right in that very
opset, that names it, that onnx's own checker takes with full shape inference, and that holds no operator newer than it.
Run: python benchmarks/opsets.py [--only REGEX] [--opsets 11,17] [--write docs/opsets.md]
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import onnx
import torch

import anyshape
from inference_files import quiet
from opset_models import Kind, kinds

OPSETS = range(11, 25)
DELIVERED, OLDER_EXPORTER = "yes", "yes (TorchScript)"
MARK = "<!-- opsets -->\n", "<!-- end of opsets -->\n"


def told(kind: Kind, opset: int, folder: Path) -> str:
    """What became of one export."""
    torch.manual_seed(0)
    path = folder / "model.onnx"
    try:
        with quiet():
            result = anyshape.export(kind.make(), kind.args(), path, dims=kind.dims, opset_version=opset, quick=True)
    except anyshape.ExportError as error:
        return refusal(error)
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    written = {entry.domain: entry.version for entry in model.opset_import}
    if not written[""] == result.opset == opset:
        return f"WRONG: the file has {written['']}, the result says {result.opset}"
    return OLDER_EXPORTER if result.attempts[-1].strategy == "TorchScript" else DELIVERED


def refusal(error: anyshape.ExportError) -> str:
    finding = error.result.findings[0]
    if finding.rule != "newer-opset":
        return f"WRONG: {finding.rule}"
    operator, needed = re.search(r"`(\w+)`.* needs opset (\d+)", finding.message).groups()
    return f"`{operator}` needs {needed}"


def row_of(kind: Kind, cells: Sequence[tuple[int, str]]) -> str:
    """Neighbouring opsets of which the same is to be told are told at once."""
    groups: list[tuple[int, int, str]] = []
    for opset, text in cells:
        if groups and groups[-1][2] == text and groups[-1][1] == opset - 1:
            groups[-1] = groups[-1][0], opset, text
        else:
            groups.append((opset, opset, text))
    right = [span(lo, hi, "" if text == DELIVERED else " by TorchScript") for lo, hi, text in groups if "yes" in text]
    refused = [span(lo, hi, f": {text}") for lo, hi, text in groups if "yes" not in text]
    return f"| {kind.name} | {', '.join(right)} | {'; '.join(refused)} |"


def span(low: int, high: int, text: str) -> str:
    return f"{low if low == high else f'{low} to {high}'}{text}"


def table(rows: Iterable[str]) -> str:
    return "\n".join(["| model | delivered in | refused in, and why |", "|---|---|---|", *rows]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="models whose name this expression matches")
    parser.add_argument("--opsets", default=",".join(map(str, OPSETS)))
    parser.add_argument("--write", type=Path, help="the page whose table is written anew")
    given = parser.parse_args()
    torch.set_num_threads(1)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in (one for one in kinds() if re.search(given.only, one.name)):
            cells = [(opset, told(kind, opset, Path(folder))) for opset in map(int, given.opsets.split(","))]
            rows.append(row_of(kind, cells))
            print(rows[-1], flush=True)
    if given.write:
        text = given.write.read_text(encoding="utf-8")
        start, end = (text.index(mark) for mark in MARK)
        given.write.write_text(text[: start + len(MARK[0])] + table(rows) + text[end:], encoding="utf-8")


if __name__ == "__main__":
    main()
