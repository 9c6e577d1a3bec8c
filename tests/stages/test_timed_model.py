"""A model beside its file: called on copies, at sizes inside of what both are for, and left as it was."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from anyshape.stages.model_comparison import declare_by_model
from anyshape.stages.timed_model import calls_beside_model
from anyshape.verification.given_file import read_given_file
from tests.onnxfile.strangers import text_model


class Scale(nn.Module):
    """Writes to its input, counts its calls, and takes no more than 9."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        if x.shape[0] > 9:
            raise ValueError("too many")
        self.calls += 1
        return x.mul_(2)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("scale") / "scale.onnx"
    model = text_model("main (float[n, 4] x) => (float[n, 4] y) { y = Add(x, x) }")
    path.write_bytes(model.SerializeToString())
    return read_given_file(path)


def _entered(file, model, **options):
    request = declare_by_model(file, model, torch.ones(3, 4), None, None, None, ())
    return calls_beside_model(file, request, threads=1, seed=0, **options)


def test_calls_are_those_of_the_model_and_leave_it_as_it_was(file):
    model, threads = Scale().train(), torch.get_num_threads()
    with _entered(file, model, compiles=False) as calls:
        assert torch.get_num_threads() == 1
        assert calls.offered.usual == {"n": 3}
        call = calls.call_at({"n": 5})
        assert list(call.ways) == ["eager"]
        assert call.feeds["x"].shape == (5, 4)
        first = call.feeds["x"].copy()
        (output,) = call.ways["eager"].outputs()
        assert (output == call.expected[0]).all()
        call.ways["eager"].call()
        assert (call.feeds["x"] == first).all(), "the file is run on what the model was given"
        assert (
            calls.call_at({"n": 10})
            == "PyTorch fails there: ValueError: too many (tests/stages/test_timed_model.py:24)"
        )
    assert (int(model.calls), model.training, torch.get_num_threads()) == (0, True, threads)


def test_a_random_model_is_known(file):
    with _entered(file, Noisy(), compiles=False) as calls:
        assert not calls.compares_values


class Noisy(nn.Module):
    def forward(self, x):
        return x + torch.randn_like(x)


@pytest.mark.slow
def test_a_compiled_model_gives_the_same(file):
    with _entered(file, nn.Sequential(nn.Linear(4, 4), nn.ReLU()), compiles=True) as calls:
        call = calls.call_at({"n": 7})
        assert list(call.ways) == ["eager", "compile"]
        (output,) = call.ways["compile"].outputs()
        assert abs(output - call.expected[0]).max() < 1e-5


def test_what_a_compiler_says_is_a_reason(file, monkeypatch):
    def refuse(*_, **__):
        def call(*_, **__):
            raise RuntimeError("no compiler\nsecond line")

        return call

    monkeypatch.setattr(torch, "compile", refuse)
    with _entered(file, nn.ReLU(), compiles=True) as calls:
        assert calls.call_at({"n": 7}).ways["compile"].outputs() == "fails: RuntimeError: no compiler"
