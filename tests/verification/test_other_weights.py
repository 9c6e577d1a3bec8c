"""Other weights are told from the same ones renamed, transposed, reordered, scaled, joined or narrowed."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
import torch
from torch import nn

from anyshape.verification.other_weights import OtherWeights, other_weights


def model_of(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 6), nn.Conv1d(6, 4, 3), nn.LSTM(4, 3))


def arrays_of(module: nn.Module) -> dict[str, np.ndarray]:
    return {name: value.numpy().copy() for name, value in module.state_dict().items()}


def file_of(arrays: dict[str, np.ndarray]) -> onnx.ModelProto:
    initializers = [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()]
    return onnx.helper.make_model(onnx.helper.make_graph([], "main", [], [], initializers))


def gates_reordered(weight: np.ndarray) -> np.ndarray:
    one, two, three, four = np.split(weight, 4)
    return np.concatenate([one, four, two, three])[None]


def as_a_converter_writes_them(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    scale = np.linspace(-2, 3, 4, dtype=np.float32)
    return {
        "val_3": np.ascontiguousarray(arrays["0.weight"].T),
        "0.bias": arrays["0.bias"],
        "1.weight": arrays["1.weight"] * scale[:, None, None],  # a norm behind it, folded
        "1.bias": arrays["1.bias"] * scale + 1,
        "W": gates_reordered(arrays["2.weight_ih_l0"]),
        "R": gates_reordered(arrays["2.weight_hh_l0"]),
        "B": np.concatenate([arrays["2.bias_ih_l0"], arrays["2.bias_hh_l0"]])[None],
    }


WRITTEN = {
    "as they are": lambda arrays: arrays,
    "by a converter": as_a_converter_writes_them,
    "by a converter, in float16": lambda arrays: {
        name: array.astype(np.float16) for name, array in as_a_converter_writes_them(arrays).items()
    },
    "columns scaled": lambda arrays: {**arrays, "0.weight": arrays["0.weight"] * np.arange(1, 7, dtype=np.float32)},
    "in eight bits": lambda arrays: {name: (array * 99).astype(np.int8) for name, array in arrays.items()},
    "not at all": lambda arrays: {},
}


@pytest.mark.parametrize("way", WRITTEN)
def test_the_same_weights_are_the_same_however_they_are_written(tmp_path, way):
    assert other_weights(file_of(WRITTEN[way](arrays_of(model_of()))), tmp_path, model_of()) is None


@pytest.mark.parametrize("way", ["as they are", "by a converter", "by a converter, in float16", "columns scaled"])
def test_other_weights_are_others_however_they_are_written(tmp_path, way):
    found = other_weights(file_of(WRITTEN[way](arrays_of(model_of(1)))), tmp_path, model_of())
    assert found == OtherWeights(("0.weight", "1.weight", "2.weight_ih_l0", "2.weight_hh_l0"), 4)


def test_one_layer_that_was_trained_on_is_told_by_its_name(tmp_path):
    arrays = arrays_of(model_of())
    arrays["1.weight"] *= 1 + 0.003 * np.random.default_rng(0).standard_normal(arrays["1.weight"].shape).astype("f4")
    assert other_weights(file_of(arrays), tmp_path, model_of()) == OtherWeights(("1.weight",), 4)


def test_a_product_of_a_weights_shape_is_no_other_weight(tmp_path):
    arrays = arrays_of(model_of())
    arrays["folded"] = arrays.pop("0.weight") @ np.triu(np.ones((6, 6), np.float32))
    assert other_weights(file_of(arrays), tmp_path, model_of()) is None


def test_weights_beside_the_file_are_read(tmp_path):
    file = file_of(arrays_of(model_of(1)))
    onnx.save(file, tmp_path / "m.onnx", save_as_external_data=True, size_threshold=0)
    bare = onnx.load(tmp_path / "m.onnx", load_external_data=False)
    found = other_weights(bare, tmp_path, model_of())
    assert found is not None
    assert len(found.names) == 4


def test_a_model_of_vectors_alone_is_compared_by_them(tmp_path):
    same, other = nn.LayerNorm(5), nn.LayerNorm(5)
    nn.init.normal_(other.weight)
    assert other_weights(file_of(arrays_of(same)), tmp_path, same) is None
    assert other_weights(file_of(arrays_of(other)), tmp_path, same) == OtherWeights(("weight",), 2)
