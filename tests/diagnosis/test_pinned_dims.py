"""Every expression that makes a size a number, each once, with an edit that was tried."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from anyshape.diagnosis.causes import Cause, Want
from anyshape.diagnosis.edit_proposals.change import EditProposal
from anyshape.diagnosis.edit_trials import TriedEdits
from anyshape.diagnosis.pinned_dims import Diagnosis, SuspectedCause, finding_of
from anyshape.results.finding import Finding
from anyshape.sizes.notation import parse_condition, parse_expression
from anyshape.source.sites import Site, read, site_of_stack
from tests.surveys import survey_of


class TwoLines(nn.Module):
    """The second number shows only once the first is a size."""

    def forward(self, x: Tensor) -> Tensor:
        y = x.view(3, 8)
        return y + torch.zeros(3, 8)


class Multiple(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.view(-1, 2, 4)


class Head(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear(x)


def _found(model: nn.Module, x: Tensor, dims: str) -> list[Finding]:
    return Diagnosis(survey_of(model, (x,), {"x": dims})).findings()


def test_a_number_hides_those_behind_it_and_all_are_told() -> None:
    first, second = _found(TwoLines(), torch.randn(3, 2, 4), "n 2 4")
    assert [one.dims for one in (first, second)] == [("n",), ("n",)]
    assert second.span.line == first.span.line + 1
    assert first.edit is not None
    assert second.edit is not None
    assert {change.new for change in second.edit.changes} == {"x.new_zeros", "x.shape[0]"}
    assert first.edit.title.endswith(f"together with line {second.span.line}")
    assert first.breaks_at == {"n": 1}


def test_the_architecture_has_a_way_out_and_no_edit() -> None:
    (found,) = _found(Head(), torch.randn(3, 6), "n features")
    assert (found.dims, found.edit) == (("features",), None)
    assert "the architecture fixes the size: `linear` was made for 6 features" in found.notes
    assert found.helps[0].startswith("pool to a fixed size in front of `linear`")


def test_a_limit_is_no_pin() -> None:
    assert [one for one in _found(Multiple(), torch.randn(4, 6), "n 6") if one.level == "error"] == []


# ---- what is told about a suspect


BASE = {"n": 3, "m": 4}


def at(*_: Any) -> Site:
    site = site_of_stack(sys._getframe(1))
    assert site is not None
    return site


SITE = at(3)
CAUSE = Cause("number", SITE, (parse_condition("n == 3"),), (Want(parse_expression("n"), 3),))
PINNED = SuspectedCause(CAUSE, ("n",), {"n": 1, "m": 4}, is_pin=True)


def _proposal() -> EditProposal:
    reading = read(SITE)
    assert reading is not None
    ((node, _),) = reading.numbers()
    return EditProposal(reading, (reading.source.change(node, "x.shape[0]"),), "take the size from `x`", dims=("n",))


def _tried(**given: Any) -> TriedEdits:
    return TriedEdits((_proposal(),), ({"n": 1, "m": 4}, {"n": 5, "m": 4}), **given)


def test_a_pin_is_an_error_with_the_smallest_size_that_breaks_it() -> None:
    found = finding_of(PINNED, BASE)
    assert (found.headline, found.label) == ("error[pinned-dim]: `n` cannot vary", "`n` becomes 3 here")
    assert found.notes == ("smallest size that breaks it: n = 1, m = 4; PyTorch fails there too",)
    assert found.helps[0].startswith("take the size from an input instead of writing a number")
    assert found.span == SITE.span


def test_an_edit_says_how_it_was_tried_and_takes_the_help_s_place() -> None:
    found = finding_of(replace(PINNED, proposal=_proposal(), tried=_tried()), BASE)
    assert found.edit is not None
    assert (found.edit.tried, found.edit.safe) == ("same result at n = 3, runs at 1, 5", True)
    assert found.helps == ()
    mixing = finding_of(replace(PINNED, proposal=_proposal(), tried=_tried(keeps_samples_apart=False)), BASE)
    assert mixing.edit is not None
    assert not mixing.edit.safe


@pytest.mark.parametrize(
    ("kind", "name", "label", "help_"),
    [
        ("table", "model.positions", "`positions` has 3 entries for `n`", "take the size from an input"),
        (
            "table",
            "model.head.weight",
            "`head.weight` has 3 entries for `n`",
            "pool to a fixed size in front of `head`",
        ),
        ("input", "y", "`n` becomes 3 here", "declare that axis of `y`, too"),
        ("decision", "", "`n` becomes 3 here", "write the model without this condition on `n`"),
    ],
)
def test_each_kind_of_cause_has_its_way_out(kind: Any, name: str, label: str, help_: str) -> None:
    found = finding_of(replace(PINNED, cause=replace(CAUSE, kind=kind, name=name)), BASE)
    assert found.label == label
    assert found.helps[0].startswith(help_)


def test_what_fails_nowhere_is_a_warning() -> None:
    tried = _tried(differs_at={"n": 1, "m": 4})
    mean = SuspectedCause(replace(CAUSE, kind="mean"), ("n",), {}, proposal=_proposal(), tried=tried)
    found = finding_of(mean, BASE)
    assert (found.rule, found.level, found.label) == (
        "frozen-value",
        "warning",
        "divides by 3, which is `n` in the example",
    )
    assert found.notes == ("at n = 1, m = 4 the result is another than with the size itself",)
    split = finding_of(replace(mean, cause=CAUSE), BASE)
    assert (split.rule, split.label) == ("mixed-batch", "fits `n` = 3 alone")


def test_numbers_that_only_look_like_a_size_are_told_where_the_size_matters() -> None:
    plain = SuspectedCause(CAUSE, ("n",), {})
    assert not plain.is_telling
    assert not replace(plain, proposal=_proposal(), tried=_tried()).is_telling
    assert replace(plain, proposal=_proposal(), tried=_tried(differs_at={"n": 1})).is_telling
    assert PINNED.is_telling


def test_what_a_rule_explains_is_no_error() -> None:
    assert SuspectedCause(CAUSE, ("n",), {"n": 1}).is_error
    assert not SuspectedCause(CAUSE, ("n",), {"n": 1}, is_limit=True).is_error
