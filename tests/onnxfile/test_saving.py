from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest

from anyshape.onnxfile import saving
from anyshape.onnxfile.destination import check_destination
from anyshape.onnxfile.placement import listed_data
from anyshape.onnxfile.saving import staged, write_model


def model_of(value=1.0, count=1000):
    """y = x + w, with as many weights as wanted."""
    x = ir.Value(name="x", shape=ir.Shape(["n", count]), type=ir.TensorType(ir.DataType.FLOAT))
    weight = ir.Value(name="w", const_value=ir.tensor(np.full(count, value, np.float32), name="w"))
    node = ir.node("Add", [x, weight])
    node.outputs[0].name = "y"
    graph = ir.Graph([x], node.outputs, nodes=[node], initializers=[weight], opset_imports={"": 18}, name="main")
    return ir.Model(graph, ir_version=8)


def save(destination, model, *, external_data=None):
    with staged(destination) as stage:
        stage.write(model, external_data=external_data)
        stage.commit()


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def data_of(path):
    """The file of weights beside a model."""
    [name] = listed_data(path)
    return path.with_name(name)


def weight_of(path):
    return onnx.numpy_helper.to_array(onnx.load(path).graph.initializer[0])[0]


# ---- writing


@pytest.mark.parametrize(
    ("external_data", "beside"), [(None, set()), (False, set()), (True, {"m.onnx.6e800807b369ce9a.data"})]
)
def test_weights_go_where_they_are_asked_to(tmp_path, external_data, beside):
    save(tmp_path / "m.onnx", model_of(3.0), external_data=external_data)
    assert set(files(tmp_path)) == {"m.onnx", *beside}
    assert weight_of(tmp_path / "m.onnx") == 3.0


def test_large_weights_go_beside_the_model_by_themselves(tmp_path, monkeypatch):
    monkeypatch.setattr(saving.budgets, "EXTERNAL_FROM_BYTES", 2000)
    save(tmp_path / "m.onnx", model_of())
    assert set(files(tmp_path)) == {"m.onnx", data_of(tmp_path / "m.onnx").name}


def test_data_that_was_asked_for_is_left_out_where_there_are_no_weights(tmp_path):
    x = ir.Value(name="x", shape=ir.Shape([2]), type=ir.TensorType(ir.DataType.FLOAT))
    node = ir.node("Identity", [x])
    graph = ir.Graph([x], node.outputs, nodes=[node], opset_imports={"": 18}, name="main")
    save(tmp_path / "m.onnx", ir.Model(graph, ir_version=8), external_data=True)
    assert set(files(tmp_path)) == {"m.onnx"}


def test_the_model_in_memory_outlives_the_files(tmp_path):
    model = model_of(5.0)
    write_model(model, tmp_path / "m.onnx", external_data=True)
    for path in tmp_path.iterdir():
        path.unlink()
    assert model.graph.initializers["w"].const_value.numpy()[0] == 5.0


@pytest.mark.parametrize("external_data", [True, False])
def test_the_same_model_twice_gives_the_same_bytes(tmp_path, external_data):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        save(tmp_path / folder / "m.onnx", model_of(), external_data=external_data)
    assert files(tmp_path / "a") == files(tmp_path / "b")


def test_no_absolute_path_is_written(tmp_path):
    save(tmp_path / "m.onnx", model_of(), external_data=True)
    assert str(tmp_path).encode() not in b"".join(files(tmp_path).values())


def test_old_data_is_removed_when_the_new_model_has_none(tmp_path):
    save(tmp_path / "m.onnx", model_of(1.0), external_data=True)
    save(tmp_path / "m.onnx", model_of(2.0), external_data=False)
    assert set(files(tmp_path)) == {"m.onnx"}
    assert weight_of(tmp_path / "m.onnx") == 2.0


def test_data_that_belongs_to_no_model_is_left_alone(tmp_path):
    (tmp_path / "m.onnx.data").write_bytes(b"mine")
    save(tmp_path / "m.onnx", model_of(), external_data=False)
    assert files(tmp_path)["m.onnx.data"] == b"mine"


@pytest.mark.parametrize("name", ["previous", "model", "m.onnx", "m.onnx.data", ".hidden"])
def test_any_name_can_be_replaced(tmp_path, name):
    for value in (1.0, 2.0):
        save(tmp_path / name, model_of(value), external_data=True)
    assert set(files(tmp_path)) == {name, data_of(tmp_path / name).name}
    assert weight_of(tmp_path / name) == 2.0


def test_without_a_destination_nothing_stays():
    with staged(None) as stage:
        stage.write(model_of())
        stage.commit()
        assert weight_of(stage.path) == 1.0
    assert not stage.path.parent.exists()


# ---- failures leave what was there before


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("is_written", [True, False])
def test_an_exception_before_the_end_leaves_everything_as_it_was(tmp_path, error, is_written):
    save(tmp_path / "m.onnx", model_of(1.0), external_data=True)
    before = files(tmp_path)
    with pytest.raises(error), staged(tmp_path / "m.onnx") as stage:
        if is_written:
            stage.write(model_of(2.0))
        raise error
    assert files(tmp_path) == before


def moves_of(monkeypatch, *, at, error, is_done):
    """Raise at one of the moves, before or after it is done."""
    real, moves = Path.replace, []

    def replace(self, target):
        moves.append(Path(target).name)
        if len(moves) != at:
            return real(self, target)
        if is_done:
            real(self, target)
        raise error

    monkeypatch.setattr(Path, "replace", replace)
    return moves


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
@pytest.mark.parametrize("is_done", [True, False])
@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize(
    ("old", "new"), [(True, True), (True, False), (False, True), (False, False), (None, True), (None, False)]
)
def test_an_interruption_of_any_move_leaves_the_old_files_or_the_new(
    tmp_path, monkeypatch, at, error, is_done, old, new
):
    (tmp_path / "wanted").mkdir()
    save(tmp_path / "wanted" / "m.onnx", model_of(2.0), external_data=new)
    folder = tmp_path / "folder"
    folder.mkdir()
    if old is not None:
        save(folder / "m.onnx", model_of(1.0), external_data=old)
    before = files(folder)
    with monkeypatch.context() as patch:
        moves = moves_of(patch, at=at, error=error, is_done=is_done)
        try:
            save(folder / "m.onnx", model_of(2.0), external_data=new)
        except error:
            pass
        else:
            assert len(moves) < at
    is_replaced = "m.onnx" in moves and (is_done or moves.index("m.onnx") + 1 != at)
    assert files(folder) == (files(tmp_path / "wanted") if is_replaced else before)


# ---- where to write


def test_a_link_is_followed_so_that_it_stays_a_link(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link.onnx").symlink_to(tmp_path / "real" / "m.onnx")
    save(check_destination(tmp_path / "link.onnx"), model_of())
    assert (tmp_path / "link.onnx").is_symlink()
    assert set(files(tmp_path / "real")) == {"m.onnx"}


def test_missing_folders_are_made_with_the_file_alone(tmp_path):
    with staged(tmp_path / "a" / "b" / "m.onnx") as stage:
        stage.write(model_of())
    assert list(tmp_path.iterdir()) == []
    save(tmp_path / "a" / "b" / "m.onnx", model_of())
    assert set(files(tmp_path / "a" / "b")) == {"m.onnx"}
