from __future__ import annotations

import pytest
import torch

from anyshape.declaration.calls import bind_call
from anyshape.declaration.spec import declare, mentioned, solve
from anyshape.declaration.targets import resolve_target
from anyshape.errors import DeclarationError
from anyshape.sizes.notation import SizeRange, parse_expression


def signature_of(**values):
    """A call with these leaves; tuples of numbers stand for tensors of that shape."""

    def model(**kwargs):
        return kwargs

    return bind_call(resolve_target(model), (), {k: as_value(v) for k, v in values.items()})


def as_value(value):
    if isinstance(value, dict):
        return {key: as_value(part) for key, part in value.items()}
    if isinstance(value, list):
        return [as_value(part) for part in value]
    return torch.zeros(value) if isinstance(value, tuple) else value


def declared(dims, sizes=None, known=None, **values):
    return declare(signature_of(**values), dims, sizes, known=known)


def row(spec, leaf):
    return [None if e is None else str(e) for e in spec.axes[leaf]]


def message_of(dims, sizes=None, known=None, **values):
    with pytest.raises(DeclarationError) as caught:
        declared(dims, sizes, known, **values)
    return str(caught.value)


# ---- forms


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("batch seq 10", ["batch", "seq", None]),
        ("batch, seq, 10", ["batch", "seq", None]),
        (["batch", "seq", 10], ["batch", "seq", None]),
        (("batch", None, 10), ["batch", "x_dim1", None]),
        ("batch ? _", ["batch", "x_dim1", None]),
        ("batch ...", ["batch", None, None]),
        ("... seq _", [None, "seq", None]),
        ("batch ... 10", ["batch", None, None]),
        ("...", [None, None, None]),
        ("batch ... seq 10", ["batch", "seq", None]),
        ("batch 2*half 4+6", ["batch", "2 * half", None]),
        ({0: "batch", 2: 10}, ["batch", None, None]),
        ({-2: "seq"}, [None, "seq", None]),
        ({1: None}, [None, "x_dim1", None]),
        ({}, [None, None, None]),
        (None, [None, None, None]),
    ],
)
def test_every_form_of_declaration_gives_its_axes(form, expected):
    spec = declared({"x": form}, x=(2, 8, 10))
    assert row(spec, "x") == expected
    assert set(spec.ranges) == {name for e in expected if e for name in parse_expression(e).names}


def test_what_is_absent_from_dims_is_static():
    spec = declared({"x": "batch 3"}, x=(2, 3), y=(2, 5), n=4)
    assert row(spec, "y") == [None, None]
    assert spec.constants == {"n": 4}
    assert declared({}, x=(2, 3)).dims == ()


def test_same_name_in_two_inputs_is_one_size():
    spec = declared({"x": "batch seq", "y": "batch _"}, x=(2, 8), y=(2, 3))
    assert spec.example == {"batch": 2, "seq": 8}
    assert spec.dims == ("batch", "seq")


def test_a_shape_follows_the_sizes():
    spec = declared({"x": "batch past+seq 7"}, x=(2, 8, 7), known={"past": 3, "seq": 5})
    assert spec.shape("x", {"batch": 4, "past": 6, "seq": 1}, (2, 8, 7)) == (4, 7, 7)


# ---- which declaration belongs to which leaf


def test_wildcards_spread_over_leaves_and_the_most_exact_key_wins():
    cache = [{"key": (2, 4, 3, 8), "value": (2, 4, 3, 8)} for _ in range(2)]
    dims = {"past.0.key": "batch 4 first 8", "past.*.key": "batch 4 past 8", "past.*": "batch ..."}
    spec = declared(dims, past=cache)
    assert row(spec, "past.0.key") == ["batch", None, "first", None]
    assert row(spec, "past.1.key") == ["batch", None, "past", None]
    assert row(spec, "past.1.value") == ["batch", None, None, None]


@pytest.mark.parametrize("order", [("a.*", "a.*.key"), ("a.*.key", "a.*")])
def test_the_order_of_wildcards_does_not_matter(order):
    texts = {"a.*": "n _", "a.*.key": "m _"}
    spec = declared({key: texts[key] for key in order}, a=[{"key": (2, 3)}])
    assert row(spec, "a.0.key") == ["m", None]


def test_the_name_of_a_container_stands_for_its_tensors():
    spec = declared({"states": "layers batch 4"}, states=[(1, 2, 4), (1, 2, 4)], x=(2, 3))
    assert row(spec, "states.0") == row(spec, "states.1") == ["layers", "batch", None]
    assert row(spec, "x") == [None, None]


def test_a_nested_declaration_is_read_like_the_input():
    spec = declared(
        {"batch": {"ids": "n seq", "deep": {"mask": "n seq"}}}, batch={"ids": (2, 5), "deep": {"mask": (2, 5)}}
    )
    assert row(spec, "batch.ids") == row(spec, "batch.deep.mask") == ["n", "seq"]


