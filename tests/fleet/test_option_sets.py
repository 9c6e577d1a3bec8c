from __future__ import annotations

import pytest

from anyshape.errors import DeclarationError
from anyshape.fleet.option_sets import OptionSet, columns_for, parse_columns, read_option_sets, refuse_unknown_options


def test_columns_of_a_command_line() -> None:
    found = parse_columns(["torch"], {"half": "dtype=float16, narrow=true,opset_version=18", "s": "by=torchscript"})
    assert found == (
        OptionSet("torch", "torch"),
        OptionSet("half", "anyshape", {"dtype": "float16", "narrow": True, "opset_version": 18}),
        OptionSet("s", "torchscript"),
    )
    assert parse_columns([], {"a": "atol=1e-3,rtol=.5,budget=2.5,quick=false"})[0].options == {
        "atol": 1e-3, "rtol": 0.5, "budget": 2.5, "quick": False,
    }  # fmt: skip


def test_columns_of_a_file() -> None:
    found = read_option_sets({"torch": None, "free": {"by": "make-dynamic"}, "plain": {}}, "columns")
    assert [(one.name, one.by) for one in found] == [
        ("torch", "torch"),
        ("free", "make-dynamic"),
        ("plain", "anyshape"),
    ]


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda: OptionSet("x", "onnx"), "the column `x` is by `onnx`: choose of `anyshape`, `torch`, `torchscript`, "
                                         "`check`, `make-dynamic`"),
        (lambda: OptionSet("a\nb", "torch"), "a column is called 'a\\nb': give it a name that can be printed"),
        (lambda: parse_columns([], {"x": "dtype"}),
         "the column `x` has the options `dtype`: write NAME=VALUE,NAME=VALUE"),
        (lambda: read_option_sets(["a"], "`columns`"), "`columns` are no columns: write names, each with its options"),
        (lambda: refuse_unknown_options(["dtyp"], ["opset", "dtype"], "the column `x`"),
         "the column `x` has no option `dtyp`; did you mean `dtype`?; it has `dtype`, `opset`"),
    ],
)  # fmt: skip
def test_what_is_no_column_is_one_sentence(ask, sentence: str) -> None:
    with pytest.raises(DeclarationError) as told:
        ask()
    assert str(told.value) == sentence


def test_an_entry_that_no_column_serves_has_the_usual_one() -> None:
    columns = parse_columns(["anyshape", "torch"], {})
    assert [one.name for one in columns_for("model", columns)] == ["anyshape", "torch"]
    assert [one.name for one in columns_for("checkpoint", columns)] == ["anyshape"]
    assert [one.name for one in columns_for("onnx", columns)] == ["check"]
    assert [one.name for one in columns_for("onnx", parse_columns(["make-dynamic", "torch"], {}))] == ["make-dynamic"]
