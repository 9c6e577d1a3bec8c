"""How the text of options is taken apart."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from anyshape.cli.options import freeing_options, option, pairs, sizes_at
from anyshape.sizes.notation import InputText


def parsed(decorate, *arguments: str) -> dict[str, object]:
    """What a command with these options is given."""

    @click.command()
    @decorate
    def command(**options):
        found.update(options)

    found: dict[str, object] = {}
    outcome = CliRunner().invoke(command, list(arguments))
    assert outcome.exit_code == 0, outcome.output
    return found


def test_pairs_may_have_spaces_and_further_signs() -> None:
    decorate = option("--size sizes", "", "DIM=SIZES", multiple=True, callback=pairs)
    assert parsed(decorate, "--size", "seq = 1..512", "--size", "a=b=c") == {"sizes": {"seq": "1..512", "a": "b=c"}}
    assert parsed(decorate) == {"sizes": {}}


@pytest.mark.parametrize(("text", "sizes"), [("batch=1,seq=2", {"batch": 1, "seq": 2}), (" n = 3 ,", {"n": 3})])
def test_sizes_of_one_run_are_listed(text: str, sizes: dict[str, int]) -> None:
    assert parsed(option("--at", "", callback=sizes_at), "--at", text) == {"at": sizes}


def test_options_that_belong_together_are_parsed_together() -> None:
    found = parsed(
        freeing_options,
        "--input",
        "x: float32[batch, 3] < 9",
        "--unchecked",
        "seq",
        "--model",
        "m.py:Net",
        "--constant",
        "a=1/n",
    )
    assert found == {
        "inputs": [InputText("x", "float32", "batch, 3", 9)], "dims": {}, "sizes": {}, "unchecked": ("seq",),
        "constants": {"a": "1/n"},
        "target": "m.py:Net", "weights": None,
    }  # fmt: skip
