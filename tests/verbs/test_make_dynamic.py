"""A static file made dynamic, end to end: what is told, what is written, and what is left alone."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir
import onnxruntime
import pytest
import torch
from click.testing import CliRunner

import anyshape
from anyshape.cli import program
from anyshape.errors import DeclarationError
from anyshape.freeing.engine import free
from anyshape.onnxfile.contract import read_contract
from anyshape.results.result import ExportError

HEAD = '<ir_version: 8, opset_import: ["" : 18]>\n'
FLATTEN = """
main (float[2, 3, 4] x) => (float[2, 12] y) <int64[2] shape = {2, 12}> { [view] y = Reshape(x, shape) }"""
SOFTMAX = "main (float[2, 8] x) => (float[2, 8] y) { y = Softmax<axis = 1>(x) }"
MIXED = "main (float[2, 8] x) => (float[2, 8] y) { y = Softmax<axis = 0>(x) }"
TABLE = """
main (int64[1, 6] ids) => (float[1, 6] y) <float[1, 6] places = {3, 1, 4, 1, 5, 9}> {
  f = Cast<to = 1>(ids)
  [add] y = Add(f, places)
}"""
UNROLLED = """
main (float[1, 3] x) => (float[1, 1] y) <int64[1] axis = {1}> {
  a, b, c = Split<axis = 1, num_outputs = 3>(x)
  d = Sub(a, b)
  y = Mul(d, c)
}"""
USAGE, NOTHING_WRITTEN = 2, 3


@pytest.fixture
def write(tmp_path):
    def made(text, name="static.onnx"):
        onnx.save(onnx.parser.parse_model(HEAD + text), tmp_path / name)
        return tmp_path / name

    return made


def run(path, **feeds):
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    return session.run(None, feeds)[0]


def told(result):
    text = re.sub(r"ONNX Runtime [\d.]+", "ONNX Runtime N", str(result))
    return re.sub(r"\d+\.\d (s\b|x the)", r"N \1", text)


def refused(*arguments, **options):
    with pytest.raises(ExportError) as caught:
        anyshape.make_dynamic(*arguments, **options)
    return caught.value


def test_a_batch_is_freed_checked_and_written(write, tmp_path):
    result = anyshape.make_dynamic(write(FLATTEN), {"x": "batch 3 4"}, out=tmp_path / "dynamic.onnx")
    assert (
        told(result)
        == """\
checked: dynamic.onnx, right at 5 sizes in ONNX Runtime N against static.onnx
  input    x  float32[batch, 3, 4]
  output   y  float32[batch, 12]
  dims     batch 1..
  rewrite  Reshape `view`: target [2, 12] became [0, 12]
  checked  batch 1 to 5 (5 sizes), sample by sample
  error    at most N x the static file's rounding noise (8 is allowed)
  took     N s to free (opset 18), N s to check
  note     static.onnx cannot show which branches `batch` decided, nor what `batch - 1` \
multiplied or divided, being 1 there"""
    )
    x = np.arange(7 * 12, dtype=np.float32).reshape(7, 3, 4)
    assert np.array_equal(run(tmp_path / "dynamic.onnx", x=x), x.reshape(7, 12))


def test_the_contract_stands_in_the_file(write, tmp_path):
    anyshape.make_dynamic(write(TABLE), {"ids": "batch seq"}, out=tmp_path / "d.onnx")
    contract = read_contract(onnx.load(tmp_path / "d.onnx"))
    assert {dim: str(sizes) for dim, sizes in contract.dims.items()} == {"batch": "1..", "seq": "1..6"}
    assert [str(condition) for condition in contract.conditions] == ["seq <= 6"]
    assert contract.outputs == {"y": ("batch", "seq")}


@pytest.mark.parametrize(("text", "dims"), [(FLATTEN, {"x": "batch 3 4"}), (TABLE, {"ids": "batch seq"})])
def test_the_contract_says_what_was_run(write, tmp_path, text, dims):
    result = anyshape.make_dynamic(write(text), dims, out=tmp_path / "d.onnx")
    evidence = read_contract(onnx.load(tmp_path / "d.onnx")).evidence
    assert evidence.sizes == len(result.verification.sizes_run)
    assert evidence.against == "static.onnx"
    assert evidence.ranges["batch"] == (1, max(sizes["batch"] for sizes in result.verification.sizes_run))


def test_the_evidence_of_a_model_names_pytorch(write, tmp_path):
    model, x = torch.nn.Softmax(dim=1), torch.randn(2, 8)
    anyshape.make_dynamic(write(SOFTMAX), {"x": "batch 8"}, out=tmp_path / "d.onnx", model=model, args=x, quick=True)
    assert read_contract(onnx.load(tmp_path / "d.onnx")).evidence.against == "PyTorch"


def test_a_table_is_a_limit_beyond_which_the_runtime_says_no(write, tmp_path):
    result = anyshape.make_dynamic(write(TABLE), {"ids": "batch seq"}, out=tmp_path / "d.onnx")
    assert [limit.partition(":")[0] for limit in result.limits] == ["seq <= 6"]
    assert "  limit    seq <= 6: the table `places` has 6 " in str(result)
    assert not any("not to be relied upon" in note for note in result.notes)
    with pytest.raises(Exception, match="Add"):
        run(tmp_path / "d.onnx", ids=np.zeros((1, 7), np.int64))


def test_nothing_declared_means_the_batch_and_is_said(write):
    result = anyshape.make_dynamic(write(FLATTEN))
    assert result.notes[0] == "no dims were declared: `batch` is axis 0 of `x`"
    assert result.inputs[0].axes == ("batch", 3, 4)


def test_without_out_nothing_is_written(write, tmp_path):
    path = write(FLATTEN)
    result = anyshape.make_dynamic(path, {"x": "batch 3 4"})
    assert list(tmp_path.iterdir()) == [path]
    assert result.path is None
    result.save(tmp_path / "later.onnx")
    assert run(tmp_path / "later.onnx", x=np.ones((3, 3, 4), np.float32)).shape == (3, 12)


def test_a_file_may_replace_itself(write, tmp_path):
    path = write(FLATTEN)
    anyshape.make_dynamic(path, {"x": "batch 3 4"}, out=path)
    assert list(tmp_path.iterdir()) == [path]
    assert run(path, x=np.ones((5, 3, 4), np.float32)).shape == (5, 12)


def test_samples_that_mix_are_refused_with_the_ways_on(write, tmp_path):
    path = write(MIXED)
    error = refused(path, {"x": "batch 8"}, out=tmp_path / "d.onnx")
    assert (
        str(error)
        == """\
