"""Static files that hold a number for a size: refused until somebody says what it is, and right once it is said."""

from __future__ import annotations

import contextlib
import io
import re
import warnings

import numpy as np
import onnx
import onnx.parser
import onnxruntime
import pytest
import torch

import anyshape
from anyshape.results.result import ExportError

from .static_numbers import DIMS, EXPLAINED, NUMBERS, Computed, example

OTHER_SIZES = ({"batch": 7, "seq": 11, "h": 14, "w": 10}, {"batch": 2, "seq": 23, "h": 9, "w": 13})


def exported(model, x, path, *, dynamo=False):
    options = {"dynamo": True, "external_data": False} if dynamo else {"dynamo": False}
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        torch.onnx.export(model.eval(), (x,), path, input_names=["x"], output_names=["y"], verbose=False, **options)
    return path


def refused(path, dims, **options):
    with pytest.raises(ExportError) as caught:
        anyshape.make_dynamic(path, {"x": dims}, quick=True, **options)
    return caught.value.findings


def proposed(findings):
    """What the first help of every finding says to pass."""
    found = [re.search(r"constants=\{(.*?)\}`", finding.helps[0]).group(1) for finding in findings]
    return dict(re.findall(r'"(.*?)": "(.*?)"', ", ".join(found)))


@pytest.mark.parametrize(
    ("name", "dynamo"), [*((name, False) for name in NUMBERS), ("share", True), ("linspace", True), ("window", True)]
)
def test_a_number_that_followed_a_size_is_asked_about_and_right_when_told(name, dynamo, tmp_path):
    function, shape, reading = NUMBERS[name]
    model, x, dims = Computed(function), example(shape), DIMS[shape]
    path = exported(model, x, tmp_path / "static.onnx", dynamo=dynamo)
    findings = refused(path, dims)
    assert {finding.rule for finding in findings} == {"ambiguous-number"}
    told = proposed(findings)
    if not dynamo:
        assert any(f"`{reading.partition(' + range')[0]}`" in finding.message for finding in findings)
        told = dict.fromkeys(told, reading)
    result = anyshape.make_dynamic(path, {"x": dims}, quick=True, constants=told, out=tmp_path / "d.onnx")
    assert result.verdict == "checked"
    session = onnxruntime.InferenceSession(str(tmp_path / "d.onnx"), providers=["CPUExecutionProvider"])
    for sizes in OTHER_SIZES:
        x = example([sizes.get(dim) or int(dim) for dim in dims.split()])
        np.testing.assert_allclose(session.run(None, {"x": x.numpy()})[0], model(x).numpy(), rtol=2e-3, atol=1e-5)


@pytest.mark.parametrize("name", EXPLAINED)
def test_numbers_that_something_explains_are_not_asked_about(name, tmp_path):
    function, shape = EXPLAINED[name]
    path = exported(Computed(function), example(shape), tmp_path / "static.onnx")
    dims = " ".join(map(str, shape[1:]))
    assert anyshape.make_dynamic(path, {"x": f"batch {dims}"}, quick=True).verdict == "checked"


@pytest.mark.parametrize("name", ["share of two", "linspace", "picture"])
def test_the_model_tells_what_a_number_is(name, tmp_path):
    function, shape, reading = NUMBERS[name]
    model, x = Computed(function), example(shape)
    path = exported(model, x, tmp_path / "static.onnx")
    result = anyshape.make_dynamic(path, {"x": DIMS[shape]}, model=model, args=x, quick=True)
    assert result.verdict == "checked"
    (note,) = [note for note in result.notes if "as PyTorch has it" in note]
    assert re.fullmatch(rf"`.*` is {re.escape(reading)}, as PyTorch has it", note)


def test_a_branch_on_a_size_is_found_by_the_model_and_the_number_is_named(tmp_path):
    model, x = Computed(lambda x: x * 2 if x.shape[0] > 1 else x), example((2, 8))
    path = exported(model, x, tmp_path / "static.onnx")
    (finding,) = refused(path, "batch 8", model=model, args=x)
    assert finding.rule == "wrong-values"
    assert finding.notes[-1] == "2 in Mul node `/Mul` may be `batch`"


# ---- what is told

