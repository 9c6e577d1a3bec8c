"""Every operator of torch's own database, exported and run with values of all kinds: right, refused, or wrong where.

Each sample is exported with nothing declared to vary, with dims found (`--dims`), and by torch's own exporters
(`--peers`), and judged in ONNX Runtime against eager on its own values and on others. An operator that ends its process
is a result. Results are lines of JSON, written as they come; what stands there is not run again.

Run: PYTHONPATH=src python benchmarks/operators.py [--only REGEX] [--every 1] [--samples 5] [--dims] [--peers] [--again]
     [--lines FILE] [--keep]
Needs: pip install -r benchmarks/requirements-operators.txt
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime
import torch

import anyshape
from anyshape.conversion.translation import translate_program
from inference_files import quiet
from operator_samples import OPEN_TIES, Sample, contents, draws_itself, is_random, operators, samples
from operator_tables import EXPORTERS_SHOWN, counted, keep, newest_results, summary

LINES = Path(tempfile.gettempdir()) / "operators.jsonl"
SECONDS = 120
"""For one sample by one exporter."""
STATIC, FOUND, TORCH, TORCHSCRIPT = EXPORTERS_SHOWN


# ---- exporters: a file, or an exception


def by_anyshape(sample: Sample, path: Path) -> None:
    anyshape.export(sample.module(), tuple(sample.tensors()), path, dims={})


def by_anyshape_with_dims(sample: Sample, path: Path) -> None:
    anyshape.export(sample.module(), tuple(sample.tensors()), path)


def by_torch(sample: Sample, path: Path) -> None:
    torch.onnx.export(sample.module(), tuple(sample.tensors()), path, dynamo=True, verbose=False)


def by_torchscript(sample: Sample, path: Path) -> None:
    torch.onnx.export(sample.module(), tuple(sample.tensors()), str(path), dynamo=False)


def by_translation(sample: Sample, path: Path) -> None:
    """Neither checked nor rewritten: the quickest look at a translation in work."""
    with torch.no_grad():
        program = torch.export.export(sample.module(), tuple(sample.tensors()))
    ir.save(translate_program(program, 20, {}).model, path)


EXPORTERS: dict[str, Callable[[Sample, Path], None]] = {
    STATIC: by_anyshape, FOUND: by_anyshape_with_dims, TORCH: by_torch, TORCHSCRIPT: by_torchscript,
    "translation": by_translation,
}  # fmt: skip


# ---- one sample by one exporter


def judged(sample: Sample, exporter: str, stage: Callable[[str], None]) -> dict[str, Any]:
    """What became of it: `stage` is told where it stands, in case that it dies there."""
    if draws_itself(sample.function) or is_random(sample):
        return {"outcome": "random"}
    stage("eager")
    try:
        sample.module()(*sample.tensors())
    except Exception as error:
        return {"outcome": "no sample", "reason": first_line(error)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        stage("export")
        try:
            with quiet():
                EXPORTERS[exporter](sample, path)
        except Exception as error:
            return {"outcome": "refused", "reason": reason_of(error)}
        stage("opening")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = 1, 4
        try:
            session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            return {"outcome": "refused", "reason": first_line(error)}
        differing = {}
        for name, tensors in contents(sample):
            stage(name)
            found = difference(sample, session, tensors)
            if found:
                differing[name] = found
    outcome = "wrong" if "as given" in differing else "values" if differing else "right"
    return {"outcome": outcome, **({"contents": differing} if differing else {})}


def first_line(error: BaseException) -> str:
    text = f"{type(error).__name__}: {error}".strip()
    return text.splitlines()[0][:200]


def reason_of(error: BaseException) -> str:
    if isinstance(error, anyshape.ExportError):
        finding = error.result.findings[0] if error.result.findings else None
        last = next((one.reason for one in error.result.attempts if one.reason), "")
        return f"{finding.rule}: {finding.message}; {last.splitlines()[0] if last else ''}"[:300] if finding else last
    return first_line(error)


def difference(sample: Sample, session: Any, tensors: list[torch.Tensor]) -> str:
    """Empty where the file gives what eager gives, or where eager has no answer to these contents."""
    try:
        expected, wide = eager(sample, tensors), eager(sample, tensors, torch.float64)
    except Exception:
        return ""
    names = [one.name for one in session.get_inputs()]
    arrays = [one.numpy() for one in tensors]
    if len(names) != len(arrays):
        return f"{len(names)} inputs for {len(arrays)}"
    try:
        actual = session.run(None, dict(zip(names, arrays, strict=True)))
    except Exception as error:
        return first_line(error)
    if len(actual) != len(expected):
        return f"{len(actual)} outputs for {len(expected)}"
    largest = max((largest_of(one) for one in arrays), default=1.0)
    for one, other, exact in zip(actual, expected, wide, strict=True):
        name = sample.operator.split(" ")[0]
        if name in OPEN_TIES and other.dtype.kind == "i" and (len(actual) > 1 or name == "argsort"):
            continue
        # of whole numbers there is no wider run, which would show what a sum of large ones loses
        lost = 0.0 if sample.dtype == torch.float32 else 1e-6 * largest_of(other)
        if found := differing_element(np.asarray(one), other, exact, min(1.0, largest), lost):
            return found
    return ""


def largest_of(array: np.ndarray) -> float:
    finite = np.abs(array[np.isfinite(array)].astype(np.float64)) if array.size else array
    return float(finite.max()) if finite.size else 1.0


def eager(sample: Sample, tensors: list[torch.Tensor], dtype: torch.dtype | None = None) -> list[np.ndarray]:
    given = [one.clone() for one in tensors]
    if dtype is not None:
        given = [one.to(dtype) if one.dtype == torch.float32 else one for one in given]
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            results = sample.module()(*given)
        except Exception:
            if dtype is None:
                raise
            return eager(sample, tensors)
    return [np.asarray(one.resolve_neg().numpy() if isinstance(one, torch.Tensor) else one) for one in results]


def differing_element(
    actual: np.ndarray, expected: np.ndarray, exact: np.ndarray, scale: float, lost: float = 0.0
) -> str:
    """The first element that is off by more than eager's own rounding explains."""
    if actual.shape != expected.shape:
        return f"shape {actual.shape} for {expected.shape}"
    if actual.dtype != expected.dtype and expected.ndim:
        return f"{actual.dtype} for {expected.dtype}"
    if expected.dtype.kind != "f":
        return first_of(actual != expected, actual, expected)
    if exact.shape != expected.shape:
        exact = expected
    a, e, x = (one.astype(np.float64) for one in (actual, expected, exact))
    with np.errstate(all="ignore"):
        noise = np.where(np.isfinite(e) & np.isfinite(x), np.abs(e - x), 0)
        finite = np.abs(e[np.isfinite(e)])
        middle = float(np.median(finite)) if finite.size else 0.0
        allowed = 1e-4 * np.abs(e) + 1e-6 * scale + 20 * noise + 1e-5 * middle + lost
        agree = np.where(
            np.isfinite(e) & np.isfinite(a), np.abs(a - e) <= allowed, (a == e) | (np.isnan(a) & np.isnan(e))
        )
        # what overflows in float32 alone may do so in another order of the same sums
        overflow = (np.isfinite(x) != np.isfinite(e)) | (np.isfinite(x) & (np.abs(x) > 3e38))
    return first_of(~(agree | overflow), actual, expected)


