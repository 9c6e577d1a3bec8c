"""Formulas are written alike for people, for Python and for a page."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess

import pytest
import sympy

from anyshape.costs.size_numbers import Choice
from anyshape.costs.written_formulas import WrittenFormula, write_condition, write_size
from anyshape.sizes.notation import parse_condition

BATCH, SEQ = sympy.symbols("batch seq", integer=True, positive=True)
DIMS = ["batch", "seq"]
FORMULAS = {
    "batch*seq": BATCH * SEQ,
    "(seq + 1)//2 + 1": sympy.floor((SEQ + 1) / 2) + 1,
    "-(-seq//3)": sympy.ceiling(SEQ / 3),
    "batch - seq": BATCH - SEQ,
    "(seq + 3)%4": sympy.Mod(SEQ - 5, 4),
    "(seq - batch)%7": sympy.Mod(SEQ - BATCH, 7),
    "min(16, seq)*batch": sympy.Min(SEQ, 16) * BATCH,
    "max(0, seq - 3)": sympy.Max(0, SEQ - 3),
    "seq*(seq + 1)//2": SEQ * (SEQ + 1) / 2,
    "batch*seq**2 - 3": BATCH * SEQ**2 - 3,
    "(seq if seq > 4 else 2*seq) + 1": Choice(SEQ > 4, SEQ, 2 * SEQ) + 1,
    "batch*-(-seq//2)": BATCH * sympy.ceiling(SEQ / 2),
    "(3*seq - 20)//6": sympy.floor(SEQ / 2 - sympy.Rational(10, 3)),
    "7 if batch < 3 and seq > 3 else -1": Choice(sympy.And(BATCH < 3, SEQ > 3), 7, -1),
}
GRID = [dict(zip(DIMS, sizes, strict=True)) for sizes in itertools.product((1, 2, 3, 8, 17), (1, 2, 4, 5, 31, 4096))]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_is_written_as_people_write_it_and_means_what_it_meant(text: str) -> None:
    written = write_size(FORMULAS[text], DIMS)
    assert written.text == text
    for sizes in GRID:
        assert written.value(sizes) == FORMULAS[text].subs({BATCH: sizes["batch"], SEQ: sizes["seq"]})


def test_a_page_computes_the_same_numbers() -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no JavaScript outside of a browser here: there is no `node`")
    relations = [write_condition(parse_condition(text), DIMS) for text in _RELATIONS]
    written = [*(write_size(size, DIMS) for size in FORMULAS.values()), *relations]
    rows = [list(sizes.values()) for sizes in GRID]
    code = f"const f=d=>[{','.join(f'Number({one.js})' for one in written)}];"
    ran = subprocess.run(
        [node, "-e", f"{code}console.log(JSON.stringify({json.dumps(rows)}.map(f)))"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(ran.stdout) == [[one.value(sizes) for one in written] for sizes in GRID]


_RELATIONS = ("batch*seq <= 4096", "seq % 8 == 0", "batch == 1 or seq != 4", "seq - -3 > 2 * batch", "batch < -1 + seq")


def test_a_relation_holds_where_it_did() -> None:
    for text in _RELATIONS:
        condition = parse_condition(text)
        written = write_condition(condition, DIMS)
        assert [bool(written.value(sizes)) for sizes in GRID] == [condition.holds(sizes) for sizes in GRID]
    assert write_condition(parse_condition("batch*seq <= 4096"), DIMS) == WrittenFormula(
        "batch*seq <= 4096", "d[0]*d[1]<=4096"
    )


def test_a_division_by_zero_has_no_value() -> None:
    assert WrittenFormula("8//(seq - 1)", "").value({"seq": 1}) is None


def test_what_has_no_such_form_is_refused() -> None:
    with pytest.raises(KeyError):
        write_size(sympy.sin(SEQ), DIMS)