HEAD = '<ir_version: 8, opset_import: ["" : 18]>\n'
TWO = """
main (float[4, 6] x) => (float[4, 6] y) <float four = {4.0}, float half = {0.5}> {
  [share] a = Div(x, four)
  b = Tanh(a)
  [scale] y = Mul(b, half)
}"""
LOST = """
main (float[4, 6] x) => (float[4, 6] y) <float four = {4.0}, float zero = {0.0}> {
  a = Div(x, four)
  b = Mul(a, zero)
  y = Add(x, b)
}"""
SHARED = """
main (float[5, 6] x) => (float[5, 6] y) <float c = {0.2}> {
  [a1] a = Mul(x, c)  t = Tanh(a)  [a2] b = Mul(t, c)  u = Tanh(b)  [a3] d = Mul(u, c)  v = Tanh(d)
  [a4] e = Mul(v, c)  w = Tanh(e)  [a5] y = Mul(w, c)
}"""


@pytest.fixture
def write(tmp_path):
    def made(text, **arrays):
        proto = onnx.parser.parse_model(HEAD + text)
        proto.graph.initializer.extend(onnx.numpy_helper.from_array(value, key) for key, value in arrays.items())
        onnx.save(proto, tmp_path / "static.onnx")
        return tmp_path / "static.onnx"

    return made


def test_the_whole_finding(write):
    first, second = refused(write(TWO), "batch 6")
    assert (
        str(first)
        == """\
error[ambiguous-number]: 4 in Div node `share` may be `batch`, or a number of its own
  --> static.onnx:1:1
  = note: `four` is both at batch = 4, so that the static file does not tell
  = note: at batch = 8 the results differ
  = help: where it follows: `constants={"share": "batch"}`   [tried: right at 4 sizes]
  = help: where it is a number of its own: `constants={"share": "fixed"}`
  = help: where all of these are: `constants={"*": "fixed"}`
  = help: or check against the model: `model=`"""
    )
    assert second.message == "0.5 in Mul node `scale` may be `1/sqrt(batch)`, or a number of its own"
    assert second.dims == ("batch",)


def test_what_is_told_is_not_asked_again(write):
    path = write(TWO)
    (finding,) = refused(path, "batch 6", constants={"share": "fixed"})
    assert "`scale`" in finding.message
    result = anyshape.make_dynamic(path, {"x": "batch 6"}, constants={"share": "batch", "half": "fixed"})
    assert result.verdict == "checked"
    assert result.notes == (
        "`share` is batch, as you say",
        "`half` is fixed, as you say",
        "static.onnx cannot show which branches `batch` decided",
    )


def test_a_number_that_changes_nothing_is_not_asked_about(write):
    assert anyshape.make_dynamic(write(LOST), {"x": "batch 6"}).verdict == "checked"


def test_a_reading_that_breaks_the_file_was_not_meant(write):
    """The 6 features of the weights, and a batch of 6 that a product with them cannot have."""
    text = """main (float[6, 6] x) => (float[6, 3] y) {
      a = Unsqueeze(x, two) b = Expand(a, shape) c = Add(b, ramp)
      d = ReduceSum<keepdims = 0>(c, two) y = MatMul(d, w) }"""
    arrays = {
        "two": np.array([2]), "shape": np.array([6, 6, 6]), "ramp": np.arange(6, dtype=np.float32),
        "w": np.random.default_rng(0).standard_normal((6, 3)).astype(np.float32),
    }  # fmt: skip
    result = anyshape.make_dynamic(write(text, **arrays), {"x": "batch 6"}, unchecked=["batch"])
    assert result.verdict in ("checked", "unchecked")


def test_numbers_that_are_alike_are_one_finding(write):
    path = write(SHARED)
    (finding,) = refused(path, "batch 6")
    assert finding.message == "0.2 in Mul node `a1` and in 4 others may be `1/batch`, or a number of its own"
    told = proposed([finding])
    assert len(told) == 1
    for text in ("1/batch", "fixed"):
        assert anyshape.make_dynamic(path, {"x": "batch 6"}, constants=dict.fromkeys(told, text)).verdict == "checked"


def test_a_dim_that_may_stay_unchecked_is_written_with_a_warning(write, tmp_path):
    result = anyshape.make_dynamic(write(TWO), {"x": "batch 6"}, unchecked=["batch"], out=tmp_path / "d.onnx")
    assert result.verdict == "unchecked"
    assert {(finding.rule, finding.level) for finding in result.findings} == {("ambiguous-number", "warning")}
    assert (tmp_path / "d.onnx").exists()


