"""Proposals on trial: the same result at the example's sizes, and runs at others."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from anyshape.diagnosis.edit_proposals import proposals
from anyshape.diagnosis.edit_proposals.change import EditProposal
from anyshape.diagnosis.edit_trials import EditTrials, edit_of, in_place, reaches
from anyshape.diagnosis.pinned_dims import Diagnosis
from tests.diagnosis.traced import shown
from tests.surveys import survey_of


class Viewed(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.view(3, 8) + 1


X = torch.randn(3, 2, 4)


@pytest.fixture(scope="module")
def trials() -> EditTrials:
    survey = survey_of(Viewed(), (X,), {"x": "n 2 4"})
    return EditTrials(survey.reference, survey.request.spec, survey.start, survey.home)


@pytest.fixture(scope="module")
def ways() -> list[EditProposal]:
    (cause,), known = Diagnosis(survey_of(Viewed(), (X,), {"x": "n 2 4"}))._seen_in_a_trace()
    return proposals(cause, known)


def _the(ways: list[EditProposal], text: str) -> EditProposal:
    return next(one for one in ways if shown(one) == text)


def test_the_first_that_runs_everywhere_is_best(trials: EditTrials, ways: list[EditProposal]) -> None:
    best, *_ = trials.ranked(ways, ("n",), past=trials._home)
    assert shown(best.proposals[-1]) == "3 -> x.shape[0]"
    assert best.passes
    assert best.keeps_samples_apart
    assert {sizes["n"] for sizes in best.ran} == {1, 2, 4, 5, 6}
    assert best.differs_at == {"n": 1}


def test_what_changes_the_result_or_mends_nothing_is_no_help(trials: EditTrials, ways: list[EditProposal]) -> None:
    reading = ways[0].reading
    other, same = (
        EditProposal(reading, (reading.source.change(reading.node, text),), text)
        for text in ("x.view(3, 8) * 2", "x.view((3, 8))")
    )
    assert trials.together([other], ("n",)) is None
    assert trials.together([same], ("n",)) is None


def test_inside_the_model_runs_other_code_and_afterwards_its_own(trials: EditTrials, ways: list[EditProposal]) -> None:
    way = _the(ways, "3 -> x.shape[0]")
    with in_place([way]):
        assert Viewed()(torch.randn(5, 2, 4)).shape == (5, 8)
    with pytest.raises(RuntimeError):
        Viewed()(torch.randn(5, 2, 4))
    assert trials.runs([way], {"n": 5})
    assert not trials.runs([], {"n": 5})


def test_one_trial_reaches_another_where_it_runs_with_the_same_results(
    trials: EditTrials, ways: list[EditProposal]
) -> None:
    whole = trials.together([_the(ways, "3 -> x.shape[0]")], ("n",))
    assert whole is not None
    assert reaches(whole, whole)


def test_other_sizes_move_each_dim_alone_and_then_all() -> None:
    survey = survey_of(nn.Tanh(), (torch.randn(3, 4),), {"input": "a b"})
    trials = EditTrials(survey.reference, survey.request.spec, survey.start, survey.home)
    others = trials.others(("a", "b"))
    assert {"a": 2, "b": 4} in others
    assert {"a": 4, "b": 6} in others
    assert survey.start not in others


def test_proposals_of_a_file_are_one_edit(ways: list[EditProposal]) -> None:
    way = _the(ways, "3 -> x.shape[0]")
    edit = edit_of(way, way, tried="it runs", safe=False)
    assert (edit.title, edit.tried, edit.safe, len(edit.changes)) == ("take the size from `x`", "it runs", False, 1)