def first_of(differs: np.ndarray, actual: np.ndarray, expected: np.ndarray) -> str:
    if not np.any(differs):
        return ""
    at = tuple(int(one) for one in np.argwhere(np.atleast_1d(differs))[0])
    a, e = np.atleast_1d(actual)[at], np.atleast_1d(expected)[at]
    return f"{a} for {e} ({int(np.sum(differs))} of {differs.size})"


# ---- processes that may die


def run_all(work: list[tuple[str, str]], lines: Path, done: set[tuple[str, str]], most: int) -> None:
    """A forked child goes through the work; the next one goes on behind the sample that ended it."""
    while True:
        rest = [one for one in work if one not in done]
        if not rest:
            return
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            run_in_child(rest, os.fdopen(writer, "w", buffering=1), most)
        os.close(writer)
        told = follow(os.fdopen(reader), lines, done)
        _, status = os.waitpid(child, 0)
        if told is not None:
            key, exporter, stage = told
            number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
            how = "late" if number == signal.SIGALRM else signal.Signals(number).name if number else "ended"
            write(lines, {"key": key, "exporter": exporter, "outcome": "died", "reason": f"{how} in {stage}"})
            SKIPPED.add((key, exporter))


SKIPPED: set[tuple[str, str]] = set()


def run_in_child(rest: list[tuple[str, str]], out: Any, most: int) -> None:
    def say(record: dict[str, Any]) -> None:
        out.write(json.dumps(record) + "\n")

    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    infos = operators()
    for name, exporter in rest:
        for sample in samples(name, infos[name], most):
            if (sample.key, exporter) in SKIPPED:
                continue
            say({"begun": [sample.key, exporter, "begin"]})
            signal.alarm(SECONDS)
            torch.manual_seed(0)

            begun = partial(lambda key, by, where: say({"begun": [key, by, where]}), sample.key, exporter)
            try:
                found = judged(sample, exporter, begun)
            except Exception as error:
                found = {"outcome": "refused", "reason": f"benchmark: {first_line(error)}"}
            signal.alarm(0)
            say({"key": sample.key, "exporter": exporter, **found})
        say({"done": [name, exporter]})
    out.flush()
    os._exit(0)


