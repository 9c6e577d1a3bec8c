from __future__ import annotations

import inspect
from types import SimpleNamespace

import pytest
import torch
from torch.export import Dim, ShapesCollection
from transformers import DynamicCache

import anyshape
from anyshape.declaration import options
from anyshape.declaration.calls import bind_call
from anyshape.declaration.targets import resolve_target
from anyshape.declaration.torch_forms import from_dynamic_axes, from_dynamic_shapes
from anyshape.errors import DeclarationError
from anyshape.sizes.notation import SizeRange

NAMES = {"x": "x", "tokens": "batch.ids"}


def tensor(*shape):
    return torch.zeros(shape or (2, 3))


def shapes_of(function, dynamic_shapes, args=(), kwargs=None):
    target = resolve_target(function)
    return from_dynamic_shapes(dynamic_shapes, target, bind_call(target, args, kwargs), args, kwargs)


def two(x, y=None, z=None):
    return x


def nested(batch, states=None, *rest, flag=None, **others):
    return batch


# ---- dynamic_axes

CALL = bind_call(resolve_target(lambda x, batch: x), (tensor(2, 3), {"ids": tensor(2, 2, 3)}))


def test_dicts_and_lists_of_axes_are_read():
    declared = from_dynamic_axes({"x": {0: "batch", -1: "seq"}, "tokens": [0, 2]}, NAMES, CALL)
    assert declared.dims == {"x": {0: "batch", -1: "seq"}, "batch.ids": {0: None, 2: None}}
    assert declared.notes == []


def test_what_is_no_input_labels_an_output():
    declared = from_dynamic_axes({"x": {0: "batch"}, "out": {0: "batch", 1: "len"}, "raw": [0]}, NAMES, CALL)
    assert declared.dims == {"x": {0: "batch"}}
    assert declared.labels == {"out": {0: "batch", 1: "len"}, "raw": {0: "raw_dim0"}}


@pytest.mark.parametrize(
    ("axes", "sentence"),
    [
        (
            {"x": {0: "n"}, "tokens": {2: "n"}},
            "`n` names axis 0 of `x`, 2 in the example, and axis 2 of `batch.ids`, 3: to torch that is a label, here "
            "one name is one size; call the second `n_batch_ids`, or give an example where both are alike",
        ),
        (
            {"tokens": {0: "n", -1: "n"}},
            "`n` names axis 0 of `batch.ids`, 2 in the example, and axis -1 of `batch.ids`, 3: to torch that is a "
            "label, here one name is one size; call the second `n_2`, or give an example where both are alike",
        ),
    ],
)
def test_one_name_for_two_sizes_is_no_label(axes, sentence):
    with pytest.raises(DeclarationError) as caught:
        from_dynamic_axes(axes, NAMES, CALL)
    assert str(caught.value) == sentence


def test_one_name_for_two_sizes_is_no_label_in_dynamic_shapes_either():
    with pytest.raises(DeclarationError, match="`n` names axis 0 of `x`, 2 in the example, and axis 1 of `x`, 4: to"):
        shapes_of(two, {"x": {0: "n", 1: "n"}}, (tensor(2, 4),))


@pytest.mark.parametrize(
    ("name", "called"),
    [
        ("batch size", "batch_size"),
        ("batch-size", "batch_size"),
        ("1st", "dim_1st"),
        ("3", "dim_3"),
        ("?", "dim__"),
        ("_", "dim__"),
        ("lambda", "dim_lambda"),
        ("max", "dim_max"),
        ("height / 2", "height___2"),
        (0, "dim_0"),
    ],
)
def test_any_text_is_the_name_of_a_dim_that_varies(name, called):
    declared = from_dynamic_axes({"x": {0: name}, "tokens": {1: name}}, NAMES, CALL)
    assert declared.dims == {"x": {0: called}, "batch.ids": {1: called}}
    assert declared.notes == [f"the dim `{name}` is called `{called}` in the file"]


def test_text_is_an_expression_only_if_its_names_stand_alone_elsewhere():
    axes = {"x": {0: "past", 1: "seq"}, "tokens": {1: "past + seq", 0: "other-thing"}}
    declared = from_dynamic_axes(axes, NAMES, CALL)
    assert declared.dims["batch.ids"] == {1: "past + seq", 0: "other_thing"}


@pytest.mark.parametrize("axes", ["batch", 3, None])
def test_what_says_no_axes_is_refused(axes):
    with pytest.raises(DeclarationError) as caught:
        from_dynamic_axes({"x": axes}, NAMES, CALL)
    assert str(caught.value) == f'`dynamic_axes` has {axes!r} for `x`: write {{0: "batch"}} or a list of axes'


# ---- dynamic_shapes

batch, seq = Dim("batch", min=2, max=64), Dim("seq", max=512)


