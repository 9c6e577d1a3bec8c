"""The wrong files are wrong and the right ones right, by brute force; and the verifier says the same."""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Iterator

import numpy as np
import onnx
import onnxruntime
import pytest
import torch

import anyshape

from .wrong_files import RIGHT, SUBJECTS, WRONG, FileCase, Subject

torch.set_num_threads(1)

RIGHT_WITHIN = 1e-5  # of the largest value of an output: rounding, and nothing else
WRONG_BEYOND = 1e-3
SLIGHTLY_WRONG_BEYOND = 1e-4
Sizes = dict[str, int]
Outputs = list[np.ndarray]


def _name(case: FileCase | Subject) -> str:
    return case.name


# ---- the truth, by brute force


def _grid(subject: Subject) -> list[Sizes]:
    """Every size in the ranges, or 200 of them with all corners; the traced size first."""
    ends = {dim: [int(end) for end in text.split("..")] for dim, text in subject.sizes.items()}
    whole = [dict(zip(ends, p, strict=True)) for p in itertools.product(*(range(a, b + 1) for a, b in ends.values()))]
    corners = [dict(zip(ends, p, strict=True)) for p in itertools.product(*ends.values())]
    drawn = whole if len(whole) <= 200 else random.Random(0).sample(whole, 200 - len(corners) - 1)
    chosen = [subject.traced, *corners, *drawn]
    return [dict(items) for items in dict.fromkeys(tuple(sizes.items()) for sizes in chosen)]


@functools.cache
def _truth(name: str) -> list[tuple[Sizes, dict[str, np.ndarray], Outputs]]:
    """For every size of a subject: what goes in, and what the module gives in float64."""
    (subject,) = (s for s in SUBJECTS if s.name == name)
    module = subject.module().double()
    found = []
    for sizes in _grid(subject):
        inputs = subject.inputs(**sizes)
        with torch.no_grad():
            outputs = module(*(t.double() if t.is_floating_point() else t for t in inputs))
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        feeds = {key: t.numpy() for key, t in zip(subject.dims, inputs, strict=True)}
        found.append((sizes, feeds, [t.numpy() for t in outputs]))
    return found


def _session(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _errors(case: FileCase) -> Iterator[tuple[Sizes, float]]:
    """Each size with the error relative to an output's largest value; infinite where shapes differ or it fails."""
    session = _session(case.build())
    for sizes, feeds, expected in _truth(case.subject.name):
        try:
            found = session.run(None, feeds)
        except Exception:  # noqa: BLE001  what ONNX Runtime raises has no common class of its own
            yield sizes, np.inf
        else:
            yield sizes, max(map(_distance, found, expected))


def _distance(found: np.ndarray, expected: np.ndarray) -> float:
    if found.shape != expected.shape:
        return np.inf
    if expected.dtype.kind != "f":
        return 0.0 if np.array_equal(found, expected) else np.inf
    largest = np.abs(expected).max(initial=0)
    return float(np.abs(found - expected).max(initial=0) / (largest or 1))


def _lies_at(case: FileCase) -> list[Sizes]:
    """The sizes at which a declared axis is not what the right values have."""
    graph = case.build().graph
    lies = []
    for sizes, feeds, expected in _truth(case.subject.name):
        actual = [*zip(graph.input, feeds.values(), strict=True), *zip(graph.output, expected, strict=True)]
        known: Sizes = {}
        holds = [_holds(axis, size, known) for value, array in actual for axis, size in _axes(value, array)]
        lies += [] if all(holds) else [sizes]
    return lies


def _axes(value: onnx.ValueInfoProto, array: np.ndarray) -> list[tuple[int | str, int]]:
    declared = [axis.dim_param or axis.dim_value for axis in value.type.tensor_type.shape.dim]
    return list(zip(declared, array.shape, strict=True))


def _holds(axis: int | str, size: int, known: Sizes) -> bool:
    """A name is bound where it is first seen; an expression is evaluated; 0 is an axis without a name."""
    if isinstance(axis, int):
        return axis in (0, size)
    if axis.isidentifier():
        return known.setdefault(axis, size) == size
    return eval(axis, {"min": min, "max": max}, known) == size


def _is_slight_everywhere(case: FileCase) -> bool:
    return case.wrong.startswith("slightly, everywhere")


# ---- the material itself


def test_names_are_unique_and_there_is_enough_of_each_kind():
    names = [case.name for case in (*WRONG, *RIGHT)]
    assert len(set(names)) == len(names)
    assert len(WRONG) >= 45
    assert len(RIGHT) >= 22
    assert sum(map(_is_slight_everywhere, WRONG)) <= 3
    assert {case.subject.name for case in WRONG} == {case.subject.name for case in RIGHT} == set(map(_name, SUBJECTS))
    assert all(case.wrong for case in WRONG)
    assert not any(case.wrong for case in RIGHT)


@pytest.mark.parametrize("subject", SUBJECTS, ids=_name)
def test_traced_sizes_differ_and_lie_inside_the_ranges(subject):
    assert len(set(subject.traced.values())) == len(subject.traced)
    for dim, text in subject.sizes.items():
        low, high = map(int, text.split(".."))
        assert low < subject.traced[dim] < high


@pytest.mark.parametrize("case", [*WRONG, *RIGHT], ids=_name)
def test_every_file_is_valid_onnx(case):
    onnx.checker.check_model(case.build())


@pytest.mark.parametrize("case", WRONG, ids=_name)
def test_wrong_files_are_right_when_traced_and_wrong_elsewhere(case):
    (_, when_traced), *elsewhere = _errors(case)
    assert when_traced <= RIGHT_WITHIN or _is_slight_everywhere(case)
    beyond = SLIGHTLY_WRONG_BEYOND if case.wrong.startswith("slightly") else WRONG_BEYOND
    assert any(error > beyond for _, error in elsewhere) or _lies_at(case)


@pytest.mark.parametrize("case", RIGHT, ids=_name)
def test_right_files_are_right_at_every_size(case):
    assert {str(sizes): error for sizes, error in _errors(case) if not error <= RIGHT_WITHIN} == {}
    assert _lies_at(case) == []


# ---- the verifier


def _check(case: FileCase, folder):
    path = folder / "model.onnx"
    onnx.save(case.build(), path)
    subject = case.subject
    return anyshape.check(
        path, subject.module(), subject.inputs(**subject.traced), dims=subject.dims, sizes=subject.sizes
    )


@pytest.mark.parametrize("case", WRONG, ids=_name)
def test_catches_every_wrong_file(case, tmp_path):
    with pytest.raises(anyshape.ExportError) as raised:
        _check(case, tmp_path)
    assert all(finding.rule for finding in raised.value.findings)
    assert raised.value.findings


@pytest.mark.parametrize("case", RIGHT, ids=_name)
def test_accepts_every_right_file(case, tmp_path):
    assert _check(case, tmp_path).verdict == "checked"
