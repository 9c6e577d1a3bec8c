"""What is known of the tools' faults, with work-arounds, and the tables of docs/compatibility.md of kept results."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compatibility_tools import (
    TOOLS,
    Tool,
    by_runtimes_converter,
    of_heavy_operators,
    of_own_weights,
    without_symbols,
)

KEPT = Path(__file__).with_name("compatibility.json")
VERSIONS = Path(__file__).with_name("versions.json")


@dataclass(frozen=True)
class Fault:
    """One fault of a tool's: where it shows, what is wrong there, and how to get by."""

    tools: str
    """A regular expression for their names."""
    shows: str
    """A regular expression for the error, or for `differs`."""
    words: str
    work_around: str
    remedy: Callable[[Tool], Tool] | None = None
    """The tool with the work-around, which is tried wherever the fault shows."""
    options: Mapping[str, Any] | None = None
    """Of `export`, where the work-around is another file."""


FAULTS: tuple[Fault, ...] = (
    Fault(
        "version_converter", "No Previous Version|No Adapter|Unrecognized attribute",
        "onnx has no adapter down to 17 for `Gelu`, `Split` and others (`No Adapter From Version`), and leaves "
        "`noop_with_empty_axes` of reductions behind (`Unrecognized attribute`)",
        "`export(..., opset_version=17)` writes the older operators", options={"opset_version": 17},
    ),
    Fault(
        "quantize_dynamic", "QAttention",
        "turns ONNX's `Attention` into its own `QAttention`, which has other inputs (`Unrecognized attribute`)",
        "export without `target`, or with an opset below 23: `Attention` is not in the file then",
        options={"opset_version": 20},
    ),
    Fault(
        "quantize_dynamic", "Incompatible dimensions",
        "a weight that two layers share is transposed once for each (`Incompatible dimensions`)",
        "give each `Gemm` a copy of its weight first", of_own_weights,
    ),
    Fault(
        "quantize_static", "differs",
        "rounds the result of every operator to 8 bits, masks and positions with the others (the result is off by "
        "more than a quarter)",
        '`op_types_to_quantize=["Conv", "Gemm", "MatMul"]`', of_heavy_operators,
    ),
    Fault(
        "quant_pre_process|symbolic_shape_infer", "NoneType|Incomplete symbolic|AssertionError",
        "symbolic shape inference does not know reductions to the largest whose axes are an input (opset 18), nor "
        "`STFT` (`object of type 'NoneType' has no len()`, `Incomplete symbolic shape inference`)",
        "`quant_pre_process(..., skip_symbolic_shape=True)`; elsewhere `onnx.shape_inference.infer_shapes`",
        without_symbols,
    ),
    Fault(
        "onnx.reference", "at most 64 array objects",
        "`GatherElements` takes 64 rows at most (`Need at least 0 and at most 64 array objects`)", "ONNX Runtime",
    ),
    Fault(
        "OpenVINO", "STFT",
        "`STFT` takes signals of known sizes alone (`Shape of signal input must be static`)",
        "none known, not with fixed sizes either; ONNX Runtime runs it",
    ),
    Fault(
        "float16", "ScatterElements",
        "ONNX Runtime cannot add by `ScatterElements` and `ScatterND` in float16 (`MLFloat16 ... is not supported`)",
        '`op_block_list=[*DEFAULT_OP_BLOCK_LIST, "ScatterElements", "ScatterND"]`, in ONNX Runtime\'s converter',
        by_runtimes_converter("ScatterElements", "ScatterND"),
    ),
    Fault(
        "float16", "ended with -11",
        "ONNX Runtime crashes on `LSTM` and `GRU` beside float16 (a segmentation fault)",
        '`op_block_list=[*DEFAULT_OP_BLOCK_LIST, "LSTM", "GRU", "Reshape", "Squeeze", "Transpose"]`, in ONNX '
        "Runtime's converter",
        by_runtimes_converter("LSTM", "GRU", "Reshape", "Squeeze", "Transpose"),
    ),
    Fault(
        "onnxconverter-common float16", "does not match expected type",
        "a `Cast` to float32 stays one (`Type (tensor(float16)) of output arg ... does not match expected type`)",
        "ONNX Runtime's converter: `onnxruntime.transformers.float16`", by_runtimes_converter(),
    ),
)  # fmt: skip


def fault_of(tool: str, outcome: Mapping[str, Any]) -> Fault | None:
    """The known fault behind an outcome that is not right."""
    if outcome["outcome"] == "right":
        return None
    said = outcome.get("error", outcome["outcome"])
    return next((fault for fault in FAULTS if re.search(fault.tools, tool) and re.search(fault.shows, said)), None)


# ---- tables


def _rows(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def matrix() -> str:
    """A row for each tool, a column for each file; a letter stands for a fault, which is explained below."""
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    files = kept["files"]
    letters: dict[str, str] = {}
    mended: dict[str, list[str]] = {}

    def cell(tool: str, outcome: Mapping[str, Any]) -> str:
        if outcome["outcome"] == "right":
            return "yes"
        fault = fault_of(tool, outcome)
        if fault is None:
            return "no"
        letter = letters.setdefault(fault.words, "abcdefghijklmnopqrstuvwxyz"[len(letters)])
        mended.setdefault(fault.words, []).append(outcome.get("remedy", ""))
        return f"({letter})"

    rows = [
        [tool.name, kept["versions"][tool.package], *(cell(tool.name, row[tool.name]) for row in files.values())]
        for tool in TOOLS
    ]
    explained = []
    for words, letter in letters.items():
        fault = next(fault for fault in FAULTS if fault.words == words)
        tried = mended[words]
        right = sum(one == "right" for one in tried)
        is_tried = fault.remedy is not None or fault.options is not None
        with_it = f"; tried: right in {right} of {len(tried)}" if is_tried else ""
        explained.append(f"- ({letter}) {fault.words}. Work-around: {fault.work_around}{with_it}.")
    return _rows(["tool", "version", *files], rows) + "\n" + "\n".join(explained) + "\n"


def environments() -> str:
    """A row for each environment: its versions, what was run there, and how it ended."""
    kept = json.loads(VERSIONS.read_text(encoding="utf-8"))
    names = list(next(iter(kept.values()))["versions"])
    rows = []
    for name, row in kept.items():
        done = row.get("passed", 0)
        ended = f"{done} of {done + row.get('failed', 0) + row.get('error', 0)}"
        rows.append([name, row["python"], *(row["versions"][one] for one in names), ended])
    table = _rows(["environment", "Python", *names, "passed"], rows)
    ran = "\n".join(f"- {name}: `pytest {row['ran']}`" for name, row in kept.items())
    failing = "\n".join(f"- {name}: `{test}`" for name, row in kept.items() for test in row["failing"])
    told = f"\nWhat did not pass:\n\n{failing}\n" if failing else ""
    return f"{table}\nWhat was run:\n\n{ran}\n{told}"
