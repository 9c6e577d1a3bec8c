"""The plan of a check: all that is declared, or the one size that is asked for."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

from anyshape.errors import DeclarationError
from anyshape.onnxfile.contract import Contract
from anyshape.onnxfile.interface import Interface, read_interface
from anyshape.sizes.notation import SizeRange, Sizes, parse_condition
from anyshape.testbench.plan import choose
from anyshape.verification.given_file import CheckOptions, GivenFile, plan_of_check, refuse_excluded

RANGES = {"batch": SizeRange(1, 3), "seq": SizeRange()}
BASE = {"batch": 2, "seq": 5}


def as_it_is(sizes: Sizes) -> Sizes:
    return sizes


def test_open_ranges_end_at_a_horizon_and_numbers_of_the_file_are_met() -> None:
    plan = plan_of_check(RANGES, BASE, (17,), as_it_is, CheckOptions())
    assert (plan.box["batch"], plan.box["seq"].hi, plan.is_closed) == (SizeRange(1, 3), 21, False)
    assert {"batch": 2, "seq": 17} in choose(plan)


def test_numbers_that_have_to_do_with_sizes_are_met_beyond_the_horizon() -> None:
    plan = plan_of_check(RANGES, BASE, (17,), as_it_is, CheckOptions(), {64})
    assert choose(plan)[-3:] == [{"batch": 2, "seq": size} for size in (64, 65, 63)]


def test_one_size_is_run_alone_and_the_rest_stays_at_the_base() -> None:
    plan = plan_of_check(RANGES, BASE, (17,), as_it_is, CheckOptions(at={"seq": 900}))
    assert choose(plan) == [{"batch": 2, "seq": 900}]


def test_a_dim_that_is_none_is_named() -> None:
    with pytest.raises(DeclarationError, match="no dim is called `sequence`"):
        plan_of_check(RANGES, BASE, (), as_it_is, CheckOptions(at={"sequence": 9}))


def test_what_is_baked_in_is_asked_once(tmp_path: Path) -> None:
    text = '<ir_version: 9, opset_import: ["" : 20]> g (float[1, n] x) => (float[1, n] y) { y = Relu(x) }'
    proto = onnx.parser.parse_model(text)
    file = GivenFile(tmp_path / "model.onnx", proto, read_interface(proto), None)
    assert len(file.baked) == 1
    assert file.baked is file.baked


def test_a_single_size_that_is_excluded_is_one_sentence() -> None:
    ranges = {"batch": SizeRange(), "seq": SizeRange(2, 8)}
    where = [parse_condition("batch <= seq")]

    def said(contract: Contract | None, **at: int) -> str:
        file = GivenFile(Path("m.onnx"), onnx.ModelProto(), Interface((), ()), contract)
        try:
            refuse_excluded(file, ranges, where, at)
        except DeclarationError as error:
            return str(error)
        return ""

    contract = Contract(ranges)
    assert said(contract, batch=3, seq=3) == said(contract, batch=99) == said(None, batch=0) == ""
    assert said(contract, seq=9) == "the contract of `m.onnx` excludes seq = 9: it is for seq 2..8"
    assert said(contract, batch=0) == "the contract of `m.onnx` excludes batch = 0: it is for batch 1.."
    assert said(contract, batch=4, seq=3) == (
        "the contract of `m.onnx` excludes batch = 4, seq = 3: it is for batch <= seq"
    )
    assert said(None, seq=9) == "what was declared excludes seq = 9: it is for seq 2..8"
    assert said(Contract({"seq": SizeRange(2, 6)}), seq=9) == "what was declared excludes seq = 9: it is for seq 2..8"
