"""A module that decides by values at some sizes, where its trace decides nothing: right, if both answers were run."""

from __future__ import annotations

import copy
import ctypes
import inspect
import io
import logging
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch import Tensor, nn

import anyshape


class Skipping(nn.Module):
    """As masks are skipped in transformers: with one token and nothing hidden, a shorter way gives the same."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        if x.shape[1] == 1 and not torch.compiler.is_exporting() and bool(mask.all()):
            return x * 2
        return x * 2 * mask.float().mean(1)[:, None, None]


def test_a_decision_that_was_taken_both_ways_is_not_frozen() -> None:
    call = (torch.randn(2, 3, 4), torch.ones(2, 6, dtype=torch.bool))
    result = anyshape.export(Skipping(), call, dims={"x": "batch seq 4", "mask": "batch n"})
    assert [(attempt.strategy, attempt.outcome) for attempt in result.attempts] == [("torch.export", "checked")]


def _unless_nothing_is_hidden(x: Tensor, mask: Tensor, weighted: Tensor) -> Tensor:
    """Asked in two places; the second is reached only where something is hidden, and then has one answer."""
    if bool(mask.all()):
        return x
    if bool(mask[:, : mask.shape[1]].all()):
        return x
    return weighted


class SkippingInTwoPlaces(nn.Module):
    """The second place is asked only where something is hidden, and then has one answer, at every size."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        if x.shape[1] > 1:
            x = x + 0.0
        weighted = x * mask.float().mean(1)[:, None, None]
        if torch.compiler.is_exporting():
            return weighted
        return _unless_nothing_is_hidden(x, mask, weighted)


def test_a_decision_that_the_trace_passes_by_at_its_own_sizes_is_not_frozen_at_others() -> None:
    call = (torch.randn(2, 3, 4), torch.ones(2, 6, dtype=torch.bool))
    result = anyshape.export(SkippingInTwoPlaces(), call, dims={"x": "batch seq 4", "mask": "batch n"})
    assert [(attempt.strategy, attempt.outcome) for attempt in result.attempts] == [("torch.export", "checked")]