@pytest.mark.parametrize(
    "dynamic_shapes",
    [
        {"x": {0: "batch"}, "y": {0: "batch", 1: "seq"}},
        {"y": {1: "seq", 0: "batch"}, "x": {0: "batch"}},
        ({0: "batch"}, {0: "batch", 1: "seq"}),
        [{0: "batch"}, ("batch", "seq")],
        (("batch", None), ["batch", "seq"]),
    ],
)
def test_dicts_tuples_and_lists_say_the_same(dynamic_shapes):
    declared = shapes_of(two, dynamic_shapes, (tensor(), tensor()))
    assert declared.dims == {"x": {0: "batch"}, "y": {0: "batch", 1: "seq"}}


def test_a_dim_brings_its_bounds():
    declared = shapes_of(two, {"x": {0: batch, 1: seq}, "y": {0: Dim("free")}}, (tensor(), tensor()))
    assert declared.dims == {"x": {0: "batch", 1: "seq"}, "y": {0: "free"}}
    assert declared.sizes == {"batch": SizeRange(2, 64), "seq": SizeRange(1, 512)}


def test_a_derived_dim_is_an_expression_of_its_root():
    declared = shapes_of(two, {"x": {0: batch}, "y": {0: 2 * batch + 1}}, (tensor(), tensor(5, 3)))
    assert declared.dims["y"] == {0: "2 * batch + 1"}
    assert declared.sizes == {"batch": SizeRange(2, 64)}


def test_hints_numbers_and_none_are_told_apart():
    declared = shapes_of(two, {"x": (Dim.DYNAMIC, Dim.AUTO, Dim.STATIC, None, 7)}, (tensor(2, 2, 2, 2, 7),))
    assert declared.dims == {"x": {0: None, 1: None, 2: "_", 4: 7}}


def test_a_hint_may_have_bounds():
    declared = shapes_of(two, {"x": {0: Dim.DYNAMIC(min=2, max=8), 1: Dim.AUTO(max=5)}}, (tensor(),))
    assert declared.dims == {"x": {0: None, 1: None}}
    assert declared.sizes == {"x_dim0": SizeRange(2, 8), "x_dim1": SizeRange(1, 5)}


@pytest.mark.parametrize("entry", [None, {}, (), Dim.STATIC])
def test_a_tensor_without_dims_is_static(entry):
    assert shapes_of(two, {"x": entry}, (tensor(),)).dims == {"x": {}}


def test_none_holds_its_place_among_positions_and_in_lists():
    declared = shapes_of(two, (None, None, {0: "n"}), (tensor(), None, tensor()))
    assert declared.dims == {"x": {}, "z": {0: "n"}}
    declared = shapes_of(nested, ({0: "a"}, [None, {0: "n"}]), (tensor(), [None, tensor()]))
    assert declared.dims == {"batch": {0: "a"}, "states.1": {0: "n"}}


def test_nested_inputs_are_declared_as_they_are_nested():
    args = ({"ids": tensor(), "mask": tensor()}, [(tensor(), tensor()), tensor()])
    shapes = {"batch": {"ids": {0: "b"}, "mask": None}, "states": [({0: "b"}, None), {1: "n"}]}
    assert shapes_of(nested, shapes, args).dims == {
        "batch.ids": {0: "b"}, "batch.mask": {}, "states.0.0": {0: "b"}, "states.0.1": {}, "states.1": {1: "n"},
    }  # fmt: skip


def test_keywords_in_a_tuple_stand_in_the_order_of_the_signature():
    declared = shapes_of(two, ({0: "a"}, {0: "b"}), (), {"y": tensor(), "x": tensor()})
    assert declared.dims == {"x": {0: "a"}, "y": {0: "b"}}


def test_further_arguments_are_declared_under_their_own_name():
    args, kwargs = (tensor(), None, tensor(), tensor()), {"flag": tensor(), "extra": tensor()}
    shapes = ({0: "a"}, None, ({0: "b"}, {0: "c"}), {0: "d"}, {0: "e"})
    declared = shapes_of(nested, shapes, args, kwargs)
    assert declared.dims == {
        "batch": {0: "a"},
        "rest.0": {0: "b"},
        "rest.1": {0: "c"},
        "flag": {0: "d"},
        "extra": {0: "e"},
    }


@pytest.mark.parametrize(
    "form",
    [
        lambda k, v: [[k, k], [v, v]],
        lambda k, v: {"key_cache": [k, k], "value_cache": [v, v]},
        lambda k, v: [k, v, k, v],
        lambda k, v: {"0": {"key": k, "value": v}, "1": {"key": k, "value": v}},
    ],
)
def test_a_cache_is_declared_in_every_form_that_is_in_use(form):
    cache = DynamicCache()
    for index in range(2):
        cache.update(tensor(1, 2, 3, 4), tensor(1, 2, 3, 4), index)
    declared = shapes_of(nested, (None, form({0: "b", 2: "past"}, {2: "past"})), (tensor(), cache))
    assert declared.dims == {"batch": {}} | {
        f"states.{i}.{kind}": axes
        for i in (0, 1)
        for kind, axes in (("key", {0: "b", 2: "past"}), ("value", {2: "past"}))
    }


