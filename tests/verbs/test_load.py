"""`load`: a file is called as its module was, and says in one sentence what does not fit."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import types
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import onnx
import onnx.numpy_helper
import onnx.parser
import onnxruntime
import pytest
import torch
from torch import nn

import anyshape
from anyshape.onnxfile import metadata as session_advice
from anyshape.onnxfile.contract import KEY, Branch, Contract, Fixed, Parameter, Slot
from anyshape.sizes.notation import parse_condition, parse_expression, parse_sizes


class Point(NamedTuple):
    near: object
    far: object


class Nested(nn.Module):
    """Dicts, lists, a number that is an input, one that is not, None, and a result of every kind."""

    def forward(self, batch, pair, scale=2.0, mask=None, *, flip=False):
        y = batch["ids"] * scale + pair[0]
        return {"y": y, 3: (y.sum(1), None), "point": Point(y + 1, [pair[1]])}


@pytest.fixture(scope="module")
def nested(tmp_path_factory):
    path = tmp_path_factory.mktemp("load") / "nested.onnx"
    torch.manual_seed(0)
    anyshape.export(
        Nested(),
        ({"ids": torch.randn(2, 8)}, [torch.randn(2, 8), torch.randn(3)]),
        path,
        dims={"batch.ids": "batch seq", "pair.0": "batch seq", "pair.1": "n"},
        sizes={"seq": "8..64 step 8"},
        quick=True,
    )
    return path


def floats(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def stored(tmp_path, graph, contract=None, **metadata):
    """A file from ONNX text."""
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]>\n{graph}')
    if contract is not None:
        model.metadata_props.add(key=KEY, value=contract if isinstance(contract, str) else contract.to_text())
    for key, value in metadata.items():
        model.metadata_props.add(key=key, value=value)
    onnx.save(model, tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


THREE = """g (int64[batch, seq] ids, int64[batch, seq] mask, float[3] scale) => (int64[batch, seq] y, float[3] z)
{ y = Mul(ids, mask)  z = Identity(scale) }"""


def three(batch=2, seq=4, *, mask=None, scale=3):
    ids = np.ones((batch, seq), np.int64)
    return ids, np.ones(mask, np.int64) if mask else ids, np.ones(scale, np.float32)


# ---- calls and results as the module's


def test_a_call_and_its_result_have_the_module_s_own_structure(nested):
    loaded = anyshape.load(nested)
    ids, other, rest = floats(3, 16), floats(3, 16), floats(5)
    found = loaded({"ids": ids}, [other, rest])
    expected = Nested()({"ids": torch.from_numpy(ids)}, [torch.from_numpy(other), torch.from_numpy(rest)])
    assert list(found) == ["y", 3, "point"]
    assert type(found["point"]).__name__ == "Point"
    assert type(found[3]) is tuple
    assert found[3][1] is None
    assert type(found["point"].far) is list
    np.testing.assert_allclose(found["y"], expected["y"], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(found[3][0], expected[3][0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found["point"].near, expected["point"].near, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(found["point"].far[0], rest)


def test_parameters_go_by_place_or_by_name_and_may_repeat_what_is_part_of_the_file(nested):
    loaded = anyshape.load(nested)
    ids, pair = {"ids": floats(1, 8)}, (floats(1, 8), floats(1))
    first = loaded(ids, pair)["y"]
    np.testing.assert_array_equal(loaded(pair=list(pair), batch=ids)["y"], first)
    np.testing.assert_array_equal(loaded(ids, pair, 2.0, None, flip=False)["y"], first)


def test_tensors_give_tensors_that_share_no_gradient(nested):
    loaded = anyshape.load(nested)
    ids = torch.randn(2, 8, requires_grad=True)
    found = loaded({"ids": ids}, [floats(2, 8), torch.randn(4)])
    assert isinstance(found["y"], torch.Tensor)
    assert isinstance(found["point"].far[0], torch.Tensor)
    assert not found["y"].requires_grad


class Turned(nn.Module):
    """Rotary embeddings, whose table is given."""

    def forward(self, x, table):
        pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
        return torch.view_as_real(pairs * table.conj()).flatten(-2), pairs * 2


def test_complex_numbers_go_in_as_they_are_or_as_pairs(tmp_path):
    def call(batch, seq, width):
        return torch.randn(batch, seq, 2 * width), torch.polar(torch.ones(seq, width), torch.randn(seq, width))

    path = tmp_path / "model.onnx"
    dims = {"x": "batch seq 2*width", "table": "seq width"}
    result = anyshape.export(Turned(), call(2, 3, 4), path, dims=dims, quick=True)
    assert [port.axes for port in result.inputs] == [("batch", "seq", "2 * width"), ("seq", "width", 2)]
    assert [port.axes for port in result.outputs][1] == ("batch", "seq", "width", 2)
    x, table = call(1, 5, 2)
    wanted, doubled = Turned()(x, table)
    loaded = anyshape.load(path)
    for how in (result, loaded):
        for given in (table, torch.view_as_real(table), table.numpy(), table.conj().resolve_conj().conj()):
            turned, pairs = how(x, given)
            np.testing.assert_allclose(turned, wanted, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(pairs, torch.view_as_real(doubled), rtol=1e-5)
    assert anyshape.check(path, Turned(), call(2, 3, 4), quick=True).verdict == "checked"


def test_a_tensor_of_others_is_taken_by_dlpack_or_as_an_array(tmp_path):
    loaded = anyshape.load(stored(tmp_path, "g (float[n] x) => (float[n] y) { y = Abs(x) }"))
    array = floats(3)

    class Lending:
        def __dlpack__(self, **how):
            return array.__dlpack__(**how)

        def __dlpack_device__(self):
            return array.__dlpack_device__()

    np.testing.assert_array_equal(loaded(Lending())["y"], np.abs(array))

    class Lent:
        def __array__(self, dtype=None, copy=None):
            return array

    np.testing.assert_array_equal(loaded(Lent())["y"], np.abs(array))


def test_run_and_bind_take_the_file_s_own_names(nested):
    loaded = anyshape.load(nested)
    feeds = {"batch.ids": floats(2, 8), "pair.0": floats(2, 8), "pair.1": floats(3)}
    found = loaded.run(feeds)
    assert list(found) == [port.name for port in loaded.outputs]
    binding = loaded.bind(feeds)
    loaded.session.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], found["y"])
    with pytest.raises(anyshape.DeclarationError) as error:
        loaded.run({**feeds, "pair.2": feeds["pair.1"]})
    listed = "`batch.ids`, `pair.0`, `pair.1`"
    assert str(error.value) == f"`pair.2` is unknown: the file takes {listed}; did you mean `pair.1`?"
    with pytest.raises(anyshape.DeclarationError) as error:
        loaded.bind({"pair.0": feeds["pair.0"], "pair.1": feeds["pair.1"]})
    assert str(error.value) == f"`batch.ids` is missing: the file takes {listed}"


def test_threads_share_a_loaded_file(nested):
    loaded = anyshape.load(nested)

    def once(seed):
        batch, seq = seed % 5 + 1, 8 * (seed % 3 + 1)
        ids = np.full((batch, seq), seed, np.float32)
        found = loaded({"ids": ids}, [ids, floats(2)])
        return found["y"].shape == (batch, seq) and bool((found["y"] == 3 * seed).all())

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(once, range(200)))


def test_loading_and_calling_need_no_torch(nested, tmp_path):
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError('poisoned', name='torch')")
    code = (
        "import sys, numpy as np, anyshape\n"
        f"loaded = anyshape.load({str(nested)!r})\n"
        "x = np.ones((2, 8), np.float32)\n"
        "print(loaded({'ids': x}, [x, x[0]])['y'].sum(), 'torch' in sys.modules)\n"
    )
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert ran.stdout == "48.0 False\n"


# ---- other structures


def test_a_cache_is_taken_as_an_object_or_as_pairs_and_what_comes_back_goes_in_again(tmp_path):
    graph = """g (float[n] k0, float[n] v0, float[n] k1, float[n] v1)
    => (float[n] a, float[n] b, float[n] c, float[n] d)
    { a = Neg(k0)  b = Identity(v0)  c = Identity(k1)  d = Identity(v1) }"""

    def cache(*names):
        pairs = zip(names[::2], names[1::2], strict=True)
        return Branch("cache", (), tuple(Branch("tuple", (), (Slot(k), Slot(v))) for k, v in pairs))

    call = (Parameter("past", "keyword", cache("k0", "v0", "k1", "v1")),)
    contract = Contract({"n": parse_sizes("1..", dim="n")}, call=call, returns=cache("a", "b", "c", "d"))
    loaded = anyshape.load(stored(tmp_path, graph, contract))
    layers = [types.SimpleNamespace(keys=floats(2), values=floats(2)) for _ in range(2)]
    once = loaded(past=types.SimpleNamespace(layers=layers))
    np.testing.assert_array_equal(once[0][0], -layers[0].keys)
    np.testing.assert_array_equal(loaded(past=once)[0][0], layers[0].keys)


def test_fields_of_objects_are_taken_and_given_by_name(tmp_path):
    @dataclasses.dataclass
    class Batch:
        image: object
        ratio: float = 0.5

    node = Branch("fields", ("image", "ratio"), (Slot("x"), Fixed(0.5)))
    returns = Branch("fields", ("logits",), (Slot("y"),))
    contract = Contract({}, call=(Parameter("batch", "both", node),), returns=returns)
    loaded = anyshape.load(stored(tmp_path, "g (float[2] x) => (float[2] y) { y = Abs(x) }", contract))
    for given in (Batch(floats(2)), {"image": floats(2)}):
        found = loaded(given)
        np.testing.assert_array_equal(found.logits, np.abs(floats(2)))
        np.testing.assert_array_equal(found["logits"], found.logits)
    assert not hasattr(found, "loss")
    with pytest.raises(anyshape.DeclarationError, match=r"^`batch\.ratio` is 0\.7, but 0\.5 is part of the file$"):
        loaded(Batch(floats(2), 0.7))


def test_any_number_of_positional_arguments_is_as_many_as_the_file_has(tmp_path):
    many = Parameter("xs", "many", Branch("tuple", (), (Slot("a"), Slot("b"))))
    graph = "g (float[n] a, float[n] b) => (float[n] y) { y = Sub(a, b) }"
    contract = Contract({}, call=(many, Parameter("flag", "keyword", Fixed(value=True))), returns=Slot("y"))
    loaded = anyshape.load(stored(tmp_path, graph, contract))
    np.testing.assert_array_equal(loaded(floats(2), floats(2), flag=True), [0, 0])
    with pytest.raises(anyshape.DeclarationError, match=r"^`xs` takes 2 parts, not 1$"):
        loaded(floats(2))


def test_a_call_that_fitted_does_not_vouch_for_the_next(tmp_path):
    graph = "g (float[n, 2] x, float[n, 2] y) => (float[n, 2] z) { z = Add(x, y) }"
    loaded = anyshape.load(stored(tmp_path, graph, Contract({"n": parse_sizes("1..4", dim="n")})))
    x = floats(3, 2)
    for _ in range(2):
        np.testing.assert_array_equal(loaded(x, y=x)["z"], x + x)
        np.testing.assert_array_equal(loaded(y=x, x=2 * x)["z"], 3 * x)
        np.testing.assert_array_equal(loaded.run({"y": x, "x": x})["z"], x + x)
        assert type(loaded(torch.ones(3, 2), torch.ones(3, 2))["z"]) is torch.Tensor
        for args, sentence in (
            ((x, floats(2, 2)), "`n` is 3 in `x` but 2 in `y`"),
            ((floats(5, 2), floats(5, 2)), "`n` = 5 is above 4"),
            ((x, x.astype(np.float64)), "`y` is float64, but takes float32"),
            ((x, x[:, :, None]), "`y` has the shape [3, 2, 1], but takes [n, 2]"),
            ((x, None), "`y` is None, but was an input when the file was made"),
            ((x, torch.ones(4, 2)), "`n` is 3 in `x` but 4 in `y`"),
            ((x,), "`y` is missing: the file takes `x`, `y`"),
        ):
            with pytest.raises(anyshape.DeclarationError) as error:
                loaded(*args)
            assert str(error.value) == sentence


def test_a_number_is_asked_anew_with_every_call(tmp_path):
    graph = "g (float[n] x, int64 count) => (float[n] y, int64 c) { y = Identity(x)  c = Identity(count) }"
    contract = Contract({"n": parse_sizes("1..4", dim="n")}, numbers={"count": parse_expression("n")})
    loaded = anyshape.load(stored(tmp_path, graph, contract))
    loaded(floats(3), np.array(3))
    with pytest.raises(anyshape.DeclarationError, match=r"^`n` is 3 in `x` but 2 in `count`$"):
        loaded(floats(3), np.array(2))


def test_numbers_are_taken_where_an_input_has_no_axes(tmp_path):
    graph = """g (float[n] x, int64 count, float rate) => (float[n] y, int64 more)
    { y = Mul(x, rate)  more = Add(count, count) }"""
    numbers = {"count": parse_expression("n")}
    loaded = anyshape.load(stored(tmp_path, graph, Contract({"n": parse_sizes("1..4", dim="n")}, numbers=numbers)))
    found = loaded(floats(3), 3, 2)
    np.testing.assert_array_equal(found["y"], floats(3) * 2)
    assert found["more"] == 6
    for args, sentence in {
        (3, 2, 0.5): "`n` is 3 in `x` but 2 in `count`",
        (3, 3.0, 0.5): "`count` is the float 3.0, but takes int64",
        (3, True, 0.5): "`count` is the bool True, but takes int64",
        (3, 2**70, 0.5): f"`count` = {2**70} does not fit into int64",
        (5, 5, 0.5): "`n` = 5 is above 4",
    }.items():
        with pytest.raises(anyshape.DeclarationError) as error:
            loaded(floats(args[0]), *args[1:])
        assert str(error.value) == sentence


# ---- sentences


def refused(loaded, *args, **kwargs):
    with pytest.raises(anyshape.DeclarationError) as error:
        loaded(*args, **kwargs)
    return str(error.value)


@pytest.mark.parametrize(
    ("kwargs", "sentence"),
    [
        ({"batch": 3, "mask": (4, 4)}, "`batch` is 3 in `ids` but 4 in `mask`"),
        ({"seq": 600}, "`seq` = 600 is above 512"),
        ({"seq": 2}, "`seq` = 2 is below 4"),
        ({"seq": 13}, "`seq` = 13 is not in 4..512 step 4"),
        ({"batch": 3, "seq": 8}, "`batch` = 3 is none of 1, 2, 4"),
        ({"batch": 4, "seq": 40}, "the file takes `batch * seq <= 100`, but `batch` = 4 and `seq` = 40"),
        ({"seq": 20}, "the file takes `seq % 8 != 4`, but `seq` = 20"),
        ({"mask": (2,)}, "`mask` has the shape [2], but takes [batch, seq]"),
        ({"scale": 4}, "axis 0 of `scale` is 4, but takes 3"),
        ({"scale": (3, 1)}, "`scale` has the shape [3, 1], but takes [3]"),
    ],
)
def test_sizes_outside_the_contract_are_told_with_both_sides(tmp_path, kwargs, sentence):
    dims = {"batch": parse_sizes([1, 2, 4], dim="batch"), "seq": parse_sizes("4..512 step 4", dim="seq")}
    limits = (parse_condition("batch * seq <= 100"),)
    loaded = anyshape.load(stored(tmp_path, THREE, Contract(dims, limits, (parse_condition("seq % 8 != 4"),))))
    assert loaded(*three(seq=8))["y"].shape == (2, 8)
    assert refused(loaded, *three(**kwargs)) == sentence


def test_what_is_no_such_input_is_told_with_both_sides(tmp_path):
    loaded = anyshape.load(stored(tmp_path, THREE))
    ids, mask, scale = three()
    takes = "the file takes `ids`, `mask`, `scale`"
    assert refused(loaded, ids.astype(np.int32), mask, scale) == "`ids` is int32, but takes int64"
    assert refused(loaded, torch.ones(2, 4), mask, scale) == "`ids` is float32, but takes int64"
    of_others = "`ids` is bfloat16, of which numpy has no arrays: use `session`"
    assert refused(loaded, torch.ones(2, 4, dtype=torch.bfloat16), mask, scale) == of_others
    assert refused(loaded, [[1, 2]], mask, scale) == "`ids` takes an array of int64, not `list`"
    assert refused(loaded, 3, mask, scale) == "`ids` takes an array, not the number 3"
    assert refused(loaded, None, mask, scale) == "`ids` is None, but was an input when the file was made"
    assert refused(loaded, ids, mask) == f"`scale` is missing: {takes}"
    assert refused(loaded, ids, mask, scales=scale) == f"`scales` is unknown: {takes}; did you mean `scale`?"
    assert refused(loaded, ids, mask, scale, ids=ids) == "`ids` is given twice: by its place and by its name"
    assert refused(loaded, ids, mask, scale, scale) == f"4 arguments are given: {takes}"


def test_nested_inputs_that_do_not_fit_are_named_with_their_place(nested):
    loaded = anyshape.load(nested)
    x, ids, pair = floats(2, 8), {"ids": floats(2, 8)}, [floats(2, 8), floats(3)]
    none = "was None when the file was made: there is no input for it"
    assert refused(loaded, ids, [floats(4, 8), pair[1]]) == "`batch` is 2 in `batch.ids` but 4 in `pair.0`"
    assert refused(loaded, x, pair) == "`batch` takes a dict of `ids`, not `ndarray`"
    assert refused(loaded, {"id": x}, pair) == "`batch` takes `ids`, but has `id`; did you mean `ids`?"
    assert refused(loaded, {}, pair) == "`batch` lacks `ids`: it takes `ids`"
    assert refused(loaded, ids, pair[:1]) == "`pair` takes 2 parts, not 1"
    assert refused(loaded, ids, {"0": x}) == "`pair` takes a list, not `dict`"
    assert refused(loaded, ids, pair, 3.0) == "`scale` is 3.0, but 2.0 is part of the file"
    assert refused(loaded, ids, pair, x) == "`scale` is of type `ndarray`, but 2.0 is part of the file"
    assert refused(loaded, ids, pair, mask=x) == f"`mask` is given, but {none}"
    assert refused(loaded, ids) == "`pair` is missing: the file takes `batch`, `pair`"


def test_expressions_are_held_to_the_dims_in_them(tmp_path):
    graph = (
        "g (float[past] cache, float[seq] x, float[total] mask, float[area] grid) => (float[past] y) { y = Abs(cache) }"
    )
    model = onnx.load(stored(tmp_path, graph))
    for place, label in ((2, "past + seq"), (3, "side * side")):
        model.graph.input[place].type.tensor_type.shape.dim[0].dim_param = label
    dims = {dim: parse_sizes("1..8", dim=dim) for dim in ("past", "seq", "side")}
    model.metadata_props.add(key=KEY, value=Contract(dims).to_text())
    onnx.save(model, tmp_path / "model.onnx")
    loaded = anyshape.load(tmp_path / "model.onnx")
    assert loaded(floats(2), floats(3), floats(5), floats(49))["y"].shape == (2,)
    wrong = refused(loaded, floats(2), floats(3), floats(6), floats(49))
    assert wrong == "axis 0 of `mask` is 6, but takes `past + seq` = 5 with past = 2, seq = 3"
    assert refused(loaded, floats(2), floats(3), floats(5), floats(81)) == "`side` = 9 is above 8"


def test_one_input_with_two_sizes_of_one_dim_names_both_axes(tmp_path):
    loaded = anyshape.load(stored(tmp_path, "g (float[n, n] x) => (float[n, n] y) { y = Abs(x) }"))
    assert refused(loaded, floats(2, 3)) == "`n` is 2 on axis 0 of `x` but 3 on axis 1"


def test_without_checks_the_runtime_decides(tmp_path):
    path = stored(tmp_path, "g (float[n] x, float[n] z) => (float[n] y) { y = Add(x, z) }")
    loaded = anyshape.load(path, check=False)
    np.testing.assert_array_equal(loaded(floats(3), floats(1))["y"], floats(3) + floats(1))
    with pytest.raises(anyshape.AnyshapeError, match=r"^ONNX Runtime fails: .*Unexpected input data type"):
        loaded(np.ones(3), floats(3))


# ---- any file, and any contract


def test_a_file_without_a_contract_takes_its_inputs_in_order_and_gives_a_dict(tmp_path):
    loaded = anyshape.load(stored(tmp_path, THREE))
    assert (loaded.contract, loaded.dims) == (None, {"batch": None, "seq": None})
    found = loaded(*three(5, 7))
    assert list(found) == ["y", "z"]
    assert refused(loaded, *three(3, mask=(4, 4))) == "`batch` is 3 in `ids` but 4 in `mask`"


def test_texts_and_sequences_go_to_the_runtime_as_they_are(tmp_path):
    texts = anyshape.load(stored(tmp_path, "g (string[n] x, string[n] z) => (string[n] y) { y = Identity(x) }"))
    assert texts(["a", "b"], np.array(["c", "d"]))["y"].tolist() == ["a", "b"]
    assert refused(texts, ["a"], ["c", "d"]) == "`n` is 1 in `x` but 2 in `z`"
    graph = "g (seq(float[n]) x) => (float[m] y) { y = ConcatFromSequence <axis = 0> (x) }"
    joined = anyshape.load(stored(tmp_path, graph))
    np.testing.assert_array_equal(joined([floats(2), floats(3)])["y"], np.concatenate([floats(2), floats(3)]))


def test_labels_that_are_no_names_are_labels_all_the_same(tmp_path):
    model = onnx.load(stored(tmp_path, "g (float[a] x, float[a] z) => (float[a] y) { y = Abs(x) }"))
    for value in model.graph.input:
        value.type.tensor_type.shape.dim[0].dim_param = "floor(n/2) + 1"
    onnx.save(model, tmp_path / "model.onnx")
    loaded = anyshape.load(tmp_path / "model.onnx")
    assert refused(loaded, floats(2), floats(3)) == "`floor(n/2) + 1` is 2 in `x` but 3 in `z`"


def test_a_contract_of_the_first_format_is_still_held(tmp_path):
    first = (
        '{"version": "0.0.9", "verdict": "checked", "dims": {"batch": "1..", "seq": "1..6"}, "limits": ["seq != 5"], '
    )
    first += '"conditions": [], "outputs": {"y": ["batch", "seq"]}, "constants": {}}'
    loaded = anyshape.load(stored(tmp_path, THREE, first))
    assert list(loaded(*three())) == ["y", "z"]
    assert refused(loaded, *three(seq=7)) == "`seq` = 7 is above 6"
    assert refused(loaded, *three(seq=5)) == "the file takes `seq != 5`, but `seq` = 5"


def test_a_structure_that_speaks_of_other_inputs_is_left_aside(tmp_path):
    call = (Parameter("elsewhere", "both", Slot("gone")),)
    contract = Contract({}, call=call, returns=Branch("list", (), (Slot("gone"),)))
    with pytest.warns(UserWarning, match="does not say where the input `ids` stands"):
        loaded = anyshape.load(stored(tmp_path, THREE, contract))
    assert list(loaded(*three())) == ["y", "z"]


def test_weights_outside_the_file_s_folder_are_refused(tmp_path):
    graph = "g (float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Mul(x, w) }"
    model = onnx.load(stored(tmp_path, graph))
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(np.array([1, 2], np.float32), "w"))
    onnx.save(model, tmp_path / "model.onnx", save_as_external_data=True, location="w.data", size_threshold=0)
    np.testing.assert_array_equal(anyshape.load(tmp_path / "model.onnx")(np.ones(2, np.float32))["y"], [1, 2])
    model = onnx.load(tmp_path / "model.onnx", load_external_data=False)
    model.graph.initializer[0].external_data[0].value = "../w.data"
    onnx.save(model, tmp_path / "model.onnx")
    with pytest.raises(anyshape.DeclarationError, match=r"^`model\.onnx` keeps `w` in `\.\./w\.data`, outside its own"):
        anyshape.load(tmp_path / "model.onnx")


def optimised_by_onnxruntime(source, target):
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(target)
    options.log_severity_level = 4
    onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def optimised_by_onnxscript(source, target):
    optimizer = pytest.importorskip("onnxscript.optimizer")
    onnx.save(optimizer.optimize(onnx.load(source)), target)


def optimised_by_onnxslim(source, target):
    onnxslim = pytest.importorskip("onnxslim")
    onnx.save(onnxslim.slim(onnx.load(source)), target)


def optimised_by_onnxsim(source, target):
    onnxsim = pytest.importorskip("onnxsim")
    onnx.save(onnxsim.simplify(onnx.load(source))[0], target)


@pytest.mark.parametrize(
    "optimise",
    [optimised_by_onnxruntime, optimised_by_onnxscript, optimised_by_onnxslim, optimised_by_onnxsim],
    ids=lambda optimise: optimise.__name__.removeprefix("optimised_by_"),
)
def test_the_contract_outlives_an_optimiser(nested, tmp_path, optimise):
    optimise(nested, tmp_path / "optimised.onnx")
    before, after = anyshape.load(nested), anyshape.load(tmp_path / "optimised.onnx")
    assert after.contract == before.contract
    assert after.inputs == before.inputs
    ids, pair = {"ids": floats(3, 16)}, [floats(3, 16), floats(2)]
    np.testing.assert_allclose(after(ids, pair)["point"].near, before(ids, pair)["point"].near, rtol=1e-6)
    assert refused(after, {"ids": floats(3, 72)}, [floats(3, 72), floats(2)]) == "`seq` = 72 is above 64"


def test_the_contract_says_what_was_checked(nested):
    evidence = anyshape.load(nested).contract.evidence
    assert evidence.sizes >= 4
    assert evidence.ranges["seq"][0] == 8
    assert evidence.ranges["seq"][1] <= 64
    assert evidence.runtime == f"ONNX Runtime {onnxruntime.__version__}"
    assert 0 <= evidence.error <= evidence.allowed


# ---- sessions


def opened_with(monkeypatch, path, **wishes):
    """What reaches ONNX Runtime."""
    seen = {}
    real = onnxruntime.InferenceSession

    def watched(*args, **kwargs):
        seen.update(kwargs, options=args[1])
        return real(*args, **kwargs)

    monkeypatch.setattr(onnxruntime, "InferenceSession", watched)
    anyshape.load(path, **wishes)
    return seen


def test_the_file_s_advice_is_followed_unless_the_caller_says_otherwise(tmp_path, monkeypatch):
    advice = {session_advice.KEY: '{"disabled_optimizers": ["SkipLayerNormFusion"]}'}
    path = stored(tmp_path, THREE, **advice)
    options = onnxruntime.SessionOptions()
    assert opened_with(monkeypatch, path)["disabled_optimizers"] == ["SkipLayerNormFusion"]
    assert opened_with(monkeypatch, path, disabled_optimizers=["GeluFusion"])["disabled_optimizers"] == ["GeluFusion"]
    seen = opened_with(monkeypatch, path, session_options=options)
    assert seen["options"] is options
    assert "disabled_optimizers" not in seen
    for other in ("[]", "{", '{"disabled_optimizers": [3]}'):
        path = stored(tmp_path, THREE, **{session_advice.KEY: other})
        assert "disabled_optimizers" not in opened_with(monkeypatch, path)


def test_a_provider_that_is_not_there_is_not_replaced_in_silence(tmp_path):
    with pytest.raises(anyshape.DeclarationError, match=r"^this ONNX Runtime has no `NoExecutionProvider`, only .*CPU"):
        anyshape.load(stored(tmp_path, THREE), providers=["NoExecutionProvider"])


def test_what_cannot_be_loaded_is_one_sentence(tmp_path):
    with pytest.raises(anyshape.DeclarationError, match=r"^there is no file `.*none\.onnx`$"):
        anyshape.load(tmp_path / "none.onnx")
    path = stored(tmp_path, "g (float[n] x) => (float[n] y) { y = Nothing(x) }")
    with pytest.raises(anyshape.AnyshapeError, match=r"^ONNX Runtime does not load `model\.onnx`: .*Nothing"):
        anyshape.load(path)
