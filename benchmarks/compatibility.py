"""Compatibility: what other tools make of twelve files of different kinds, each result run at two sizes.

Every tool runs in a process of its own, with a limit of time. A result is right if it does at both sizes what the file
does in ONNX Runtime: closely for tools that rewrite, within what rounding costs for those that quantise. Where a tool
fails and a work-around is known, that is tried, too.

Run: python benchmarks/compatibility.py [--only PATTERN] [--tool PATTERN] [--opset N] [--target TARGET]
Results of the default form are kept in benchmarks/compatibility.json, from which docs/compatibility.md is made.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from compatibility_tables import KEPT, fault_of
from compatibility_tools import TOOLS, Tool, opset_of, outcome_of, run_file, version_of
from silence import silence

CONTEXT = multiprocessing.get_context("fork")
"""The parent imports onnx and ONNX Runtime once and starts no session; torch is imported by children alone."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="PATTERN", default="", help="files whose name holds this regular expression")
    parser.add_argument("--tool", metavar="PATTERN", default="", help="tools whose name holds this regular expression")
    parser.add_argument("--opset", type=int, help="write the files with this opset")
    parser.add_argument("--target", help="write the files for this target")
    parser.add_argument("--seconds", type=float, default=120.0, help="for one tool and one file")
    parser.add_argument("--folder", type=Path, help="keep the files there, and use those that are")
    return parser.parse_args()


# ---- processes


def in_a_process(task: Callable[..., Any], *values: Any, seconds: float) -> dict[str, Any]:
    """What a task returns, or how its process ended; nothing that it prints is shown."""
    receiver, sender = CONTEXT.Pipe(duplex=False)

    def work() -> None:
        for number in (1, 2):  # some tools write past Python
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
        with silence():
            sender.send(task(*values))

    process = CONTEXT.Process(target=work)
    process.start()
    sender.close()
    try:
        return receiver.recv() if receiver.poll(seconds) else {"outcome": "fails", "error": f"more than {seconds:g} s"}
    except EOFError:
        process.join()
        return {"outcome": "fails", "error": f"the process ended with {process.exitcode}"}
    finally:
        process.kill()
        process.join()


def _written(name: str, folder: Path, options: Mapping[str, Any]) -> dict[str, Any]:
    """One file and its calls, in a folder of its own."""
    import torch

    from compatibility_models import SUBJECTS, calls_of

    torch.set_num_threads(1)
    subject = next(subject for subject in SUBJECTS if subject.name == name)
    try:
        path = subject.write(folder, **options)
    except Exception as error:
        return {"outcome": "fails", "error": f"{type(error).__name__}: {error}"}
    for index, call in enumerate(calls_of(subject)):
        np.savez(folder / f"{index}.npz", **call)
    found = {"path": str(path.relative_to(folder)), "ranked": subject.ranked}
    (folder / "written.json").write_text(json.dumps(found), encoding="utf-8")
    return found


def _tried(tool: Tool, folder: Path, written: Mapping[str, Any]) -> dict[str, Any]:
    """What the tool makes of a file."""
    calls = [dict(np.load(path)) for path in sorted(folder.glob("*.npz"))]
    return outcome_of(tool, folder / written["path"], calls, written["ranked"])


def _rewritten(name: str, folder: Path, written: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """Whether the file of other options does what the file does."""
    place = folder / "rewritten"
    place.mkdir(exist_ok=True)
    other = _written(name, place, options)
    if "path" not in other:
        return other
    if (asked := options.get("opset_version")) and opset_of(place / other["path"]) != asked:
        return {"outcome": "fails", "error": f"the file is not of opset {asked}"}
    is_right = Tool("itself", lambda _: run_file(place / other["path"]), "")
    return _tried(is_right, folder, written)


def outcome(tool: Tool, name: str, folder: Path, written: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """What the tool makes of a file; where it fails and a work-around is known, with it, too."""
    found = in_a_process(_tried, tool, folder, written, seconds=seconds)
    fault = fault_of(tool.name, found)
    other = None
    if fault is not None and fault.remedy is not None:
        other = in_a_process(_tried, fault.remedy(tool), folder, written, seconds=seconds)
    elif fault is not None and fault.options is not None:
        other = in_a_process(_rewritten, name, folder, written, {"quick": True, **fault.options}, seconds=600)
    return found if other is None else {**found, "remedy": other.get("error") or other["outcome"]}


# ---- the matrix


def names() -> list[str]:
    """Read without torch, which the parent does not import."""
    text = Path(__file__).with_name("compatibility_models.py").read_text(encoding="utf-8")
    return re.findall(r"^    (?:_of|Subject)\(\"([\w ]+)\"", text, re.MULTILINE)


def run(chosen: argparse.Namespace, folder: Path, console: Console) -> dict[str, dict[str, Any]]:
    """For each file, what each tool makes of it."""
    options = {"opset_version": chosen.opset, "target": chosen.target}
    given = {"quick": True, **{name: value for name, value in options.items() if value is not None}}
    found: dict[str, dict[str, Any]] = {}
    for name in names():
        if not re.search(chosen.only, name):
            continue
        place = folder / name.replace(" ", "_")
        place.mkdir(parents=True, exist_ok=True)
        kept = place / "written.json"
        written = (
            json.loads(kept.read_text(encoding="utf-8"))
            if kept.exists()
            else in_a_process(_written, name, place, given, seconds=600)
        )
        found[name] = {}
        for tool in TOOLS:
            if not re.search(chosen.tool, tool.name):
                continue
            if "path" not in written:
                found[name][tool.name] = written
            else:
                found[name][tool.name] = outcome(tool, name, place, written, chosen.seconds)
            console.print(f"{name} | {tool.name} | {_shown(tool, found[name][tool.name])}", highlight=False)
        if chosen.opset is None and chosen.target is None:
            keep({name: found[name]})
    return found


def _shown(tool: Tool, outcome: Mapping[str, Any]) -> str:
    if outcome["outcome"] == "right":
        return f"right, off by {outcome['off']:.1g}"
    words = outcome.get("error") or f"off by {outcome['off']:.2g} (allowed {tool.allowed:g})"
    known = "known" if fault_of(tool.name, outcome) else "NOT KNOWN"
    return f"{outcome['outcome']}, {known}: {words}; with the work-around: {outcome.get('remedy', 'none')}"


def keep(found: Mapping[str, Mapping[str, Any]]) -> None:
    """Add to what is kept of the default form; versions are those of now."""
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    files = kept.get("files", {})
    for name, row in found.items():
        files[name] = {**files.get(name, {}), **row}
    order = {name: files[name] for name in names() if name in files}
    versions = {tool.package: version_of(tool) for tool in TOOLS}
    KEPT.write_text(json.dumps({**kept, "versions": versions, "files": order}, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    chosen = arguments()
    console = Console(width=220)
    with tempfile.TemporaryDirectory() as temporary:
        found = run(chosen, chosen.folder or Path(temporary), console)
    outcomes = [(tool, outcome) for row in found.values() for tool, outcome in row.items()]
    wrong = [outcome for tool, outcome in outcomes if outcome["outcome"] != "right"]
    unknown = [outcome for tool, outcome in outcomes if outcome["outcome"] != "right" and not fault_of(tool, outcome)]
    console.print(f"{len(outcomes)} results, {len(outcomes) - len(wrong)} right, {len(unknown)} faults not known")
    if unknown:
        sys.exit(1)


if __name__ == "__main__":
    main()
