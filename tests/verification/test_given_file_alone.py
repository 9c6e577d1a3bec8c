"""A file without its model: held to the shapes that it declares, and honest about what that proves."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import onnx
import onnx.helper
import pytest

import anyshape
from anyshape.errors import DeclarationError
from anyshape.results.result import ExportError
from tests.onnxfile import drawing


def refused(path, **options) -> ExportError:
    with pytest.raises(ExportError) as caught:
        anyshape.check(path, **options)
    return caught.value


def without_version(text: object) -> str:
    return re.sub(r"ONNX Runtime [\d.]+", "ONNX Runtime N", str(text))


def test_a_file_that_keeps_its_shapes_is_checked_and_the_note_says_how_far(tmp_path):
    promise = drawing.contract({"batch": "1..4", "seq": "2..5"}, y=("batch", "2 * seq"))
    result = anyshape.check(drawing.write(tmp_path / "m.onnx", drawing.DOUBLED, promise))
    assert (
        without_version(result)
        == """\
checked: m.onnx, keeps the shapes it declares at 16 sizes in ONNX Runtime N
  input    x  float32[batch, seq]
  output   y  float32[batch, twice]
  dims     batch 1..4, seq 2..5
  run      batch 1 to 4 (4); seq 2 to 5 (4)
  note     only shapes were checked: without the model there are no values to compare with"""
    )
    document = result.to_dict()["verification"]
    assert (document["against"], document["measure"]) == (None, None)


def test_an_output_that_is_not_what_it_claims_is_mislabelled(tmp_path):
    error = refused(drawing.write(tmp_path / "m.onnx", drawing.MISLABELLED), sizes={"batch": "1..3", "seq": "1..3"})
    assert (
        str(error)
        == """\
refused: the file is wrong
  note     only shapes were checked: without the model there are no values to compare with

