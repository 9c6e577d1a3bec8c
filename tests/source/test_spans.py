"""Places are counted as people count."""

from __future__ import annotations

import dis

import pytest

from anyshape.source.spans import Span, characters_before, extent_of


def test_a_span_reads_like_a_compiler_s() -> None:
    assert str(Span("net.py", 3, 16, function="Net.forward")) == "net.py:3:16 in Net.forward"
    assert str(Span("net.py", 3)) == "net.py:3:1"


def test_an_instruction_has_the_extent_of_its_expression() -> None:
    code = compile("x = 1\ny = ä(x, 2)\n", "<string>", "exec")
    call = next(one for one in dis.get_instructions(code) if one.opname.startswith("CALL"))
    assert extent_of(code, call.offset) == (2, 2, 4, len("y = ä(x, 2)".encode()))


def test_an_instruction_that_is_not_there_has_none() -> None:
    code = compile("x = 1", "<string>", "exec")
    assert extent_of(code, 10_000) == (None, None, None, None)


@pytest.mark.parametrize(
    ("text", "offset", "characters"), [("abc", 2, 2), ("äb", 2, 1), ("x = '日本'", 8, 6), ("a", 9, 1)]
)
def test_bytes_become_characters(text: str, offset: int, characters: int) -> None:
    assert characters_before(text, offset) == characters
