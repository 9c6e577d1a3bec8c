"""Every operator of torch's own database, exported and run with values of all kinds: right, refused, or wrong where.

A collection for `anyshape sweep`: each sample of an operator is a small model of which nothing varies, for three
exporters and a judge of its own: the file runs in ONNX Runtime beside eager on the sample's values and on others.
`operators_with_dims.py` has the same models with dims to be found.
Run: anyshape sweep benchmarks/operators.py -o build/operators --resume [--only REGEX] [--shard 1/4] [--by anyshape]
     anyshape sweep benchmarks/operators_with_dims.py -o build/operators_with_dims --resume
Then: python benchmarks/operator_tables.py build/operators build/operators_with_dims [--keep]
Needs: pip install -r benchmarks/requirements-operators.txt
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch

from operator_samples import OPEN_TIES, Sample, contents, draws_itself, is_random, operators, samples

columns = {"anyshape": {}, "torch": {"by": "torch"}, "TorchScript": {"by": "torchscript"}}
SAMPLES = 2
"""At most so many of floats, and half as many others."""


def models(only: str | None = None) -> Iterator[dict[str, Any]]:
    """Every sample as it is; where one is asked for, those of its operator alone are made."""
    for sample in judged_samples(only):
        yield {
            "name": sample.key, "model": sample.module, "inputs": tuple(sample.tensors()), "dims": {},
            "judge": partial(judged, sample), "tags": [str(sample.dtype).removeprefix("torch.")],
        }  # fmt: skip


def models_with_dims(only: str | None = None) -> Iterator[dict[str, Any]]:
    """The same, with nothing said of what varies."""
    for entry in models(only):
        yield {name: value for name, value in entry.items() if name != "dims"}


def judged_samples(only: str | None) -> Iterator[Sample]:
    """Without operators that draw, and without samples that eager itself does not run: they tell nothing."""
    for name, info in operators().items():
        if only is None or only.rsplit(" ", 2)[0] == name:
            found = list(samples(name, info, SAMPLES))
            if not any(draws_itself(sample.function) or is_random(sample) for sample in found):
                yield from filter(runs, found)


def runs(sample: Sample) -> bool:
    try:
        sample.module()(*sample.tensors())
    except Exception:
        return False
    return True


# ---- the judge


def judged(sample: Sample, path: Path, _model: torch.nn.Module) -> dict[str, Any]:
    """With which contents the file is off, and how; wrong is what is off with the sample's own."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    try:
        session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        return {"cause": first_line(error), "opens": "no"}
    found = {name: difference(sample, session, tensors) for name, tensors in contents(sample)}
    differing = {name: told for name, told in found.items() if told}
    return {"cause": differing.get("as given"), **({"contents": differing} if differing else {})}


def first_line(error: BaseException) -> str:
    text = f"{type(error).__name__}: {error}".strip()
    return text.splitlines()[0][:200]


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