error[mislabelled-dim]: `y` declares `seq` = 1 on axis 1 but has shape (1, 2)
  --> m.onnx:1:1
  = note: smallest of 9 such sizes: batch = 1, seq = 1; 9 were run"""
    )


def test_a_formula_of_the_contract_is_a_promise_too(tmp_path):
    promise = drawing.contract({"batch": "1..3", "seq": "1..3"}, y=("batch", "2 * seq + 1"))
    (finding,) = refused(drawing.write(tmp_path / "m.onnx", drawing.DOUBLED, promise)).findings
    assert finding.headline == (
        "error[mislabelled-dim]: `y` is promised `2 * seq + 1` = 3 on axis 1 but has shape (1, 2)"
    )


def test_a_pinned_file_shows_the_constant(tmp_path):
    (finding,) = refused(drawing.write(tmp_path / "m.onnx", drawing.PINNED)).findings
    assert finding.rule == "mislabelled-dim"
    assert finding.message == "`y` declares `batch` = 4 on axis 0 but has shape (2, 8, 4)"
    assert "its Reshape node `node_view` has the constant shape [2, 8, 4]" in finding.notes
    assert finding.helps == ("give the model to compare with, or the sizes that the file is made for",)


def test_sizes_that_fail_come_with_the_rule_behind_them(tmp_path):
    (finding,) = refused(drawing.write(tmp_path / "m.onnx", drawing.CONVOLUTION)).findings
    assert finding.headline.startswith("error[runtime-error]: the file fails in ONNX Runtime: ")
    assert finding.notes[1:] == (
        "it runs where `width >= 3` and `height >= 3`",
        "the file has no contract: whether its model can do these sizes is not known",
    )


def test_limits_of_the_contract_are_not_run_into(tmp_path):
    promise = drawing.contract({"batch": "1..", "height": "1..9", "width": "3..9"}, "height >= 3")
    result = anyshape.check(drawing.write(tmp_path / "m.onnx", drawing.CONVOLUTION, promise))
    assert result.verdict == "checked"
    assert result.limits == ("height >= 3",)
    assert min(sizes["height"] for sizes in result.verification.sizes_run) == 3


def test_a_file_that_fails_everywhere_says_that_made_up_inputs_may_be_to_blame(tmp_path):
    text = """
    main (int64[batch] index) => (float[batch] y)
    <float[2] table = {1, 2}, int64[1] far = {7}> {
      shifted = Add(index, far)
      [lookup] y = Gather(table, shifted)
    }"""
    (finding,) = refused(drawing.write(tmp_path / "m.onnx", text)).findings
    assert finding.notes[-1] == (
        "it fails at every size that was run; the inputs were made up, and it may need particular values"
    )


def test_inputs_that_fail_for_their_content_are_tried_with_another(tmp_path):
    text = """
    main (int64[batch] length) => (float[batch] y)
    <float[1] table = {5}, int64[1] one = {1}> {
      index = Sub(length, one)
      down = Neg(index)
      doubled = Mul(down, one)
      positive = Add(doubled, doubled)
      y = Gather(table, positive)
    }"""
    result = anyshape.check(drawing.write(tmp_path / "m.onnx", text), sizes={"batch": "1..5"})
    assert len(result.verification.sizes_run) == 5
    assert 1 in {check.content for check in result.verification.checks}  # all ones, the only valid length


def test_one_size_can_be_asked_for(tmp_path):
    path = drawing.write(tmp_path / "m.onnx", drawing.DOUBLED)
    assert anyshape.check(path, at={"batch": 7, "seq": 2}).verification.sizes_run == ({"batch": 7, "seq": 2},)
    with pytest.raises(DeclarationError, match=r"^no dim is called `sequence`; did you mean `seq`\?$"):
        anyshape.check(path, at={"sequence": 2})


def test_sizes_of_a_dim_that_the_file_does_not_name_are_refused(tmp_path):
    path = drawing.write(tmp_path / "m.onnx", drawing.DOUBLED)
    with pytest.raises(DeclarationError) as caught:
        anyshape.check(path, sizes={"sequence": "1..3"})
    assert str(caught.value) == (
        "sizes given for `sequence`, but the file only names `batch`, `seq`; did you mean `seq`?"
    )


def test_a_static_file_runs_at_its_only_size(tmp_path):
    text = "main (float[2, 3] x, bool[2, 3] m) => (float[2, 3] y) { z = Neg(x) y = Where(m, x, z) }"
    result = anyshape.check(drawing.write(tmp_path / "m.onnx", text))
    assert result.verification.sizes_run == ({},)
    assert "run      the example's sizes" in str(result)


def test_axes_without_a_name_vary_and_expressions_follow_their_dims(tmp_path):
    value, floats = onnx.helper.make_tensor_value_info, onnx.TensorProto.FLOAT
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Concat", ["past", "new"], ["all"], axis=1)],
        "main",
        [value("past", floats, [None, "past"]), value("new", floats, [None, "seq"])],
        [value("all", floats, [None, "past + seq"])],
    )
    opsets = [onnx.helper.make_opsetid("", 18)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=8), tmp_path / "m.onnx")
    (finding,) = refused(tmp_path / "m.onnx").findings
    assert finding.rule == "runtime-error"  # the two open axes must be one size, and nothing in the file says so
    equal = anyshape.check(tmp_path / "m.onnx", sizes={"past_dim0": [3], "new_dim0": [3]})
    assert list(equal.dims) == ["past_dim0", "past", "new_dim0", "seq"]


def test_the_verdict_of_the_contract_is_passed_on(tmp_path):
    promise = drawing.contract({"batch": "1..2", "seq": "1..2"}, verdict="unchecked")
    result = anyshape.check(drawing.write(tmp_path / "m.onnx", drawing.DOUBLED, promise))
    assert result.notes[-1] == "the file's own contract says `unchecked`"


def test_a_file_that_the_runtime_does_not_load_is_refused(tmp_path):
    path = drawing.write(tmp_path / "m.onnx", "main (float[batch] x) => (float[batch] y) { y = Nonsense(x) }")
    (finding,) = refused(path).findings
    assert finding.headline.startswith("error[runtime-error]: ONNX Runtime does not load the file: ")


@pytest.mark.parametrize("size", [2**40, 2**62])
def test_sizes_from_a_file_are_not_trusted(tmp_path, size):
    promise = drawing.contract({"batch": f"{size}..{size + 9}", "seq": "1..2"})
    (finding,) = refused(drawing.write(tmp_path / "m.onnx", drawing.DOUBLED, promise)).findings
    assert finding.message == "no size could be run"
    result = anyshape.check(tmp_path / "m.onnx", sizes={"batch": [1, 10**30]}, budget=1)
    assert [reason for _, reason in result.verification.skipped] == ["more than 33,554,432 elements to make up"] * 2


def test_more_dims_than_can_be_paired_are_refused(tmp_path):
    inputs = ", ".join(f"float[d{index}] x{index}" for index in range(33))
    path = drawing.write(tmp_path / "m.onnx", f"main ({inputs}) => (float[d0] y) {{ y = Identity(x0) }}")
    with pytest.raises(DeclarationError, match=r"^the file names 33 dims, more than the 32 that can be checked alone$"):
        anyshape.check(path)


def test_inputs_that_cannot_be_made_up_are_named(tmp_path):
    text = drawing.write(tmp_path / "text.onnx", "main (string[batch] x) => (string[batch] y) { y = Identity(x) }")
    with pytest.raises(
        DeclarationError, match=r"^input `x` is string, so no call can be made up: give the model, too$"
    ):
        anyshape.check(text)
    model = onnx.load(drawing.write(tmp_path / "open.onnx", drawing.DOUBLED))
    model.graph.input[0].type.tensor_type.ClearField("shape")
    onnx.save(model, tmp_path / "open.onnx")
    with pytest.raises(
        DeclarationError, match=r"^input `x` declares no axes, so no call can be made up: give the model, too$"
    ):
        anyshape.check(tmp_path / "open.onnx")


def test_the_same_seed_makes_the_same_calls(tmp_path):
    from anyshape.onnxfile.interface import read_interface
    from anyshape.runtime.made_up_inputs import Calls

    interface = read_interface(onnx.load(drawing.write(tmp_path / "m.onnx", drawing.DOUBLED)))
    shapes = {"x": (3, 4)}
    first, again, other = (Calls({}, interface, seed).make(shapes, 0)["x"] for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_checking_a_file_alone_needs_no_torch(tmp_path):
    path = drawing.write(tmp_path / "m.onnx", drawing.DOUBLED)
    script = "import sys, anyshape; anyshape.check(sys.argv[1], quick=True); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


MIXED = """
main (float[batch, seq] x) => (float[batch, seq] y)
{
  mean = ReduceMean<keepdims = 1>(x, axes)
  y = Sub(x, mean)
}"""


def _mixed(over: int) -> str:
    return MIXED.replace("\n{", f"\n<int64[1] axes = {{{over}}}> {{")


def test_samples_that_are_mixed_are_a_warning(tmp_path):
    result = anyshape.check(drawing.write(tmp_path / "m.onnx", _mixed(0)), sizes={"batch": "1..4", "seq": "1..3"})
    assert (
        without_version(result)
        == """\