refused: no file written

error[unchecked-dim]: nothing in the file tells whether other sizes of `batch` are right
  --> static.onnx:1:1
  = note: `y`: what stands at one place depends on too many others along `batch`, as control runs show
  = help: check against the model: `model=`
  = help: or write the file unchecked: `unchecked=["batch"]`"""
    )
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_written_unchecked_says_so_loudly(write, tmp_path):
    result = anyshape.make_dynamic(write(SOFTMAX), {"x": "batch seq"}, out=tmp_path / "d.onnx", unchecked=["seq"])
    assert (
        told(result)
        == """\
unchecked: d.onnx, not every dim could be checked
  input    x  float32[batch, seq]
  output   y  float32[batch, seq]
  dims     batch 1.., seq 1..
  checked  batch 1 to 5 (5 sizes), sample by sample
  checked  seq 4 to 16 (4 sizes), never: `y`
  error    at most N x the static file's rounding noise (8 is allowed)
  took     N s to free (opset 18), N s to check
  note     other sizes of `seq` are UNCHECKED: nothing was compared with `y`
  note     static.onnx cannot show which branches `batch` and `seq` decided, nor what `batch - 1` \
multiplied or divided, being 1 there"""
    )
    assert read_contract(onnx.load(tmp_path / "d.onnx")).verdict == "unchecked"


def test_a_wrong_file_is_refused_even_where_unchecked_is_allowed(write, monkeypatch):
    """An engine that mixes samples: the check finds it, at the file's own size."""
    from anyshape.freeing import engine
    from anyshape.stages import free_readings

    def forgetful(model, wanted, choices=(), *, folder=None):
        freed = real(model, wanted, choices, folder=folder)
        node = next(node for node in freed.model.graph if node.op_type == "Softmax")
        node.attributes["axis"] = ir.AttrInt64("axis", 0)
        return freed

    real = engine.free
    monkeypatch.setattr(free_readings, "free", forgetful)
    text = FLATTEN.replace("y = Reshape(x, shape)", "z = Reshape(x, shape) y = Softmax<axis = 1>(z)")
    (finding,) = refused(write(text), {"x": "batch 3 4"}, unchecked=["batch"]).findings
    assert finding.rule == "wrong-values"
    assert re.fullmatch(r"`y` differs by 0\.\d+ \(allowed \S+\) at batch = 2", finding.message)
    assert finding.notes == ("it was compared with what the static file gives",)