def follow(reader: Any, lines: Path, done: set[tuple[str, str]]) -> list[str] | None:
    """Keep what the child says; what it was at when it died, or None."""
    at = None
    for text in reader:
        record = json.loads(text)
        if "begun" in record:
            at = record["begun"]
        elif "done" in record:
            done.add(tuple(record["done"]))
            at = None
            print(*record["done"], flush=True)
        else:
            SKIPPED.add((record["key"], record["exporter"]))
            write(lines, record)
            at = None
    return at


def write(lines: Path, record: dict[str, Any]) -> None:
    with lines.open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


def known(lines: Path) -> Iterator[tuple[str, str]]:
    if lines.exists():
        for text in lines.read_text(encoding="utf-8").splitlines():
            record = json.loads(text)
            yield record["key"], record["exporter"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="operators whose name this expression matches")
    parser.add_argument("--every", type=int, default=1, help="every n-th of them: a quick look that is spread over all")
    parser.add_argument("--samples", type=int, default=5, help="at most so many of floats, and half as many others")
    parser.add_argument("--exporter", action="append", help="instead of the columns below, by name")
    parser.add_argument("--dims", action="store_true", help="with dims found, too")
    parser.add_argument("--peers", action="store_true", help="torch's exporters, too")
    parser.add_argument("--again", action="store_true", help="run what has a result, too")
    parser.add_argument("--show", action="store_true", help="print what is not right, and run nothing")
    parser.add_argument("--lines", type=Path, default=LINES)
    parser.add_argument("--keep", action="store_true", help="keep the summary of which docs/operators.md is made")
    given = parser.parse_args()
    torch.set_num_threads(1)
    exporters = given.exporter or [STATIC, *[FOUND] * given.dims, *[TORCH, TORCHSCRIPT] * given.peers]
    if not given.show:
        if not given.again:
            SKIPPED.update(known(given.lines))
        with quiet():  # what every export needs is imported once, before the first fork
            anyshape.export(torch.nn.Identity(), (torch.ones(2, 3),), dims={})
        names = [name for name in operators() if re.search(given.only, name)][:: given.every]
        # whenever it is ended, what was run is spread over all, and alike for every exporter
        random.Random(0).shuffle(names)
        run_all([(name, exporter) for name in names for exporter in exporters], given.lines, set(), given.samples)
    newest = newest_results(given.lines.read_text(encoding="utf-8").splitlines())
    chosen = {name: cells for name, cells in summary(newest.values()).items() if re.search(given.only, name)}
    for name, cells in chosen.items():
        for exporter in exporters:
            cell = cells.get(exporter, {"outcome": "right"})
            if cell["outcome"] != "right":
                print(f"{name} [{exporter}] {cell['outcome']} {cell.get('reason', '')} {cell.get('contents', '')}")
    for exporter in exporters:
        print(f"{exporter}: {counted(chosen, exporter)}")
    if given.keep:
        keep(newest.values())


if __name__ == "__main__":
    sys.exit(main())
