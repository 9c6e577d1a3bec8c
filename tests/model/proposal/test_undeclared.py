"""Nothing was declared: where dims come from is said first."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from anyshape.declaration.calls import bind_call
from anyshape.declaration.targets import resolve_target
from anyshape.errors import DeclarationError
from anyshape.model.proposal.undeclared import propose, propose_from_make_inputs

TARGET = resolve_target(nn.Linear(4, 3))


def calls(*sizes):
    return tuple(bind_call(TARGET, (torch.randn(*size, 4),)) for size in sizes)


@pytest.mark.parametrize(
    ("signatures", "make_inputs", "known", "source"),
    [
        (calls((2, 5)), None, None, "nothing was declared: dims were found by probing"),
        (calls((2, 5), (3, 7)), None, None, "dims were found from 2 calls"),
        (calls((2, 5)), lambda n, m: torch.randn(n, m, 4), {"n": 2, "m": 5}, "dims are the parameters of make_inputs"),
    ],
)
def test_the_first_note_says_where_the_dims_come_from(signatures, make_inputs, known, source):
    found = propose(TARGET, signatures, make_inputs, known)
    assert found.notes[0] == f"{source}; declare dims= to say otherwise"
    assert [entry == "_" for entry in found.dims["input"]] == [False, False, True]


def test_axes_are_expressions_of_the_parameters_of_make_inputs():
    target = resolve_target(lambda x, y, z: x)

    def make_inputs(batch, seq, unused=3):
        return torch.zeros(batch, 2 * seq), torch.zeros(batch, batch + seq), torch.zeros(7)

    found = propose_from_make_inputs(target, make_inputs, {"batch": 2, "seq": 5, "unused": 3})
    assert found.dims == {"x": ("batch", "2 * seq"), "y": ("batch", "batch + seq")}
    assert list(found.basis) == ["batch", "seq"]


def test_sizes_that_make_inputs_refuses_are_left_out():
    target = resolve_target(lambda x: x)

    def make_inputs(n):
        if n > 6:
            raise ValueError
        return torch.zeros(n, n + 1)

    assert propose_from_make_inputs(target, make_inputs, {"n": 3}).dims == {"x": ("n", "n + 1")}


def test_an_axis_that_follows_no_known_formula_is_told():
    target = resolve_target(lambda x: x)
    with pytest.raises(DeclarationError) as caught:
        propose_from_make_inputs(target, lambda n: torch.zeros(2**n), {"n": 3})
    assert str(caught.value) == "axis 0 of `x` moves with the sizes of make_inputs in no way that is known: give dims="
