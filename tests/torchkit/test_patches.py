"""What is put in another's place is taken out again, whatever happens."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from anyshape.torchkit.patches import (
    Answering,
    configured,
    gradients_kept_off,
    observed,
    patched,
    replaced,
    without_answers,
)  # fmt: skip
from anyshape.torchkit.private_names import lookup
from tests.torchkit.hiding import hide

CHECK = "torch._check"
OPTION = "torch.fx.experimental._config.backed_size_oblivious"


class Base:
    name = "of the base"


class Derived(Base):
    pass


def test_an_inherited_name_is_only_hidden() -> None:
    with patched(Derived, "name", "ours"):
        assert (Derived.name, Base.name) == ("ours", "of the base")
    assert "name" not in vars(Derived)


def test_a_name_is_given_back_after_a_failure() -> None:
    holder = SimpleNamespace(name=1)
    with pytest.raises(KeyError), patched(holder, "name", 2):
        assert holder.name == 2
        raise KeyError
    assert holder.name == 1


def test_a_private_name_stands_for_what_is_made_of_it() -> None:
    original = torch._check
    with replaced(CHECK, lambda present: (present, "ours")):
        assert torch._check == (original, "ours")
    assert torch._check is original


def test_calls_are_observed_before_and_after() -> None:
    seen: list[object] = []
    with (
        observed(CHECK, lambda *args: seen.append(args)),
        observed(CHECK, lambda result, *_: seen.append(result), after=True),
    ):
        torch._check(True)
    assert seen == [(True,), None]


def test_an_option_has_its_value_again_afterwards() -> None:
    before = lookup(OPTION)
    with configured(OPTION, value=not before):
        assert lookup(OPTION) is not before
    assert lookup(OPTION) is before


def test_what_this_torch_does_not_have_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, CHECK, OPTION)
    original, before = torch._check, torch.fx.experimental._config.backed_size_oblivious
    with replaced(CHECK, lambda _: None), configured(OPTION, value=not before):
        assert torch._check is original
        assert torch.fx.experimental._config.backed_size_oblivious is before


def test_gradients_stay_off_and_the_wish_is_heard() -> None:
    heard: list[int] = []
    with gradients_kept_off(lambda: heard.append(1)):
        with torch.enable_grad():
            assert not torch.is_grad_enabled()
        with torch.no_grad():
            pass
    assert (len(heard), torch.is_grad_enabled()) == (1, True)


def test_a_call_is_answered_unless_the_answer_declines() -> None:
    answers = {torch.relu: lambda x: x * 100, torch.tanh: lambda _: NotImplemented}
    x = torch.tensor([2.0])
    with Answering(answers):
        assert float(torch.relu(x)) == 200.0
        assert torch.equal(torch.tanh(x), torch.tanh(x.clone()))
        with without_answers():
            assert float(torch.relu(x)) == 2.0
        assert float(torch.relu(x)) == 200.0
    assert float(torch.relu(x)) == 2.0