def test_an_unrolled_loop_is_refused(write):
    (finding,) = refused(write(UNROLLED), {"x": "batch seq"}, unchecked=["seq"]).findings
    assert finding.rule in ("pinned-dim", "wrong-values", "runtime-error")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"dims": {"z": "n"}}, "`dims` names `z`, but the inputs are `x`"),
        ({"unchecked": ["seq"]}, "unchecked names `seq`, but the dims are `batch`"),
        ({"unchecked": "batch"}, "unchecked is 'batch': give a list of text"),
        ({"sizes": {"seq": 3}}, "sizes given for `seq`, but the dims are `batch`"),
        ({"constants": ["view"]}, '`constants` is a list: give {"node": "1/batch"}'),
        ({"constants": {"view": 3}}, "`constants` has 'view': 3: give the name of a node and a text, as \"1/batch\""),
        (
            {"constants": {"veiw": "fixed"}},
            "`constants` names `veiw`, but the file has no such node; did you mean `view`?",
        ),
        ({"budget": -1}, "budget is -1: give a number that is not negative"),
        ({"out": "nowhere/"}, "`nowhere/` ends like a folder: name a file in it, such as `nowhere/model.onnx`"),
    ],
)
def test_wrong_usage_is_one_sentence(write, options, said):
    with pytest.raises(DeclarationError) as caught:
        anyshape.make_dynamic(write(FLATTEN), **options)
    assert str(caught.value) == said


def test_a_path_that_is_none_is_one_sentence():
    with pytest.raises(DeclarationError) as caught:
        anyshape.make_dynamic(3)
    assert str(caught.value) == "`path` is a int: pass the path of an ONNX file"


def test_an_interruption_leaves_nothing_behind(write, tmp_path, monkeypatch):
    from anyshape.verification import freed_file

    def interrupted(*_):
        raise KeyboardInterrupt

    path = write(FLATTEN)
    before = path.read_bytes()
    monkeypatch.setattr(freed_file, "check_against_file", interrupted)
    with pytest.raises(KeyboardInterrupt):
        anyshape.make_dynamic(path, {"x": "batch 3 4"}, out=path)
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == before


# ---- against PyTorch


class Peak(torch.nn.Module):
    def __init__(self, factor=1.0):
        super().__init__()
        self.factor = factor

    def forward(self, x):
        return torch.softmax(x, 1) * self.factor


def test_with_the_model_every_dim_is_checked(write, tmp_path):
    example = torch.randn(2, 8)
    result = anyshape.make_dynamic(
        write(SOFTMAX), {"x": "batch seq"}, out=tmp_path / "d.onnx", model=Peak(), args=example, quick=True
    )
    assert result.verdict == "checked"
    assert "against PyTorch" in str(result)
    assert run(tmp_path / "d.onnx", x=np.ones((3, 5), np.float32)).shape == (3, 5)


def test_another_model_is_noticed(write):
    (finding,) = refused(
        write(SOFTMAX), {"x": "batch seq"}, model=Peak(2.0), args=torch.randn(2, 8), quick=True
    ).findings
    assert finding.rule == "wrong-values"


# ---- files that are dynamic in part


PARTLY = """
main (float[N, 6, 4] x, float[N, 4] z) => (float[N, 6, 2, 2] y, float[N, 4] w) <int64[4] shape = {-1, 6, 2, 2}> {
  y = Reshape(x, shape)
  w = Softmax<axis = 0>(z)
}"""


@pytest.mark.parametrize(("declared", "name"), [("_ seq 4", "N"), ("N seq 4", "N"), ("batch seq 4", "batch")])
def test_open_axes_stay_open_and_the_rest_is_freed(write, tmp_path, declared, name):
    result = anyshape.make_dynamic(write(PARTLY), {"x": declared}, out=tmp_path / "d.onnx")
    assert [port.axes for port in result.inputs] == [(name, "seq", 4), (name, 4)]
    assert [port.axes for port in result.outputs] == [(name, "seq", 2, 2), (name, 4)]
    assert result.verification.how[name].endswith("by the file itself")
    x, z = np.arange(5 * 9 * 4, dtype=np.float32).reshape(5, 9, 4), np.ones((5, 4), np.float32)
    assert np.array_equal(run(tmp_path / "d.onnx", x=x, z=z), x.reshape(5, 9, 2, 2))


def test_an_axis_that_joins_an_open_dim_is_checked_at_other_sizes(write):
    text = "main (float[N, 4] x, float[2, 4] z) => (float[N, 4] y, float[2, 4] w) { y = Relu(x) w = Neg(z) }"
    result = anyshape.make_dynamic(write(text), {"z": "N 4"})
    assert [port.axes for port in result.inputs] == [("N", 4), ("N", 4)]
    assert result.verification.how["N"].endswith("sample by sample")


def test_a_freed_axis_that_breaks_an_open_one_is_noticed(write, monkeypatch):
    """The open dim frozen by a rewrite: only the file at other sizes of it tells."""
    path = write(PARTLY)

    def frozen(model, wanted, choices=(), **options):
        freed = free(model, wanted, choices, **options)
        target = ir.tensor(np.array([3, -1, 2, 2], np.int64))
        next(node for node in freed.model.graph if node.op_type == "Reshape").inputs[1].const_value = target
        return freed

    monkeypatch.setattr("anyshape.stages.free_readings.free", frozen)
    assert refused(path, {"x": "_ seq 4"}).findings[0].rule in ("runtime-error", "wrong-shape")


