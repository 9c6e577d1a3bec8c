"""What the model's code says where it stands: its numbers and the values of its names, without a call."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch

from anyshape.source.sites import (
    UNKNOWN,
    Site,
    is_decision,
    is_told,
    names_at,
    read,
    site_of_error,
    site_of_stack,
    span_of_expression,
)

HEADS = 4


def _here() -> Site:
    site = site_of_stack(sys._getframe(1))
    assert site is not None
    return site


def at(*_: Any) -> Site:
    return _here().caller  # type: ignore[return-value]


def _numbers(site: Site) -> list[tuple[str, int]]:
    reading = read(site)
    assert reading is not None
    return [(reading.text_of(node), value) for node, value in reading.numbers()]


class Holder:
    width = 8
    sizes = (2, 3)


def test_numbers_are_read_with_what_they_are_made_of() -> None:
    holder, n, x = Holder(), 3, torch.zeros(2)
    site = at(x, 5, n, holder.width, holder.sizes[1], n * 2 - 1, HEADS, 7.0, -n)
    assert _numbers(site) == [
        ("5", 5), ("n", 3), ("holder.width", 8), ("holder.sizes[1]", 3), ("n * 2 - 1", 5), ("HEADS", 4), ("7.0", 7),
        ("-n", -3),
    ]  # fmt: skip


def test_what_would_take_a_call_is_not_known() -> None:
    x, n = torch.arange(4), 2
    site = at(x.sum(), x[0], n / 2, len(x), [n, 1], 0.5)
    # only what stands inside of them is known
    assert _numbers(site) == [("0", 0), ("n", 2), ("2", 2), ("n", 2), ("1", 1)]
    reading = read(site)
    assert reading is not None
    assert reading.value_of(reading.node) is UNKNOWN


def test_a_comprehension_knows_the_names_around_it() -> None:
    n = 3
    (site,) = [at(i, n) for i in range(1)]
    assert {"i", "n"} <= set(names_at(site))


def test_an_error_has_the_site_that_it_passed_last() -> None:
    def fails(x: torch.Tensor) -> torch.Tensor:
        return x.view(3, 5)

    with pytest.raises(RuntimeError) as raised:
        fails(torch.zeros(4))
    site = site_of_error(raised.value)
    assert site is not None
    assert (site.code.co_name, site.caller is not None) == ("fails", True)
    assert _numbers(site) == [("3", 3), ("5", 5)]
    reading = read(site)
    assert reading is not None
    assert span_of_expression(reading) == site.span
    assert site_of_error(ValueError("never raised")) is None


def _raising(decide: Any) -> Site:
    class Undecided:
        def __bool__(self) -> bool:
            raise ValueError("a value decides")

        def __gt__(self, other: object) -> Undecided:
            return self

    with pytest.raises(ValueError, match="a value decides") as raised:
        decide(Undecided())
    site = site_of_error(raised.value)
    assert site is not None
    assert site.caller is not None
    return site.caller


def _by_if(x: Any) -> int:
    if x > 0:
        return 1
    return 0


def _by_while(x: Any) -> None:
    while x:
        pass


def _by_conversion(x: Any) -> bool:
    return bool(x)


def test_a_decision_is_told_from_other_uses_of_a_value() -> None:
    assert is_decision(_raising(_by_if))
    assert is_decision(_raising(_by_while))
    assert is_decision(_raising(lambda x: 1 if x else 2))
    assert not is_decision(_raising(_by_conversion))


def _by_log(x: Any, log: list[object]) -> None:
    def warning_once(text: object) -> None:
        log.append(text)

    warning_once(f"{bool(x)}")


def _by_message(x: Any) -> None:
    assert not x.__dict__, f"{bool(x)}"


def _by_assertion(x: Any) -> None:
    assert bool(x), "a text"


def _by_named(x: Any) -> None:
    print(kept := bool(x))  # noqa: T201
    del kept


def test_what_is_only_told_is_told_from_what_is_used() -> None:
    assert is_told(_raising(lambda x: _by_log(x, [])))
    assert is_told(_raising(lambda x: (setattr(x, "a", 1), _by_message(x))))
    assert not is_told(_raising(_by_assertion))
    assert not is_told(_raising(_by_named))
    assert not is_told(_raising(_by_conversion))
    assert not is_told(_raising(_by_if))


def test_code_without_source_has_no_expression() -> None:
    names: dict[str, Any] = {"at": at}
    exec(compile("site = at(1)", "<string>", "exec"), names)
    assert read(names["site"]) is None