def test_an_attribute_can_only_be_fixed(write):
    path = write("main (float[4, 6] x) => (float[4, 6] y) { [bend] y = LeakyRelu<alpha = 0.25>(x) }")
    (finding,) = refused(path, "batch 6")
    assert finding.helps[0] == "where it follows, it cannot be mended here: an attribute of ONNX is a number"
    assert anyshape.make_dynamic(path, {"x": "batch 6"}, constants={"bend": "fixed"}).verdict == "checked"


def test_a_wrong_formula_that_agrees_in_the_file_is_what_the_user_said(write, tmp_path):
    """`2*sqrt(batch)` is 4, too: the reference follows what is said."""
    path = write(TWO)
    constants = {"share": "2*sqrt(batch)", "scale": "fixed"}
    anyshape.make_dynamic(path, {"x": "batch 6"}, constants=constants, out=tmp_path / "d.onnx")
    x = np.ones((9, 6), np.float32)
    session = onnxruntime.InferenceSession(str(tmp_path / "d.onnx"), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, {"x": x})[0], np.tanh(x / 6) / 2, rtol=1e-5)


def test_a_formula_that_is_not_written_into_the_graph_is_noticed(write, monkeypatch):
    """The static file follows the formula; a freed one that keeps the number is wrong then."""
    from anyshape.stages import free_readings

    monkeypatch.setattr(free_readings, "with_formulas", lambda model, *_: model)
    (finding,) = refused(write(TWO), "batch 6", constants={"share": "2*sqrt(batch)", "scale": "fixed"})
    assert finding.rule == "wrong-values"


def test_what_was_one_leaves_no_suspect_and_is_said(write):
    result = anyshape.make_dynamic(write(TWO.replace("4, 6]", "1, 6]")), {"x": "batch 6"})
    assert result.notes[-1] == (
        "static.onnx cannot show which branches `batch` decided, nor what `batch` multiplied or divided, being 1 there"
    )


def test_a_table_that_ends_with_the_dim_may_follow_from_it(write):
    table = np.array([3, 1, 4, 1, 5, 9], np.float32)
    text = "main (float[2, 6] x) => (float[2, 6] y) { y = Add(x, places) }"
    result = anyshape.make_dynamic(write(text, places=table), {"x": "batch seq"})
    assert result.notes[-1] == (
        "the table `places` has 6 entries along axis 0, as many as `seq` in static.onnx:"
        " whether they follow from it cannot be seen"
    )


def test_weights_beside_the_file_serve_both_forms(tmp_path):
    text = "main (float[4, 300] x) => (float[4, 300] y) <float four = {4.0}> { a = Mul(x, w) [share] y = Div(a, four) }"
    weights = np.random.default_rng(0).standard_normal(300).astype(np.float32)
    proto = onnx.parser.parse_model(HEAD + text)
    proto.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    path = tmp_path / "static.onnx"
    onnx.save(proto, path, save_as_external_data=True, location="w.bin", size_threshold=64)
    assert "`share`" in refused(path, "batch 300")[0].message
    anyshape.make_dynamic(path, {"x": "batch 300"}, constants={"share": "batch"}, out=tmp_path / "d.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "d.onnx"), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, {"x": np.ones((5, 300), np.float32)})[0][0], weights / 5, rtol=1e-6)


def test_a_number_inside_of_a_branch_is_asked_about_and_told(write, tmp_path):
    text = """main (float[4, 6] x, bool p) => (float[4, 6] y) <float four = {4.0}> {
      y = If (p) <
        then_branch = t () => (float[4, 6] a) { [inside] a = Div(x, four) },
        else_branch = e () => (float[4, 6] b) { b = Neg(x) }
      >
    }"""
    path, dims = write(text), {"x": "batch 6"}
    with pytest.raises(ExportError) as caught:
        anyshape.make_dynamic(path, dims)
    assert "`inside`" in caught.value.findings[0].message
    anyshape.make_dynamic(path, dims, constants={"inside": "batch"}, out=tmp_path / "d.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "d.onnx"), providers=["CPUExecutionProvider"])
    x = np.ones((5, 6), np.float32)
    np.testing.assert_allclose(session.run(None, {"x": x, "p": np.array(True)})[0], x / 5, rtol=1e-6)