# ---- external data


def test_weights_beside_the_file_go_with_it(tmp_path):
    weights = np.arange(2000, dtype=np.float32)
    model = onnx.parser.parse_model(HEAD + "main (float[1, 2000] x) => (float[1, 2000] y) { y = Mul(x, w) }")
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    onnx.save(model, tmp_path / "static.onnx", save_as_external_data=True, location="old.bin", size_threshold=0)
    (tmp_path / "new").mkdir()
    anyshape.make_dynamic(tmp_path / "static.onnx", out=tmp_path / "new" / "d.onnx")
    (tmp_path / "old.bin").unlink()
    given = run(tmp_path / "new" / "d.onnx", x=np.ones((3, 2000), np.float32))
    assert np.array_equal(given, np.broadcast_to(weights, (3, 2000)))


# ---- the command


def command(*arguments):
    return CliRunner().invoke(program, ["make-dynamic", *map(str, arguments), "--quiet"])


@pytest.mark.parametrize("declared", [("--input", "x: [batch, 3, 4]"), ("--dim", "x=batch 3 4"), ()])
def test_the_command_writes_the_file(write, tmp_path, declared):
    outcome = command(write(FLATTEN), "-o", tmp_path / "d.onnx", *declared)
    assert outcome.exit_code == 0, outcome.output
    assert outcome.output.startswith("checked: d.onnx, right at 5 sizes in ONNX Runtime ")
    assert run(tmp_path / "d.onnx", x=np.ones((3, 3, 4), np.float32)).shape == (3, 12)


def test_a_refusal_has_its_exit_code_and_its_document(write, tmp_path):
    outcome = CliRunner().invoke(
        program, ["make-dynamic", str(write(MIXED)), "-o", str(tmp_path / "d.onnx"), "--quiet", "--json"]
    )
    assert outcome.exit_code == NOTHING_WRITTEN
    document = json.loads(outcome.stdout)
    assert (document["verdict"], document["findings"][0]["rule"]) == ("refused", "unchecked-dim")
    assert not (tmp_path / "d.onnx").exists()


def test_json_says_how_each_dim_was_checked(write, tmp_path):
    outcome = CliRunner().invoke(
        program, ["make-dynamic", str(write(FLATTEN)), "-o", str(tmp_path / "d.onnx"), "--quiet", "--json"]
    )
    verification = json.loads(outcome.stdout)["verification"]
    assert verification["against"] == "static.onnx"
    assert verification["how"] == {"batch": "1 to 5 (5 sizes), sample by sample"}


def test_wrong_usage_has_its_exit_code(write, tmp_path):
    path = write(FLATTEN)
    assert command(path, "-o", tmp_path / "d.onnx", "--input", "x: [batch, 3]").exit_code == USAGE
    assert command(path, "-o", tmp_path / "d.onnx", "--weights", "w.pt").exit_code == USAGE
    assert command(path, "-o", tmp_path / "d.onnx", "--quick", "--thorough").exit_code == USAGE
    assert list(tmp_path.iterdir()) == [path]


SHARE = "main (float[4, 6] x) => (float[4, 6] y) <float four = {4.0}> { [share] y = Div(x, four) }"


def test_the_command_takes_what_a_number_is(write, tmp_path):
    path, out = write(SHARE), tmp_path / "d.onnx"
    outcome = command(path, "-o", out)
    assert outcome.exit_code == NOTHING_WRITTEN
    assert "--constant share=batch" in outcome.output
    assert command(path, "-o", out, "--constant", "share=1/batch").exit_code == USAGE
    assert not out.exists()
    x = np.ones((5, 6), np.float32)
    for told, divisor in (("share=batch", 5), ("share=fixed", 4)):
        outcome = command(path, "-o", out, "--constant", told)
        assert outcome.exit_code == 0, outcome.output
        assert np.allclose(run(out, x=x), x / divisor)


def test_the_command_checks_against_a_model_of_the_user(write, tmp_path):
    (tmp_path / "net.py").write_text(
        "import torch\n\nclass Peak(torch.nn.Module):\n    def forward(self, x):\n        return torch.softmax(x, 1)\n"
    )
    target = f"{tmp_path / 'net.py'}:Peak"
    outcome = command(write(SOFTMAX), "-o", tmp_path / "d.onnx", "--dim", "x=batch seq", "--model", target, "--quick")
    assert outcome.exit_code == 0, outcome.output
    assert "against PyTorch" in outcome.output


def test_torch_is_not_imported(write, tmp_path):
    code = (
        "import sys, anyshape; "
        f"anyshape.make_dynamic({str(write(FLATTEN))!r}, out={str(tmp_path / 'd.onnx')!r}, quick=True); "
        "print('torch' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "False\n"
