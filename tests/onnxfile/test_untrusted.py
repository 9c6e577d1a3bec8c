from __future__ import annotations

import os
import re
from pathlib import Path

import onnx
import onnx.parser
import pytest

from anyshape.errors import DeclarationError
from anyshape.onnxfile.destination import check_destination
from anyshape.onnxfile.untrusted import load_checked

TEXT = (
    '<ir_version: 8, opset_import: ["" : 18]>\nmain (float[n] x) => (float[n] y) <float[1] w = {2}> { y = Mul(x, w) }'
)


def model_with(location, *, of=None):
    model = onnx.parser.parse_model(TEXT)
    keep_outside(model.graph.initializer[0] if of is None else of(model), location)
    return model


def keep_outside(tensor, location):
    tensor.name = "w"
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value=location)


def write(folder, model):
    folder.mkdir(exist_ok=True)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def message_of(path):
    with pytest.raises(DeclarationError) as caught:
        load_checked(path)
    return str(caught.value)


def test_a_model_with_its_data_beside_it_is_loaded_without_it(tmp_path):
    path = write(tmp_path / "m", model_with("model.onnx.data"))
    (path.parent / "model.onnx.data").write_bytes(b"1234")
    assert load_checked(path).graph.initializer[0].external_data[0].value == "model.onnx.data"
    assert load_checked(str(path)).graph.node[0].op_type == "Mul"


@pytest.mark.parametrize("name", ["x", "n", "y"])
def test_names_that_are_no_text_are_refused(tmp_path, name):
    path = write(tmp_path / "m", onnx.parser.parse_model(re.sub(rf"\b{name}\b", "marker", TEXT)))
    path.write_bytes(path.read_bytes().replace(b"marker", b"\xffarker"))
    assert message_of(path) == f"`{path}` is not an ONNX file: the name of an input, an output or a dim is no UTF-8"


@pytest.mark.skipif(os.name == "nt", reason="names are text there")
def test_a_file_whose_own_name_is_no_text_is_refused(tmp_path):
    """Which ONNX Runtime would be told as such, and does not take."""
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.onnx"))
    path.write_bytes(onnx.parser.parse_model(TEXT).SerializeToString())
    told = "has bytes that are no text: ONNX Runtime could not open it"
    assert message_of(path) == f"`{tmp_path}/\\udcff.onnx` {told}"
    with pytest.raises(DeclarationError) as caught:
        check_destination(path)
    assert str(caught.value) == f"`{tmp_path}/\\udcff.onnx` {told}"


def test_data_in_a_folder_below_is_the_models_own(tmp_path):
    path = write(tmp_path / "m", model_with("weights/w.bin"))
    (path.parent / "weights").mkdir()
    (path.parent / "weights" / "w.bin").write_bytes(b"1234")
    assert load_checked(path).graph.name == "main"


@pytest.mark.parametrize("location", ["../secret", "weights/../../secret", "/etc/hostname", "a\0b", "./../m2/x"])
def test_data_outside_the_folder_is_refused(tmp_path, location):
    (tmp_path / "secret").write_bytes(b"1234")
    path = write(tmp_path / "m", model_with(location))
    assert message_of(path) == f"`model.onnx` keeps `w` in `{location}`, outside its own folder: refused"


def test_an_absolute_path_is_refused_even_to_the_own_folder(tmp_path):
    location = str(tmp_path / "m" / "model.onnx.data")
    path = write(tmp_path / "m", model_with(location))
    (path.parent / "model.onnx.data").write_bytes(b"1234")
    assert message_of(path) == f"`model.onnx` keeps `w` in `{location}`, outside its own folder: refused"


@pytest.mark.parametrize("is_folder", [True, False])
def test_data_behind_a_link_to_elsewhere_is_refused(tmp_path, is_folder):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "secret").write_bytes(b"1234")
    location = "link/secret" if is_folder else "link"
    path = write(tmp_path / "m", model_with(location))
    (path.parent / "link").symlink_to(tmp_path / "elsewhere" if is_folder else tmp_path / "elsewhere" / "secret")
    assert message_of(path) == f"`model.onnx` keeps `w` in `{location}`, outside its own folder: refused"


def test_a_link_to_itself_is_refused(tmp_path):
    path = write(tmp_path / "m", model_with("loop"))
    (path.parent / "loop").symlink_to(path.parent / "loop")
    assert message_of(path).startswith("`model.onnx` keeps `w` in `loop`, ")


@pytest.mark.parametrize("location", ["model.onnx.data", "", "."])
def test_missing_data_is_said_so(tmp_path, location):
    path = write(tmp_path / "m", model_with(location))
    assert message_of(path) == f"`model.onnx` keeps `w` in `{location}`, which does not exist"


def _in_attribute(model):
    return model.graph.node.add(op_type="Constant", output=["c"]).attribute.add(name="value", type=4).t


def _in_list(model):
    return model.graph.node.add(op_type="Custom", output=["c"]).attribute.add(name="values", type=9).tensors.add()


def _in_inner_graph(model):
    return model.graph.node.add(op_type="If").attribute.add(name="then_branch", type=5).g.initializer.add()


def _in_one_of_several_graphs(model):
    return model.graph.node.add(op_type="Custom").attribute.add(name="branches", type=10).graphs.add().initializer.add()


def _in_sparse_weights(model):
    return model.graph.sparse_initializer.add().indices


def _in_sparse_attribute(model):
    return model.graph.node.add(op_type="Constant").attribute.add(name="sparse_value", type=11).sparse_tensor.values


def _in_function(model):
    function = model.functions.add(name="f", domain="local")
    return function.node.add(op_type="Constant", output=["c"]).attribute.add(name="value", type=4).t


@pytest.mark.parametrize(
    "of",
    [
        _in_attribute,
        _in_list,
        _in_inner_graph,
        _in_one_of_several_graphs,
        _in_sparse_weights,
        _in_sparse_attribute,
        _in_function,
    ],
)
def test_data_is_found_wherever_a_file_can_hold_it(tmp_path, of):
    path = write(tmp_path / "m", model_with("../secret", of=of))
    assert message_of(path) == "`model.onnx` keeps `w` in `../secret`, outside its own folder: refused"


def test_what_is_no_file_or_no_model_gets_one_sentence(tmp_path):
    path = tmp_path / "model.onnx"
    assert message_of(path) == f"there is no file `{path}`"
    assert message_of(tmp_path) == f"there is no file `{tmp_path}`"
    path.write_text("this is text")
    assert message_of(path).startswith(f"`{path}` is not an ONNX file: ")
    assert "\n" not in message_of(path)
    path.write_bytes(b"")
    assert message_of(path) == f"`{path}` is not an ONNX file: it has no graph"