def test_a_wildcard_leaves_numbers_alone():
    spec = declared({"*": "batch ..."}, x=(2, 3), n=4, scale=0.5, flag=True)
    assert spec.constants == {"n": 4, "scale": 0.5, "flag": True}


# ---- numbers


@pytest.mark.parametrize("form", ["", None, "?", "keep", {}, [], ()])
def test_a_declared_int_is_an_input_that_follows_its_own_name(form):
    spec = declared({"keep": form}, x=(2, 3), keep=4)
    assert spec.scalars == {"keep": parse_expression("keep")}
    assert spec.example == {"keep": 4}
    assert spec.constants == {}


def test_a_declared_int_may_follow_dims():
    spec = declared({"x": "batch seq", "total": "batch*seq"}, x=(2, 8), total=16)
    assert spec.scalars == {"total": parse_expression("batch * seq")}
    assert spec.inputs(signature_of(x=(2, 8), total=16)) == ("x", "total")


@pytest.mark.parametrize("form", ["", None, "?", "scale"])
def test_a_declared_float_is_an_input(form):
    spec = declared({"scale": form}, x=(2, 3), scale=0.5)
    assert spec.floats == ("scale",)
    assert spec.constants == {}


# ---- sizes


def test_a_dim_without_sizes_starts_at_one_and_at_zero_if_the_example_is_empty():
    spec = declared({"x": "batch past"}, x=(2, 0))
    assert spec.ranges == {"batch": SizeRange(lo=1), "past": SizeRange(lo=0)}
    assert spec.explicit == frozenset()


def test_sizes_are_kept_with_what_the_user_wrote():
    spec = declared({"x": "batch seq"}, {"seq": "1..512"}, x=(2, 8))
    assert spec.ranges == {"batch": SizeRange(lo=1), "seq": SizeRange(1, 512)}
    assert spec.explicit == {"seq"}


def test_an_example_outside_the_sizes_is_a_note_not_an_error():
    spec = declared({"x": "batch seq"}, {"seq": "32..1024 step 32", "batch": [1, 4]}, x=(3, 40))
    assert spec.notes == (
        "the example's `batch` = 3 lies outside {1, 4}; 4 is used",
        "the example's `seq` = 40 lies outside 32..1024 step 32; 32 is used",
    )


# ---- expressions are solved


@pytest.mark.parametrize(
    ("text", "shape", "expected"),
    [
        ("past past+seq", (3, 8), {"past": 3, "seq": 5}),
        ("past+seq seq", (8, 5), {"seq": 5, "past": 3}),
        ("2*n", (8,), {"n": 4}),
        ("n//2+1", (5,), {"n": 8}),
        ("n//2+1 2*n", (5, 18), {"n": 9}),
        ("h h*w", (4, 12), {"h": 4, "w": 3}),
        ("g*g", (16,), {"g": 4}),
        ("a b a*b+c", (2, 3, 10), {"a": 2, "b": 3, "c": 4}),
        ("min(n,50)", (20,), {"n": 20}),
        ("n//100", (300,), {"n": 30000}),
        ("n*160", (480000,), {"n": 3000}),
        ("2*n+1", (200001,), {"n": 100000}),
        ("n-4", (10,), {"n": 14}),
        ("100-n", (10,), {"n": 90}),
        ("n%7+n", (12,), {"n": 6}),
    ],
)
def test_an_expression_with_one_unknown_is_solved(text, shape, expected):
    equations = [
        (f"axis {i}", parse_expression(t), n) for i, (t, n) in enumerate(zip(text.split(), shape, strict=True))
    ]
    assert solve(equations) == expected


def test_what_make_inputs_was_called_with_needs_no_solving():
    assert declared({"x": "h*w c"}, known={"h": 3, "w": 4, "unused": 9}, x=(12, 5)).example == {"h": 3, "w": 4, "c": 5}


def test_a_declaration_names_its_dims_before_any_example():
    dims = {"x": "batch past+seq _ ? 3", "y": {0: "batch", 2: "extra"}, "z": {"ids": ["n", None]}, "t": None}
    assert mentioned(dims) == ("batch", "past", "seq", "extra", "n")


# ---- contradictions, read whole


