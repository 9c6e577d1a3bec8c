"""The user's translations: decorated for every export, or in the table of one, which wins."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from onnxscript import opset18, script

from anyshape.conversion import user_translations
from anyshape.conversion.user_translations import translation, translations
from anyshape.errors import DeclarationError

LIBRARY = torch.library.Library("anyshape_translated", "FRAGMENT")
LIBRARY.define("one(Tensor x) -> Tensor")
LIBRARY.define("two(Tensor x) -> Tensor")
LIBRARY.define("two.scaled(Tensor x, float by) -> Tensor")
ONE, TWO = torch.ops.anyshape_translated.one, torch.ops.anyshape_translated.two


@pytest.fixture(autouse=True)
def _none_decorated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_translations, "_DECORATED", {})


def plain(x: Any) -> Any:
    return opset18.Relu(x)


def other(x: Any) -> Any:
    return opset18.Tanh(x)


def test_the_newest_decorated_holds_and_the_table_wins() -> None:
    assert translation(ONE)(other) is other
    translation(ONE)(plain)
    translation(TWO.scaled)(plain)
    assert translations(None) == {ONE.default: plain, TWO.scaled: plain}
    assert translations({ONE: other, torch.sym_max: plain}) == {
        ONE.default: other, TWO.scaled: plain, torch.sym_max: plain,
    }  # fmt: skip


def test_a_script_without_a_return_annotation_has_outputs() -> None:
    @script(default_opset=opset18)
    def scripted(x):
        return opset18.Relu(x)

    (found,) = translations({ONE: scripted}).values()
    assert found is not scripted
    assert [output.name for output in scripted._pt_onnx_signature.outputs] == ["output_0"]


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: translation("nothing"), "translation('nothing'): give a torch operator, such as torch.ops.mine.twice"),
        (
            lambda: translation(TWO),
            "translation: torch.ops.anyshape_translated.two has the overloads default, scaled: name one of them",
        ),
        (lambda: translations([ONE]), "custom_translation_table is a list: map operators to functions"),
        (
            lambda: translations({ONE: 3}),
            "the translation of anyshape_translated.one is a int: give a function",
        ),
    ],
)
def test_what_is_no_translation_is_refused(call: Any, sentence: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        call()
    assert str(caught.value) == sentence