checked: m.onnx, keeps the shapes it declares at 12 sizes in ONNX Runtime N
  input    x  float32[batch, seq]
  output   y  float32[batch, seq]
  dims     batch 1..4, seq 1..3
  run      batch 1 to 4 (4); seq 1 to 3 (3)
  note     only shapes were checked: without the model there are no values to compare with

warning[mixed-batch]: samples of `batch` are mixed
  --> m.onnx:1:1
  = note: f(cat(a, b)) differs from cat(f(a), f(b)): `y` of a sample changes when another stands beside it"""
    )


@pytest.mark.parametrize("text", [_mixed(1), drawing.DOUBLED, _mixed(0).replace("batch", "nodes")])
def test_samples_apart_and_dims_that_are_no_batch_are_not_warned_of(tmp_path, text):
    path = drawing.write(tmp_path / "m.onnx", text)
    assert anyshape.check(path, sizes={"seq": "1..4"}).findings == ()


def test_an_axis_that_looks_like_a_batch_of_one_is_told(tmp_path):
    text = "main (float[1, seq] x, float[batch, seq] z) => (float[batch, seq] y)\n{ y = Add(x, z) }"
    result = anyshape.check(drawing.write(tmp_path / "m.onnx", text), sizes={"batch": "1..3", "seq": "1..3"})
    assert "input `x` has 1 on axis 0, which looks like a batch" in result.notes


def test_a_batch_of_sizes_that_nobody_could_hold_is_not_made_up(tmp_path):
    """A contract may say anything: of this one, only the smallest size is run."""
    promise = drawing.contract({"batch": "1..", "seq": "1.. step 99999999999999999999"})
    text = "main (float[batch, seq] x) => (float[batch, seq] y)\n{\n  y = Relu(x)\n}"
    result = anyshape.check(drawing.write(tmp_path / "m.onnx", text, promise), trusted=True, quick=True)
    assert result.verdict == "checked"
    assert not result.findings