@pytest.mark.parametrize(
    ("dims", "values", "message"),
    [
        (
            {"x": "batch seq 10"},
            {"x": (3, 5)},
            "`x` is declared `batch seq 10` but the example has shape (3, 5)",
        ),
        (
            {"x": "... batch ..."},
            {"x": (3, 5)},
            "`x` is declared `... batch ...` but the example has shape (3, 5)",
        ),
        (
            {"x": "a b ... c"},
            {"x": (3, 5)},
            "`x` is declared `a b ... c` but the example has shape (3, 5)",
        ),
        (
            {"x": ["batch", None, ..., 4, "seq"]},
            {"x": (3, 5, 4)},
            "`x` is declared `batch ? ... 4 seq` but the example has shape (3, 5, 4)",
        ),
        (
            {"x": "batch 7"},
            {"x": (3, 5)},
            "`x` is declared `batch 7`, 7 on axis 1, but the example has shape (3, 5)",
        ),
        (
            {"x": {0: "batch", 1: 7}},
            {"x": (3, 5)},
            "`x` is declared `{0: 'batch', 1: 7}`, 7 on axis 1, but the example has shape (3, 5)",
        ),
        (
            {"x": {2: "batch"}},
            {"x": (3, 5)},
            "`x` is declared with an axis 2 but the example has shape (3, 5)",
        ),
        (
            {"x": "batch seq", "y": "batch seq"},
            {"x": (3, 5), "y": (4, 5)},
            "`batch` is 3 on axis 0 of `x` but 4 on axis 0 of `y`",
        ),
        (
            {"x": "batch batch"},
            {"x": (3, 5)},
            "`batch` is 3 on axis 0 of `x` but 5 on axis 1 of `x`",
        ),
        (
            {"x": "past seq past+seq"},
            {"x": (3, 5, 9)},
            "axis 2 of `x` is 9 in the example, but `past + seq` is 8 with past = 3, seq = 5",
        ),
        (
            {"x": "2*n"},
            {"x": (7,)},
            "axis 0 of `x` is 7 in the example, but no whole `n` gives `2 * n` = 7",
        ),
        (
            {"x": "g*g"},
            {"x": (15,)},
            "axis 0 of `x` is 15 in the example, but no whole `g` gives `g * g` = 15",
        ),
        (
            {"x": "h*w"},
            {"x": (12,)},
            "axis 0 of `x` is `h * w` = 12, which leaves `h`, `w` open: "
            "name one of them on an axis of its own, or give make_inputs=",
        ),
        (
            {"x": "n//2+1 2*n"},
            {"x": (5, 20)},
            "axis 1 of `x` is 20 in the example, but `2 * n` is 16 with n = 8",
        ),
        (
            {"x": "n 8//n"},
            {"x": (0, 8)},
            "axis 1 of `x` is 8 in the example, but `8 // n` divides by zero with n = 0",
        ),
        (
            {"tokens": "batch seq", "lengths": "batch"},
            {"tokens": (2, 5), "length": (2,)},
            "`dims` names `lengths`, but the inputs are `tokens`, `length`; did you mean `length`?",
        ),
        ({0: "batch"}, {"x": (2,)}, "`dims` names `0`, but the inputs are `x`"),
        ({"past.*": "batch"}, {"x": (2,)}, "`dims` names `past.*`, but the inputs are `x`"),
        (
            {"n": "batch seq"},
            {"n": 4},
            "`n` is a number and has no axes, but is declared `batch seq`: write \"\" or the size that it follows",
        ),
        (
            {"n": {0: "batch"}},
            {"n": 4},
            "`n` is a number and has no axes, but is declared `{0: 'batch'}`: write \"\" or the size that it follows",
        ),
        (
            {"n": "5"},
            {"n": 4},
            "`n` is a number and has no axes, but is declared `5`: write \"\" or the size that it follows",
        ),
        (
            {"x": "batch", "n": "batch"},
            {"x": (3,), "n": 4},
            "`batch` is 3 on axis 0 of `x` but 4 on `n`",
        ),
        (
            {"scale": "batch"},
            {"scale": 0.5},
            "`scale` is a float and follows no dim, but is declared `batch`: write \"\" to make it an input",
        ),
        ({"flag": ""}, {"flag": True}, "`flag` is True, which becomes part of the file: leave it out of `dims`"),
    ],
)  # fmt: skip
def test_a_contradiction_names_both_sides(dims, values, message):
    assert message_of(dims, **values) == message


def test_a_size_that_make_inputs_was_called_with_must_be_that_of_the_axis():
    message = message_of({"x": "batch"}, known={"batch": 3}, x=(4,))
    assert message == "`batch` is 3 in the call of make_inputs but 4 on axis 0 of `x`"


def test_sizes_of_an_unknown_dim_name_the_known_ones():
    message = message_of({"x": "batch seq"}, {"sequence": "1..5"}, x=(2, 5))
    assert message == "sizes given for `sequence`, but the shapes only name `batch`, `seq`; did you mean `seq`?"
    assert message_of({}, {"seq": 5}, x=(2, 5)) == "sizes given for `seq`, but no axis is dynamic"
