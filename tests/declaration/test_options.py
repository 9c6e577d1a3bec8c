"""Options that are not what they should be are one sentence."""

from __future__ import annotations

import pytest

import anyshape
from anyshape.declaration.options import check_options
from anyshape.sizes.spelling import on_the_command_line


@pytest.mark.parametrize(
    ("option", "sentence"),
    [
        ({"atol": "a"}, "atol is 'a': give a number that is not negative"),
        ({"rtol": float("nan")}, "rtol is nan: give a number that is not negative"),
        ({"budget": -5}, "budget is -5: give a number that is not negative"),
        ({"seed": None}, "seed is None: give a whole number that is not negative"),
        ({"seed": -1}, "seed is -1: give a whole number that is not negative"),
        ({"seed": True}, "seed is True: give a whole number that is not negative"),
        ({"progress": 3}, "progress is 3: give True, or a function of a text"),
        ({"make_inputs": "x"}, "make_inputs is 'x': give a function"),
        ({"target": 1}, "target is 1: write `onnxruntime==1.18`, or `onnxruntime` for the installed one"),
        ({"metadata": ["a"]}, "metadata is ['a']: give a dict of text"),
        ({"unchecked": "a::b"}, "unchecked is 'a::b': give a list of text"),
        ({"providers": "CPUExecutionProvider"}, "providers is 'CPUExecutionProvider': give a list of text"),
    ],
)
def test_a_wrong_option_is_named_with_what_is_wanted(option: dict, sentence: str) -> None:
    with pytest.raises(anyshape.DeclarationError) as raised:
        check_options(**option)
    assert str(raised.value) == sentence


def test_on_the_command_line_it_is_named_as_it_was_written_there() -> None:
    with pytest.raises(anyshape.DeclarationError) as raised, on_the_command_line():
        check_options(random="foo")
    assert str(raised.value) == '--random is \'foo\': give "inputs" or "shapes", or leave it out'


def test_options_that_are_right_pass() -> None:
    check_options(atol=0.0, rtol=1e-3, budget=5, seed=1, make_inputs=print, unchecked=["a::b"], metadata={})
