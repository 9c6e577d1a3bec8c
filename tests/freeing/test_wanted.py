from __future__ import annotations

import pytest

from anyshape.errors import DeclarationError
from anyshape.freeing.wanted import declare_free
from anyshape.onnxfile.interface import Interface, Port
from anyshape.sizes.notation import SizeRange

X = Port("x", "float32", (2, 3, 8, 8))
MASK = Port("mask", "int64", (2, 8))
STATE = Port("state", "float32", (4, 2, 6))
BOTH = Interface((X, MASK), ())


def message(dims, sizes=None, interface=BOTH):
    with pytest.raises(DeclarationError) as caught:
        declare_free(interface, dims, sizes)
    return str(caught.value)


@pytest.mark.parametrize(
    "dims",
    [
        {"x": "batch 3 size size", "mask": "batch size"},
        {"x": "batch, _, size, size", "mask": ["batch", "size"]},
        {"x": {0: "batch", 2: "size", -1: "size"}, "ma*": "batch size"},
        {"x": "batch ... size size", "mask": "batch size", "*": "..."},
    ],
)
def test_every_form_of_a_declaration_says_the_same(dims):
    declared = declare_free(BOTH, dims)
    assert declared.wanted == {"x": ("batch", None, "size", "size"), "mask": ("batch", "size")}
    assert declared.sizes == {"batch": 2, "size": 8}
    assert declared.notes == ()


def test_without_a_declaration_the_batch_is_axis_0_of_what_shares_its_size():
    declared = declare_free(Interface((X, MASK, STATE), ()), None)
    assert declared.wanted == {"x": ("batch", None, None, None), "mask": ("batch", None)}
    assert declared.notes == (
        "no dims were declared: `batch` is axis 0 of `x`, `mask`; `state` has 4 there and stays as it is",
    )


def test_an_unnamed_axis_gets_a_name():
    assert declare_free(BOTH, {"mask": "? 8"}).wanted == {"mask": ("mask_dim0", None)}


def test_sizes_say_how_far_a_dim_goes():
    declared = declare_free(BOTH, {"mask": "batch seq"}, {"seq": "1..64"})
    assert declared.ranges == {"batch": SizeRange(), "seq": SizeRange(1, 64)}


@pytest.mark.parametrize(
    ("dims", "sizes", "said"),
    [
        ({"y": "batch"}, None, "`dims` names `y`, but the inputs are `x`, `mask`"),
        ({"masks": "batch 8"}, None, "`dims` names `masks`, but the inputs are `x`, `mask`; did you mean `mask`?"),
        ({"mask": "batch"}, None, "`mask` is declared `batch` but has shape (2, 8) in the file"),
        ({"mask": "batch 9"}, None, "`mask` is declared 9 on axis 1 but has shape (2, 8) in the file"),
        ({"mask": {5: "n"}}, None, "`mask` is declared with an axis 5 but has shape (2, 8) in the file"),
        ({"mask": "n n"}, None, "`n` is 2 on axis 0 of `mask` but 8 on axis 1 of `mask`"),
        ({"mask": "n 8", "x": "n n 8 8"}, None, "`n` is 2 on axis 0 of `mask` but 3 on axis 1 of `x`"),
        ({"mask": "batch past+seq"}, None, "axis 1 of `mask` is declared `past + seq`: give it a name of its own"),
        ({"mask": "2 8"}, None,
         "`dims` names no dim: write the name of each axis that is to be free, such as `batch`"),
        ({"mask": "b 8"}, {"seq": 3}, "sizes given for `seq`, but the dims are `b`"),
        ("batch", None, 'dims is \'batch\': give a dict, such as {"x": "batch 3 224 224"}'),
    ],
)  # fmt: skip
def test_a_wrong_declaration_is_one_sentence_that_names_both_sides(dims, sizes, said):
    assert message(dims, sizes) == said


@pytest.mark.parametrize(
    ("port", "said"),
    [
        (Port("x", "float32", None), "input `x` declares no axes: the file does not say what it was made for"),
        (Port("x", "float32", ("n", None)), "no axis of an input is a number: the file is dynamic already"),
        (Port("x", "float32", (3, -2)), "input `x` declares the size -2"),
    ],
)
def test_a_file_that_is_not_static_is_one_sentence(port, said):
    assert message({"x": "batch _"}, interface=Interface((port,), ())) == said


def test_a_file_without_inputs_or_axes_has_nothing_to_free():
    assert message(None, interface=Interface((), ())) == "the file has no inputs: nothing can be free"
    scalar = Interface((Port("x", "float32", ()),), ())
    assert message(None, interface=scalar) == "no input has an axis: nothing can be free"
