"""What anyshape raises, and how it quotes what others raise."""

from __future__ import annotations

import pytest

import anyshape
from anyshape.errors import AnyshapeError, DeclarationError, first_line, named_line


def test_every_error_is_one_of_ours_and_a_wrong_declaration_is_a_wrong_value() -> None:
    assert issubclass(anyshape.ExportError, AnyshapeError)
    assert issubclass(DeclarationError, AnyshapeError)
    assert issubclass(DeclarationError, ValueError)


@pytest.mark.parametrize(
    ("error", "line", "named"),
    [
        (ValueError("first\nsecond"), "first", "ValueError: first"),
        (KeyError(), "", "KeyError: "),
    ],
)
def test_one_line_of_an_error_is_quoted(error: BaseException, line: str, named: str) -> None:
    assert (first_line(error), named_line(error)) == (line, named)


def test_a_notebook_shows_the_words_of_an_error_without_our_frames() -> None:
    with pytest.raises(DeclarationError) as caught:
        anyshape.inspect("not_there.onnx")
    assert caught.value._render_traceback_() == [f"DeclarationError: {caught.value}"]
