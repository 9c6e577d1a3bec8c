"""What to try for a cause, the most likely first."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from anyshape.diagnosis.edit_proposals import of_asserts, of_pooling, of_slices, proposals
from anyshape.source.sites import read
from tests.diagnosis.traced import seen_in, shown


class Viewed(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.view(3, 8) + 1


class Multiple(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.view(6, 4) + 1


def test_the_wanted_size_comes_first_and_nothing_twice() -> None:
    (cause,), known = seen_in(Viewed(), (torch.randn(3, 2, 4),), {"x": "n 2 4"})
    made = [shown(one) for one in proposals(cause, known)]
    assert made[0] == "3 -> x.shape[0]"
    assert len(made) == len(set(made))


def test_a_multiple_of_a_size_is_tried_only_for_a_pin() -> None:
    (cause,), known = seen_in(Multiple(), (torch.randn(3, 2, 4),), {"x": "n 2 4"})
    many, few = (proposals(cause, known, many=many) for many in (True, False))
    assert "6 -> 2 * x.shape[0]" in map(shown, many)
    assert not any(one.is_multiple for one in few)


def test_code_without_source_has_none() -> None:
    names: dict[str, type[nn.Module]] = {"nn": nn}  # type: ignore[dict-item]
    text = "class Net(nn.Module):\n    def forward(self, x):\n        return x.view(3, 8)\n"
    exec(compile(text, "<string>", "exec"), names)  # type: ignore[arg-type]
    (cause,), known = seen_in(names["Net"](), (torch.randn(3, 2, 4),), {"x": "n 2 4"})
    assert proposals(cause, known) == []


# ---- changes of a single expression


class Asserted(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        assert x.shape[0] == 3, "three"
        return x * 2


class Flattened(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(2 * 4 * 5, 3)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.head(x.flatten(1)))


class Positions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(1, 7, 4))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table


def test_an_assertion_is_dropped_which_is_not_safe() -> None:
    (cause,), known = seen_in(Asserted(), (torch.randn(3, 4),), {"x": "n 4"})
    reading = read(cause.site)
    assert reading is not None
    (proposal,) = of_asserts(cause, reading, known)
    assert (shown(proposal), proposal.safe) == ('assert x.shape[0] == 3, "three" -> pass', False)


def test_a_feature_map_is_pooled_to_the_size_of_the_example() -> None:
    causes, known = seen_in(Flattened(), (torch.randn(2, 2, 4, 5),), {"x": "n 2 h w"})
    made = []
    for cause in causes:
        reading = read(cause.site)
        made += [shown(one) for one in of_pooling(cause, reading, known)] if reading is not None else []
    assert set(made) == {"x -> F.adaptive_avg_pool2d(x, (4, 5))"}


def test_of_a_table_as_much_is_taken_as_is_needed() -> None:
    (cause,), known = seen_in(Positions(), (torch.randn(2, 7, 4),), {"x": "n seq 4"})
    reading = read(cause.site)
    assert reading is not None
    (proposal,) = of_slices(cause, reading, known)
    assert shown(proposal) == "self.table -> self.table[:, :x.shape[1]]"
    assert not proposal.safe


def test_a_table_of_samples_is_not_cut() -> None:
    class Rows(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Parameter(torch.randn(3, 4))

        def forward(self, x: Tensor) -> Tensor:
            return x + self.table

    (cause,), known = seen_in(Rows(), (torch.randn(3, 4),), {"x": "batch 4"})
    reading = read(cause.site)
    assert reading is not None
    assert list(of_slices(cause, reading, known)) == []
