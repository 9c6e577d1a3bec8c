"""What is offered in the place of a declaration that is refused, and what a limit could be declared as."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from anyshape.errors import DeclarationError
from anyshape.model.limits import Limit
from anyshape.model.request import understand
from anyshape.results.finding import Finding
from anyshape.results.result import Result
from anyshape.results.verification import Check, Failure, Verification
from anyshape.sizes.notation import parse_conditions
from anyshape.sizes.spelling import on_the_command_line
from anyshape.source.spans import Span
from anyshape.stages.offers import notes_on_limits, relations_in, with_offer

EXAMPLE = {"batch": 2, "seq": 3, "past": 4, "total": 7, "bs": 2}


def test_equals_and_sums_that_the_example_shows_are_relations() -> None:
    assert list(map(str, relations_in(EXAMPLE, EXAMPLE))) == [
        "bs == batch", "total == past + seq", "past == batch + bs", "past == batch * bs",
    ]  # fmt: skip
    assert list(map(str, relations_in({"past_len": 2, "now": 2, "all": 4}, ["now", "past_len", "all"]))) == [
        "now == past_len", "all == past_len + now", "all == past_len * now",
    ]  # fmt: skip
    assert list(map(str, relations_in({"h": 3, "w": 4, "n": 12, "one": 1}, ["h", "w", "n", "one"]))) == [
        "w == h + one", "n == h * w",
    ]  # fmt: skip


def model(ids: torch.Tensor, past: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    raise AssertionError


def request() -> Any:
    call = torch.ones(2, 3), torch.ones(2, 4), torch.ones(2, 7)
    return understand(model, call, None, dims={"ids": "batch seq", "past": "batch past", "mask": "bs total"})


def refusal(
    dims: tuple[str, ...], origin: Any = "export", verification: Verification | None = None, rule: Any = "tied-dims"
) -> Result:
    finding = Finding(rule, "no", Span("m.py", 1), helps=("as before",), dims=dims, origin=origin)
    return Result("refused", findings=(finding,), verification=verification)


def offered(refused: Result, right: Any) -> tuple[str, list[str]]:
    """The help of the refusal, and what was tried for it; `right` says which declarations are."""
    tried: list[str] = []

    def run(one: Any) -> Any:
        ranges = {dim: str(sizes) for dim, sizes in one.spec.ranges.items() if str(sizes) != "1.."}
        tried.append(", ".join([*map(str, one.spec.where), *(f"{dim} {text}" for dim, text in ranges.items())]))
        return SimpleNamespace(verdict="checked" if right(tried[-1]) else "refused", verification=refused.verification)

    return with_offer(request(), refused, run).findings[0].helps[0], tried


def test_the_relation_that_was_right_is_the_help() -> None:
    assert offered(refusal(("past", "seq", "total")), lambda text: "total" in text) == (
        'declare it: where=["total == past + seq"]: with it the file is right',
        ["total == past + seq"],
    )
    help_text, tried = offered(refusal(("bs",)), lambda text: "bs ==" in text)
    assert help_text == (
        'did you mean one dim? give both axes the name `batch`, or where=["bs == batch"]: with it the file is right'
    )
    assert tried == ["bs == batch"]
    pinned = refusal(("total",), "model", rule="pinned-dim")
    assert offered(pinned, lambda text: "total" in text)[1] == ["total == past + seq"]
    with on_the_command_line():
        assert offered(refusal(("total",)), lambda text: "total" in text)[0] == (
            "declare it: --where 'total == past + seq': with it the file is right"
        )


def test_a_range_is_offered_where_no_relation_is_right() -> None:
    seen = Verification(
        (Check({**EXAMPLE, "seq": 6}, 0, 0.0),), (Failure({**EXAMPLE, "seq": 2}, 0, "wrong-shape", "y", "is other"),)
    )
    refused = refusal(("seq",), verification=seen)
    assert offered(refused, lambda text: text == "seq 3..") == (
        'declare it: sizes={"seq": "3.."}: with it the file is right',
        ["total == past + seq", "seq 3.."],
    )
    assert offered(refused, lambda _: False)[0] == "as before"
    numbers = refusal(("seq",), verification=seen, rule="wrong-values")  # what is off there is off elsewhere, too
    assert offered(numbers, lambda text: text == "seq 3..")[0] == "as before"


def test_what_pytorch_cannot_do_and_what_names_no_dim_is_left_as_it_is() -> None:
    for refused in (refusal(("total",), "model", rule="bounded-dim"), refusal(())):
        assert offered(refused, lambda _: True) == ("as before", [])
    bare = replace(refusal(()), findings=())
    assert with_offer(request(), bare, lambda _: pytest.fail("tried")) == bare


def test_a_trial_that_is_not_taken_leaves_the_refusal_as_it_is() -> None:
    seen = Verification((), (Failure({**EXAMPLE, "seq": 2}, 0, "wrong-shape", "y", "is other"),))

    def run(_: Any) -> Any:
        raise DeclarationError("the model fails on the example")

    refused = refusal(("total", "seq"), verification=seen)
    assert with_offer(request(), refused, run) == refused


def test_a_limit_that_a_simpler_relation_says_is_noted() -> None:
    def notes(text: str) -> list[str]:
        return list(notes_on_limits(EXAMPLE, [Limit(condition) for condition in parse_conditions(text)]))

    assert notes("bs == batch or batch == 1 or bs == 1") == [
        "limit `bs == batch or batch == 1 or bs == 1`: did you mean one dim? give both axes the name `batch`, "
        'or where=["bs == batch"]'
    ]
    assert notes("max(0, total - past) == seq or total == 1") == [
        'limit `max(0, total - past) == seq or total == 1`: declare it: where=["total == past + seq"]'
    ]
    assert notes("seq <= 5") == []
    assert notes("batch * seq <= 30") == []