def test_a_cache_of_one_layer_is_declared_as_two_lists():
    cache = DynamicCache()
    cache.update(tensor(1, 2, 3, 4), tensor(1, 2, 3, 4), 0)
    declared = shapes_of(nested, {"states": [[{2: "past"}], [{2: "past"}]]}, (tensor(), cache))
    assert declared.dims == {"states.0.key": {2: "past"}, "states.0.value": {2: "past"}}


def test_a_number_that_may_vary_is_an_input():
    declared = shapes_of(two, {"x": None, "y": Dim.DYNAMIC, "z": None}, (tensor(), 5, 6))
    assert declared.dims == {"x": {}, "y": ""}


def test_a_collection_of_shapes_is_read():
    x = tensor()
    collection = ShapesCollection()
    collection[x] = {0: batch}
    target = resolve_target(torch.nn.Linear(3, 2))
    declared = from_dynamic_shapes(collection, target, bind_call(target, (x,)), (x,), None)
    assert declared.dims == {"input": {0: "batch"}}


@pytest.mark.parametrize(
    ("dynamic_shapes", "message"),
    [
        ({"xs": {0: "b"}}, "`dynamic_shapes` names `xs`, but the inputs are `x`, `y`; did you mean `x`?"),
        ({0: "b"}, "`dynamic_shapes` names `0`, but the inputs are `x`, `y`"),
        (({0: "b"},), "`dynamic_shapes` has 1 entries, but the call passes `x`, `y`"),
        (({0: "b"}, None, None), "`dynamic_shapes` has 3 entries, but the call passes `x`, `y`"),
        ("batch", "`dynamic_shapes` is 'batch': give a dict by input or a tuple in their order"),
        ({"x": "batch"}, "`dynamic_shapes` has 'batch' for the tensor `x`: write {axis: Dim} or a tuple"),
        ({"x": {0: 1.5}}, "`dynamic_shapes` holds 1.5, which is neither a Dim, a name nor None"),
        ({"y": {"b": {0: "n"}}}, "`dynamic_shapes` names `y.b`, but the inputs are `x`, `y`; did you mean `y`?"),
        ({"y": "n"}, "`dynamic_shapes` has 'n' for `y`, which holds 1 inputs"),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_call_is_refused_with_a_sentence(dynamic_shapes, message):
    with pytest.raises(DeclarationError) as caught:
        shapes_of(two, dynamic_shapes, (tensor(), {"a": tensor()}))
    assert str(caught.value) == message


# ---- the other arguments of torch.onnx.export


def test_every_argument_of_torch_is_honoured_ignored_or_refused():
    ours = inspect.signature(anyshape.export).parameters
    theirs = set(inspect.signature(torch.onnx.export).parameters) - {"kwargs"}
    known = set(ours) | set(options.TORCH_ARGUMENTS)
    assert theirs - known == set()
    assert {a.treatment for a in options.TORCH_ARGUMENTS.values()} == {"ignored", "refused"}


def test_the_names_that_are_offered_for_a_typing_error_exist():
    assert set(options._OWN) <= set(inspect.signature(anyshape.export).parameters)


def test_defaults_of_torch_are_silent():
    parameters = inspect.signature(torch.onnx.export).parameters
    defaults = {name: parameters[name].default for name in options.TORCH_ARGUMENTS if name in parameters}
    assert options.notes_on(defaults) == []


@pytest.mark.parametrize(
    ("arguments", "notes"),
    [
        ({"dynamo": False},
         ["dynamo=False is ignored: both of torch's exporters are tried and the one that is right is kept"]),
        ({"profile": True, "report": True},
         ["profile=True is ignored: the result holds the seconds", "report=True is ignored: the result is the report"]),
        ({"do_constant_folding": False}, ["do_constant_folding=False is ignored: constants are always folded"]),
        ({"verbose": True, "verify": True, "fallback": True, "dynamo": True}, []),
        ({"training": SimpleNamespace(value=0)}, []),
    ],
)  # fmt: skip
def test_what_is_ignored_although_it_asks_for_something_gets_a_note(arguments, notes):
    assert options.notes_on(arguments) == notes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"export_params": False}, "export_params=False: a file without its weights cannot be checked"),
        (
            {"keep_initializers_as_inputs": True},
            "keep_initializers_as_inputs=True: weights that a caller may replace cannot be checked",
        ),
        ({"dim": 3}, "export() has no argument `dim`; did you mean `dims`?"),
        ({"dynamic_axis": 3}, "export() has no argument `dynamic_axis`; did you mean `dynamic_axes`?"),
    ],
)
def test_what_is_refused_gets_one_sentence(arguments, message):
    with pytest.raises(DeclarationError) as caught:
        options.notes_on(arguments)
    assert str(caught.value) == message


def test_training_mode_is_refused():
    with pytest.raises(DeclarationError, match="models are exported and compared in eval mode"):
        options.notes_on({"training": torch.onnx.TrainingMode.TRAINING})
    assert options.notes_on({"training": torch.onnx.TrainingMode.EVAL}) == []