class SkippingBelowAWindow(nn.Module):
    """As masks with a window are skipped in transformers: only below it, where the second place has one answer."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        assert x.shape[1] >= 5 or x.dim() == 3  # which the trace assumes
        weighted = x * mask.float().mean(1)[:, None, None]
        if torch.compiler.is_exporting() or x.shape[1] >= 5:
            return weighted
        return _unless_nothing_is_hidden(x, mask, weighted)


def test_a_decision_that_a_trace_passes_by_at_the_sizes_where_it_is_met_is_not_frozen() -> None:
    call = (torch.randn(2, 7, 4), torch.ones(2, 6, dtype=torch.bool))
    result = anyshape.export(SkippingBelowAWindow(), call, dims={"x": "batch seq 4", "mask": "batch n"})
    assert [(attempt.strategy, attempt.outcome) for attempt in result.attempts] == [("torch.export", "checked")]


class DecidingBelowAWindow(nn.Module):
    """The same without a word about exports: the file would never give the other answer."""

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] < 5 and bool(x.sum() > 1e30):
            return x * 0
        return x * 2


def test_a_decision_that_no_trace_passes_by_is_still_frozen() -> None:
    result = anyshape.export(DecidingBelowAWindow(), (torch.randn(2, 7, 4),), dims={"x": "batch seq 4"})
    assert [(attempt.strategy, attempt.outcome) for attempt in result.attempts] == [
        ("torch.export", "failed"),
        ("torch.export with branches and loops", "checked"),
    ]
    assert result.attempts[0].reason.startswith("would freeze a decision at")


class ReadingABool(nn.Module):
    """A decision that a trace takes along, as a number."""

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] < 5:
            return x * 2 - (x.sum() > 1e3).item() * x * 2
        return x * 2


class DecidingInOtherWords(nn.Module):
    """A decision that is exported as an operator."""

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] >= 5:
            return x * 2
        if torch.compiler.is_exporting():
            return torch.where(x.sum() > 1e3, x * 0, x * 2)
        return x * 0 if bool(x.sum() > 1e3) else x * 2


class DecidingTwice(nn.Module):
    """One decision that is left out of exports at all sizes, and one at a single size that is not."""

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] < 5:
            if not torch.compiler.is_exporting() and bool(x.sum() > 1e30):
                return x * 2
            if x.shape[0] == 3 and x.shape[1] == 3 and bool(x.sum() > 1e3):
                return x * 0
        return x * 2


@pytest.mark.parametrize("module", [ReadingABool(), DecidingInOtherWords(), DecidingTwice()])
def test_a_decision_that_a_trace_takes_along_is_frozen(module: nn.Module, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    anyshape.export(module, (torch.randn(2, 7, 4),), path, dims={"x": "batch seq 4"})
    x = torch.full((3, 3, 4), 100.0)
    (found,) = onnxruntime.InferenceSession(path).run(None, {"x": x.numpy()})
    assert torch.equal(torch.from_numpy(found), module(x))


class ReadingBelowAWindow(nn.Module):
    """A length that a trace takes as it comes, although it decides what the result is."""

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        if x.shape[1] < 5:
            return x[:, : int(lengths.max().clamp(min=5))] * 2
        return x * 2


def test_a_number_that_is_read_is_no_decision_that_a_trace_passes_by() -> None:
    call = (torch.randn(2, 7, 4), torch.tensor([7, 7]))
    result = anyshape.export(ReadingBelowAWindow(), call, dims={"x": "batch seq 4", "lengths": "batch"})
    assert result.attempts[0].reason.startswith("would freeze a decision at")


# ---- reads other than decisions


READERS: dict[str, Callable[[Tensor], Any]] = {
    "set": lambda x: len(set(x.flatten().tolist())),
    "asarray": lambda x: float(np.asarray(x).max() > 50),
    "dlpack": lambda x: float(torch.from_dlpack(x).max() > 50),
    "storage": lambda x: float(x.untyped_storage()[3] == 255),
    "text": lambda x: float("e+" in f"{x}"),
    "str": lambda x: float("e+" in str(x)),
    "repr": lambda x: float("nan" in repr(x)),
    "format": lambda x: float("e+" in format(x)),
    "text of a number": lambda x: float("e+" in str(x.max().item())),
    "pickle": lambda x: float(b"never" in pickle.dumps(x)),
    "saved": lambda x: float(_saved(x) < 0),
    "numpy": lambda x: float(x.detach().cpu().numpy().max() > 50),
    "address": lambda x: float(ctypes.c_float.from_address(x.data_ptr()).value > 50),
    "copy": lambda x: float(copy.deepcopy(x).max().item() > 50),
    "written before": lambda x: float(_written(x).max() > 50),
}


def _saved(x: Tensor) -> int:
    torch.save(x, file := io.BytesIO())
    return file.tell()


def _written(x: Tensor) -> Tensor:
    kept = torch.zeros(2)
    kept[1] = x.max()
    return kept


class Reading(nn.Module):
    def __init__(self, read: Callable[[Tensor], Any], beyond: int) -> None:
        super().__init__()
        self.read, self.beyond = read, beyond

    def forward(self, x: Tensor) -> Tensor:
        return x * (1 + self.read(x)) if x.shape[0] > self.beyond else x * 1


X = torch.rand(3, 4, generator=torch.Generator().manual_seed(0))


QUICK = {("set", 8), ("text", 0), ("text", 8), ("text of a number", 0), ("numpy", 8), ("written before", 8)}
"""Of every kind one."""


@pytest.mark.parametrize(
    ("name", "beyond"),
    [pytest.param(n, b, marks=() if (n, b) in QUICK else pytest.mark.slow) for n in READERS for b in (0, 8)],
)
def test_what_python_reads_is_followed_or_refused(name: str, beyond: int) -> None:
    model = Reading(READERS[name], beyond)
    try:
        result = anyshape.export(model, X, dims={"x": "n 4"}, quick=True, sizes={"n": "1..12"})
    except anyshape.ExportError as refused:
        (finding,) = refused.findings
        assert finding.rule in ("frozen-branch", "pinned-dim", "bounded-dim", "data-dependent-size", "wrong-values")
    else:
        for x in (X * 1000, torch.full((9, 4), 1e9), torch.zeros(10, 4)):
            assert torch.equal(result(x)[0], model(x))


def test_a_text_that_decides_is_refused_at_its_line() -> None:
    class Worded(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            words = f"largest {x.max()}"
            return x * 2 if "e+" in words else x

    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.export(Worded(), X, dims={"x": "n 4"}, quick=True)
    (finding,) = refused.value.findings
    assert finding.rule == "frozen-branch"
    assert finding.span.line == inspect.getsourcelines(Worded.forward)[1] + 1
    assert finding.message == "a decision on values would be frozen in the export"


def test_a_while_on_values_is_told_what_keeps_it() -> None:
    class Halving(nn.Module):
        """Of a rank that grows: no loop of a file carries it."""

        def forward(self, x: Tensor) -> Tensor:
            while x.abs().max() > 1:
                x = x[None] / 2
            return x.sum()

    with pytest.raises(anyshape.ExportError) as refused:
        anyshape.export(Halving(), X, dims={"x": "n 4"}, quick=True)
    (finding,) = refused.value.findings
    assert (finding.rule, finding.span.line) == ("frozen-branch", inspect.getsourcelines(Halving.forward)[1] + 1)
    assert finding.helps == ("use torch._higher_order_ops.while_loop, or a fixed number of steps with torch.where",)


def test_what_is_printed_or_logged_is_a_note() -> None:
    class Talking(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            if x.shape[0] > 8:
                print(f"long: {x.mean()}")  # noqa: T201
            logging.getLogger(__name__).warning(f"{x}")  # noqa: G004
            assert x.shape[1] == 4, f"{x}"
            return x * 2

    first = inspect.getsourcelines(Talking.forward)[1]
    result = anyshape.export(Talking(), X, dims={"x": "n 4"}, quick=True, sizes={"n": "1..12"})
    assert result.verdict == "checked"
    (note,) = result.notes
    assert note.startswith("values are printed or logged, which the file does not do: ")
    assert all(f"test_frozen_decisions.py:{first + line}:" in note for line in (2, 3))
    # what only long inputs come to is run with other values there, too
    values = [row for row in result.to_dict()["verification"]["values_run"] if row["sizes"]["n"] > 8]
    assert {"sizes": values[0]["sizes"], "values": "`x` negated"} in values


def test_a_model_that_keeps_no_reads_is_followed_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anyshape.torchkit.recorder.value_decisions", lambda *_: pytest.fail("nothing is read"))
    assert anyshape.export(nn.Linear(4, 4), X, dims={"input": "n 4"}, quick=True).verdict == "checked"


def test_a_check_says_where_the_model_decides_by_values(tmp_path: Path) -> None:
    class Deciding(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * 0 if bool(x.sum() > 1e30) else x * 2

    class Doubling(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * 2

    anyshape.export(Doubling(), X, tmp_path / "model.onnx", dims={"x": "n 4"}, quick=True)
    note, otherwise = anyshape.check(tmp_path / "model.onnx", Deciding(), X, quick=True).notes
    assert otherwise == "NaN or inf is handled otherwise than in PyTorch: `output` is another with `x` holding inf"
    assert note.startswith("the model decides by values, of which only those that were run are checked: ")
    assert f"test_frozen_decisions.py:{inspect.getsourcelines(Deciding.forward)[1] + 1}:" in note
