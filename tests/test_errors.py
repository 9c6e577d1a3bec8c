"""What is raised, and by which name it is caught."""

from __future__ import annotations

import pytest

import anyshape
from anyshape.errors import first_line
from anyshape.source.spans import Span


def test_a_wrong_declaration_is_a_value_error_and_one_of_ours() -> None:
    with pytest.raises(ValueError, match="both sides") as raised:
        raise anyshape.DeclarationError("both sides")
    assert isinstance(raised.value, anyshape.AnyshapeError)


def test_a_refusal_is_no_wrong_declaration_and_carries_its_result() -> None:
    finding = anyshape.Finding("lost-input", "the file does not depend on `x`, the model does", Span("net.onnx", 1))
    error = anyshape.ExportError(anyshape.Result("refused", findings=(finding,)))
    assert not isinstance(error, ValueError)
    assert isinstance(error, anyshape.AnyshapeError)
    assert str(error).startswith("refused: no file written\n\nerror[lost-input]: ")
    assert error.findings == (finding,)


@pytest.mark.parametrize(
    ("error", "line"), [(ValueError("one\ntwo"), "one"), (ValueError(), ""), (KeyError("k"), "'k'")]
)
def test_the_first_line_of_what_an_error_says(error: Exception, line: str) -> None:
    assert first_line(error) == line
