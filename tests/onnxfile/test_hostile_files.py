"""Files that nobody vouches for: one sentence, an exit code, and nothing left behind."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anyshape.cli import program

HEAD = '<ir_version: 8, opset_import: ["" : 18, "own" : 1]>\n'
VALID = (
    HEAD
    + """
main (float[2, 3, 4] x) => (float[2, 12] y)
<int64[2] shape = {2, 12}, float[12] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}> {
  [view] z = Reshape(x, shape)
  [scale] y = Mul(z, w)
}"""
)
USAGE, NOTHING_WRITTEN = 2, 3
NOT_LOADED = "error[runtime-error]: ONNX Runtime does not load the file: "


def made(path, *arguments):
    """The exit code and the one line that says why, with nothing written."""
    before = sorted(path.parent.rglob("*"))
    out = path.parent / "out.onnx"
    outcome = CliRunner().invoke(program, ["make-dynamic", str(path), "-o", str(out), "--quiet", *arguments])
    assert sorted(path.parent.rglob("*")) == before, "something is left behind"
    lines = [line for line in outcome.output.splitlines() if line.startswith("error")]
    assert len(lines) == 1, outcome.output
    return outcome.exit_code, lines[0].replace(str(path), "FILE")


def write(folder, text):
    path = folder / "model.onnx"
    onnx.save(onnx.parser.parse_model(text), path)
    return path


def node(text):
    return HEAD + f"main (float[2, 3] x) => (float[2, 3] y) {{ {text} }}"


def test_a_file_that_is_not_there(tmp_path):
    assert made(tmp_path / "none.onnx") == (USAGE, "error: there is no file `FILE`")


def test_an_empty_file(tmp_path):
    (tmp_path / "model.onnx").touch()
    assert made(tmp_path / "model.onnx") == (USAGE, "error: `FILE` is not an ONNX file: it has no graph")


def test_a_file_that_is_no_model(tmp_path):
    (tmp_path / "model.onnx").write_text("not an ONNX file, but a letter\n" * 40)
    code, said = made(tmp_path / "model.onnx")
    assert (code, said.partition(": ")[2].partition(":")[0]) == (USAGE, "`FILE` is not an ONNX file")


def test_a_truncated_file(tmp_path):
    path = write(tmp_path, VALID)
    path.write_bytes(path.read_bytes()[:-20])
    code, said = made(path)
    assert (code, said.partition(": ")[2].partition(":")[0]) == (USAGE, "`FILE` is not an ONNX file")


@pytest.mark.parametrize(
    ("location", "length", "said"),
    [
        ("../w.bin", 48, "`model.onnx` keeps `w` in `../w.bin`, outside its own folder: refused"),
        ("/etc/passwd", 48, "`model.onnx` keeps `w` in `/etc/passwd`, outside its own folder: refused"),
        ("none.bin", 48, "`model.onnx` keeps `w` in `none.bin`, which does not exist"),
        ("w.bin", 48, "`model.onnx` keeps `w` in `w.bin`, which is 8 bytes too short for it"),
        ("w.bin", 10**30, f"`model.onnx` keeps `w` in `w.bin`, which is {10**30 - 40} bytes too short for it"),
    ],
)
def test_external_data_that_is_elsewhere_absent_or_short(tmp_path, location, length, said):
    folder = tmp_path / "m"
    folder.mkdir()
    for place in (tmp_path / "w.bin", folder / "w.bin"):
        place.write_bytes(b"\0" * 40)
    model = onnx.parser.parse_model(VALID)
    weight = model.graph.initializer[1]
    weight.ClearField("float_data")
    weight.data_location = onnx.TensorProto.EXTERNAL
    weight.external_data.add(key="location", value=location)
    weight.external_data.add(key="length", value=str(length))
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    assert made(folder / "model.onnx") == (USAGE, f"error: {said}")


@pytest.mark.parametrize(
    ("text", "code", "starts"),
    [
        (node("a = Add(x, b) b = Relu(a) y = Relu(b)"), NOTHING_WRITTEN, NOT_LOADED),
        (node("y = own.Mystery(x)"), NOTHING_WRITTEN, "error[unsupported-op]: ONNX Runtime has no `own::Mystery`"),
        (node("y = Mystery(x)"), NOTHING_WRITTEN, NOT_LOADED),
        (node("y = Relu(x) y = Neg(x)"), NOTHING_WRITTEN, NOT_LOADED),
        (node("y = Relu(z)"), NOTHING_WRITTEN, NOT_LOADED),
        (node(""), NOTHING_WRITTEN, NOT_LOADED),
        (HEAD + "main (float[4194304, 1048576] x) => (float[4194304, 1048576] y) { y = Relu(x) }", USAGE,
         "error: the inputs have 4,398,046,511,104 elements, more than the 33,554,432 made up here"),
        (HEAD + "main (float[n, 3] x) => (float[n, 3] y) { y = Relu(x) }", USAGE,
         "error: axis 0 of `x` is open already: name the axes that are to be free in `--dim`"),
        (HEAD + "main () => (float[2] y) <float[2] w = {1, 2}> { y = Relu(w) }", USAGE,
         "error: the file has no inputs"),
        (HEAD + "main (string[2] x) => (string[2] y) { y = Identity(x) }", USAGE, "error: input `x` is string"),
    ],
    ids=["cyclic", "own domain", "unknown", "duplicate", "undefined", "no nodes", "huge", "dynamic", "no inputs",
         "text"],
)  # fmt: skip
def test_graphs_that_make_no_sense(tmp_path, text, code, starts):
    given, said = made(write(tmp_path, text))
    assert (given, said[: len(starts)]) == (code, starts)


def test_names_that_are_no_text(tmp_path):
    path = tmp_path / "model.onnx"
    model = onnx.parser.parse_model(VALID)
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(1), "spare"))
    path.write_bytes(model.SerializeToString().replace(b"spare", b"sp\xffre"))
    code, said = made(path)
    assert code == NOTHING_WRITTEN
    assert said.startswith("error[not-converted]: the file cannot be read: ")


def test_a_file_without_a_graph(tmp_path):
    (tmp_path / "model.onnx").write_bytes(onnx.ModelProto(ir_version=8).SerializeToString())
    assert made(tmp_path / "model.onnx") == (USAGE, "error: `FILE` is not an ONNX file: it has no graph")


def test_a_target_that_asks_for_more_than_there_is(tmp_path):
    text = (
        HEAD
        + """
    main (float[2, 3] x) => (float[2, 3] y) <int64[2] shape = {1099511627776, 1048576}>
    { z = Expand(x, shape) y = Relu(x) }"""
    )
    path = write(tmp_path, text)
    outcome = CliRunner().invoke(program, ["make-dynamic", str(path), "-o", str(tmp_path / "o.onnx"), "--quiet"])
    assert outcome.exit_code in (0, NOTHING_WRITTEN), outcome.output


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True)
@given(st.data())
def test_damaged_files_end_in_one_sentence(tmp_path, data):
    """Bytes are flipped, cut off or doubled; whatever comes, no bug is reported and nothing half-written stays."""
    whole = onnx.parser.parse_model(VALID).SerializeToString()
    damaged = bytearray(whole)
    for place in data.draw(st.lists(st.integers(0, len(whole) - 1), min_size=1, max_size=4), "places"):
        damaged[place] = data.draw(st.integers(0, 255), "byte")
    end = data.draw(st.one_of(st.just(len(whole)), st.integers(0, len(whole))), "end")
    path, out = tmp_path / "model.onnx", tmp_path / "out.onnx"
    path.write_bytes(bytes(damaged[:end]))
    out.unlink(missing_ok=True)
    outcome = CliRunner().invoke(program, ["make-dynamic", str(path), "-o", str(out), "--quiet", "--quick"])
    assert outcome.exit_code in (0, USAGE, NOTHING_WRITTEN), outcome.output
    assert out.exists() == (outcome.exit_code == 0)
    assert sorted(one.name for one in tmp_path.iterdir() if one != out) == ["model.onnx"]


def test_inspect_does_not_stumble_over_what_only_protobuf_reads(tmp_path):
    model = onnx.parser.parse_model(VALID)
    model.graph.node.append(model.graph.node[0])  # its output is made twice
    onnx.save(model, tmp_path / "model.onnx")
    outcome = CliRunner().invoke(program, ["inspect", str(tmp_path / "model.onnx")])
    assert outcome.exit_code == 0, outcome.output
    assert "bug" not in outcome.output


def test_a_file_that_cannot_be_copied_is_refused(tmp_path, monkeypatch):
    def fail(*_asked):
        raise RuntimeError("In clone_graph")

    monkeypatch.setattr("anyshape.stages.free_readings.named", fail)
    path = write(tmp_path, HEAD + "main (float[2, 3] x) => (float[3, 3] y) { t = Transpose(x) \n y = MatMul(t, x) }")
    code, line = made(path)
    assert code == NOTHING_WRITTEN
    assert "bug" not in line
