"""`anyshape dims` as a function: a proposal from every kind of call, as text and as data."""

from __future__ import annotations

import torch
from torch import nn

from anyshape.verbs.dims import propose_dims

MODEL = nn.Linear(4, 3)
WRITTEN = """\
dims={
    "input": "batch seq _",
},

batch  axis 0 of `input` moves alone
seq    axis 1 of `input` moves alone

note: found with"""


def test_one_call_is_enough():
    found = propose_dims(MODEL, torch.randn(2, 5, 4))
    assert str(found).startswith(WRITTEN)
    assert found.to_dict()["dims"] == {"input": ["batch", "seq", "_"]}
    assert found.leaves == ("input",)


def test_several_calls_show_what_differs():
    found = propose_dims(MODEL, examples=[(torch.randn(2, 5, 4),), (torch.randn(2, 7, 4),)])
    assert found.proposal.dims == {"input": ("_", "seq", "_")}
    assert not any("nothing was declared" in note or "were found" in note for note in found.proposal.notes)


def test_the_parameters_of_make_inputs_are_the_dims():
    found = propose_dims(MODEL, make_inputs=lambda rows, length=6: torch.randn(rows, length, 4))
    assert found.proposal.dims == {"input": ("rows", "length", "_")}


def test_keywords_are_a_call_too():
    assert propose_dims(MODEL, kwargs={"input": torch.randn(2, 4)}).proposal.dims == {"input": ("batch", "_")}
