"""Nothing was declared: where dims come from is said first."""

from __future__ import annotations

import random

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import anyshape
from anyshape.declaration.calls import bind_call
from anyshape.declaration.spec import declare, solve
from anyshape.declaration.targets import resolve_target
from anyshape.errors import DeclarationError
from anyshape.model.proposal.given_calls import best_call, read_calls
from anyshape.model.proposal.undeclared import (
    by_input,
    follows_by_name,
    propose,
    propose_from_calls,
    propose_from_make_inputs,
)
from anyshape.sizes import budgets
from tests import cases

TARGET = resolve_target(nn.Linear(4, 3))


def calls(*sizes):
    return tuple(bind_call(TARGET, (torch.randn(*size, 4),)) for size in sizes)


@pytest.mark.parametrize(
    ("signatures", "make_inputs", "known", "source"),
    [
        (calls((2, 5)), None, None, "nothing was declared: dims were found by probing"),
        (calls((2, 5), (3, 7)), None, None, "dims were found from 2 calls"),
        (calls((2, 5)), lambda n, m: torch.randn(n, m, 4), {"n": 2, "m": 5}, "dims are the parameters of make_inputs"),
    ],
)
def test_the_first_note_says_where_the_dims_come_from(signatures, make_inputs, known, source):
    found = propose(TARGET, signatures, make_inputs, known)
    assert found.notes[0] == f"{source}; declare dims= to say otherwise"
    assert [entry == "_" for entry in found.dims["input"]] == [False, False, True]


def test_axes_are_expressions_of_the_parameters_of_make_inputs():
    target = resolve_target(lambda x, y, z: x)

    def make_inputs(batch, seq, unused=3):
        return torch.zeros(batch, 2 * seq), torch.zeros(batch, batch + seq), torch.zeros(7)

    found = propose_from_make_inputs(target, make_inputs, {"batch": 2, "seq": 5, "unused": 3})
    assert found.dims == {"x": ("batch", "2 * seq"), "y": ("batch", "batch + seq")}
    assert list(found.basis) == ["batch", "seq"]


def test_sizes_that_make_inputs_refuses_are_left_out():
    target = resolve_target(lambda x: x)

    def make_inputs(n):
        if n > 6:
            raise ValueError
        return torch.zeros(n, n + 1)

    assert propose_from_make_inputs(target, make_inputs, {"n": 3}).dims == {"x": ("n", "n + 1")}


def test_an_axis_that_follows_no_known_formula_is_told():
    target = resolve_target(lambda x: x)
    with pytest.raises(DeclarationError) as caught:
        propose_from_make_inputs(target, lambda n: torch.zeros(2**n), {"n": 3})
    assert str(caught.value) == "axis 0 of `x` moves with the sizes of make_inputs in no way that is known: give dims="


# ---- several calls


def module(forward, **parts):
    made = type("Model", (nn.Module,), {"forward": forward})()
    for name, part in parts.items():
        setattr(made, name, part)
    return made.eval()


def proposed(model, *calls):
    target = resolve_target(model)
    return propose_from_calls(target, read_calls(target, calls))


def rows(*shape):
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape) / 8


# ---- what is found


def test_what_differs_is_dynamic_and_what_moves_alike_is_one_dim():
    def forward(self, tokens, weights):
        return self.table(tokens) * weights.unsqueeze(-1)

    model = module(forward, table=nn.Embedding(9, 4))
    found = proposed(model, (torch.ones(2, 5).long(), rows(2, 5)), (torch.ones(3, 7).long(), rows(3, 7)))
    assert dict(found.dims) == {"tokens": ("batch", "seq"), "weights": ("batch", "seq")}
    assert dict(found.sizes) == {}
    assert dict(found.basis) == {"batch": "2 and 3 in the calls", "seq": "5 and 7 in the calls"}
    assert found.notes == ()


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8)

    def forward(self, ids, attention_mask, past):
        query = self.embed(ids)
        keys = torch.cat([past, query], dim=1)
        seen = attention_mask[:, None, : keys.shape[1]]  # a longer mask is taken, too
        return F.scaled_dot_product_attention(query, keys, keys, attn_mask=seen.bool())


def step(batch, seq, past):
    return torch.ones(batch, seq).long(), torch.ones(batch, past + seq).long(), rows(batch, past, 8)


@pytest.mark.parametrize(
    "sizes",
    [[(2, 3, 5), (3, 4, 9)], [(2, 4, 4), (3, 6, 6)], [(2, 3, 5), (3, 2, 6)], [(2, 3, 0), (3, 4, 6), (1, 1, 7)]],
    ids=["different", "equal", "a mask that stands still", "an empty past"],
)
def test_a_mask_covers_past_and_sequence(sizes):
    found = proposed(Decoder(), *(step(*one) for one in sizes))
    assert dict(found.dims) == {
        "ids": ("batch", "seq"),
        "attention_mask": ("batch", "past + seq"),
        "past": ("batch", "past", "_"),
    }
    assert dict(found.sizes) == ({"past": "0.."} if sizes[0][2] == 0 else {})


def test_a_mask_covers_the_past_and_what_stands_still():
    found = proposed(Decoder(), step(2, 3, 5), step(4, 3, 9))
    assert found.dims["attention_mask"] == ("batch", "past + 3")


FOLLOWING = {
    "n + 1": (lambda self, x, y: x + y[:, 1:], lambda n: (rows(2, n), rows(2, n + 1)), [4, 7]),
    "2 * n": (lambda self, x, y: x + y[:, ::2] + y[:, 1::2], lambda n: (rows(2, n), rows(2, 2 * n)), [3, 5]),
    "n // 2 + 1": (
        lambda self, x, y: torch.fft.rfft(x).abs() * y,
        lambda n: (rows(2, n), rows(2, n // 2 + 1)),
        [9, 16],
    ),
}


@pytest.mark.parametrize("text", FOLLOWING)
def test_a_size_that_follows_another_is_written_as_its_expression(text):
    forward, call, sizes = FOLLOWING[text]
    found = proposed(module(forward), *map(call, sizes))
    assert dict(found.dims) == {"x": ("_", "seq"), "y": ("_", text.replace("n", "seq"))}


def test_a_product_of_two_sizes_is_written_as_such():
    def forward(self, tokens, image):
        return tokens.view(image.shape) + image

    found = proposed(module(forward), (rows(2, 12), rows(2, 3, 4)), (rows(3, 10), rows(3, 5, 2)))
    height, width = found.dims["image"][1:]
    assert found.dims["tokens"] == ("batch", f"{height} * {width}")


def test_a_square_of_tokens_gets_a_side():
    def forward(self, tokens):
        side = int(tokens.shape[1] ** 0.5)
        return tokens.view(-1, side, side, 4).mean(1)

    found = proposed(module(forward), (rows(2, 16, 4),), (rows(3, 25, 4),))
    assert dict(found.dims) == {"tokens": ("batch", "seq_side * seq_side", "_")}


def test_the_step_is_the_models_and_not_the_calls():
    def forward(self, x):
        return x.view(len(x), -1, 4).mean(2)

    found = proposed(module(forward), (rows(2, 16),), (rows(3, 40),))
    assert dict(found.dims) == {"x": ("batch", "seq")}
    assert dict(found.sizes) == {"seq": "4.. step 4"}


def test_height_and_width_that_are_equal_in_all_calls_are_two_dims():
    model = nn.Conv2d(3, 2, 3)
    found = proposed(model, (rows(2, 3, 16, 16),), (rows(4, 3, 24, 24),))
    assert dict(found.dims) == {"input": ("batch", "_", "height", "width")}


def test_a_square_matrix_is_one_dim():
    def forward(self, matrix):
        return torch.linalg.det(matrix)

    found = proposed(module(forward), (rows(2, 3, 3),), (rows(4, 5, 5),))
    assert found.dims["matrix"][1] == found.dims["matrix"][2]


# ---- numbers


def test_a_number_that_moves_with_a_size_follows_it_and_one_that_moves_alone_is_an_input():
    def forward(self, x, length, keep=2, scale=1.0):
        return x.view(-1, length)[:, :keep] * scale

    first = {"x": rows(3, 6), "length": 6, "keep": 2, "scale": 1.0}
    second = {"x": rows(4, 9), "length": 9, "keep": 5, "scale": 0.5}
    found = proposed(module(forward), first, second)
    assert dict(found.dims) == {"x": ("batch", "seq"), "length": ("seq",), "keep": ("keep",), "scale": ()}


def test_a_number_that_a_size_bounds_is_not_tied_to_it():
    def forward(self, x, k):
        return x.topk(k).values

    found = proposed(module(forward), (rows(3, 4), 2), (rows(5, 16), 8))
    assert dict(found.dims) == {"x": ("batch", "seq"), "k": ("k",)}


def test_numbers_that_say_how_a_size_is_divided_make_their_product():
    def forward(self, x, h, w):
        return x.view(len(x), h, w).sum(2)

    found = proposed(module(forward), (rows(2, 12), 3, 4), (rows(4, 10), 5, 2))
    assert dict(found.dims) == {"x": ("batch", "h * w"), "h": ("h",), "w": ("w",)}


def test_a_number_that_stands_still_is_part_of_the_file():
    found = proposed(module(lambda self, x, keep: x[:, :keep]), (rows(3, 6), 2), (rows(4, 9), 2))
    assert dict(found.dims) == {"x": ("batch", "seq")}


# ---- what is said aloud


def test_an_axis_that_stands_still_is_static_with_a_note_where_the_model_lets_it_vary():
    found = proposed(nn.Linear(3, 2), (rows(2, 5, 3),), (rows(2, 7, 3),))
    assert dict(found.dims) == {"input": ("_", "seq", "_")}
    assert found.notes == (
        "axis 0 of `input` is 2 in all calls, so the file has it fixed, though the model takes others: "
        "pass a call in which it differs, if it varies",
    )


def test_inputs_of_equal_lengths_share_a_dim_with_a_note_where_the_model_takes_them_apart():
    def forward(self, src, tgt, src_mask):
        return (src * src_mask).sum(1) + tgt.sum(1)

    def call(batch, length):
        return rows(batch, length), rows(batch, length), torch.ones(batch, length)

    found = proposed(module(forward), call(2, 5), call(3, 7))
    assert found.dims["src"] == found.dims["tgt"] == found.dims["src_mask"]
    name = found.dims["src"][1]
    assert found.notes == (
        f"axis 1 of `src`, `src_mask` and axis 1 of `tgt` are equal in all calls and share `{name}`, "
        "though the model takes them apart: pass a call in which they differ, if they may",
    )


def test_a_third_call_settles_what_two_leave_open():
    def forward(self, src, tgt):
        return src.sum(1) + tgt.sum(1)

    found = proposed(module(forward), (rows(2, 5), rows(2, 5)), (rows(3, 7), rows(3, 7)), (rows(4, 8), rows(4, 6)))
    assert found.dims["src"][0] == found.dims["tgt"][0] == "batch"
    assert found.dims["src"][1] != found.dims["tgt"][1]
    assert found.notes == ()


def test_a_number_that_equals_a_size_in_all_calls_is_said_to_follow_it():
    found = proposed(module(lambda self, x, keep: x[:, :keep] + 1), (rows(2, 9), 2), (rows(3, 9), 3))
    assert dict(found.dims) == {"x": ("batch", "_"), "keep": ("batch",)}
    assert found.notes[0] == (
        "`keep` and axis 0 of `x` are equal in all calls and share `batch`, "
        "though the model takes them apart: pass a call in which they differ, if they may"
    )


def test_two_sums_that_fit_are_both_named():
    def forward(self, a, b, c, d, mask):
        return sum(part.sum() for part in (a, b, c, d, mask))

    def call(a, b, c, d):
        return *(rows(*([1] * axis), n) for axis, n in enumerate((a, b, c, d))), torch.ones(1, 1, 1, 1, a + b)

    found = proposed(module(forward), call(2, 4, 1, 5), call(3, 6, 2, 7))
    names = [found.dims[leaf][-1] for leaf in "abcd"]
    taken, other = found.dims["mask"][-1], found.notes[0].split("`")[5]
    sums = [{names[0], names[1]}, {names[2], names[3]}]
    assert sorted([set(taken.split(" + ")), set(other.split(" + "))], key=sums.index) == sums
    assert found.notes[0] == (
        f"axis 4 of `mask` is `{taken}` in all calls, but `{other}` as well, and was taken for `{taken}`: "
        "pass a call in which they differ"
    )


def test_what_no_run_confirms_is_said_to_be_unconfirmed():
    def forward(self, x, y):
        if (x.shape[1], y.shape[1]) not in ((4, 5), (7, 8)):
            raise ValueError
        return x.sum() + y.sum()

    found = proposed(module(forward), (rows(2, 4), rows(2, 5)), (rows(2, 7), rows(2, 8)))
    assert found.dims["y"] == ("_", f"{found.dims['x'][1]} + 1")

    def nothing(self, x, y):
        raise ValueError

    found = proposed(module(nothing), (rows(2, 4), rows(2, 5)), (rows(2, 7), rows(2, 8)))
    name = found.dims["x"][1]
    assert found.notes == (
        f"axis 1 of `y` is `{name} + 1` in all calls and was taken for it, though no run of the model confirmed that: "
        "pass a third call of other sizes",
    )


def test_calls_of_the_same_sizes_show_nothing():
    found = proposed(nn.Linear(3, 2), (rows(2, 3),), (rows(2, 3) + 1,))
    assert dict(found.dims) == {}
    assert found.notes[0] == "all calls have the same sizes, so every size is fixed: pass calls of different sizes"


def test_a_model_that_takes_too_long_is_asked_no_further(monkeypatch):
    monkeypatch.setattr(budgets, "MOST_RUNS_FOR_EXAMPLES", 3)
    found = proposed(module(lambda self, x, y: x.sum() + y.sum()), (rows(3), rows(4)), (rows(5), rows(6)))
    assert "after 3 runs of the model, what was still open was taken as it is in the calls" in found.notes


def test_a_fixed_length_that_happens_to_be_the_sum_of_two_others_stays_fixed():
    def forward(self, left, right, mask):
        return left.sum(1) + right.sum(1) + self.weigh(mask)

    model = module(forward, weigh=nn.Linear(8, 1))
    found = proposed(model, (rows(2, 3), rows(4, 2, 5)[0], rows(2, 8)), (rows(2, 5), rows(2, 3), rows(2, 8)))
    assert "mask" not in found.dims


def test_asking_leaves_the_model_as_it_was():
    class Counting(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("calls", torch.zeros(1))

        def forward(self, x):
            self.calls += 1
            return x + self.calls

    model = Counting().train()
    proposed(model, (rows(2, 5),), (rows(3, 9),))
    assert model.training
    assert model.calls == 0


# ---- all cases


def two_calls(case):
    """The example, and other sizes of every dim; below 2 only where there are no others."""
    lot = random.Random(0)
    second = {}
    for dim, (size, others) in case.sizes.items():
        different = [other for other in others if other != size]
        second[dim] = lot.choice([n for n in different if n > 1] or different or [size])
    return [cases.call(case, {dim: size for dim, (size, _) in case.sizes.items()}), cases.call(case, second)], second


@pytest.mark.parametrize("name", [name for name in cases.names() if getattr(cases.load(name), "exports", True)])
def test_two_calls_give_a_declaration_that_holds_every_size_of_the_case(name):
    case = cases.load(name)
    target = resolve_target(case.model())
    calls, second = two_calls(case)
    signatures = [bind_call(target, args, kwargs) for args, kwargs in calls]
    found = propose_from_calls(target, signatures)
    example = signatures[best_call(signatures)]
    spec = declare(example, found.dims, found.sizes)
    for sizes in cases.grid(case):
        if 0 in sizes.values() and 0 not in second.values():
            continue  # neither call shows that a size may be 0
        values = bind_call(target, *cases.call(case, sizes)).values
        rows = [(leaf, axis, e) for leaf, row in spec.axes.items() for axis, e in enumerate(row)]
        assert all(e or values[leaf].shape[axis] == example.values[leaf].shape[axis] for leaf, axis, e in rows)
        equations = [(f"axis {axis} of `{leaf}`", e, values[leaf].shape[axis]) for leaf, axis, e in rows if e]
        dims = solve([*equations, *((leaf, e, values[leaf]) for leaf, e in spec.scalars.items())])
        assert all(size in spec.ranges[dim] for dim, size in dims.items())


# ---- to the end


def test_two_calls_are_all_that_an_export_needs(tmp_path):
    torch.manual_seed(0)
    model = Decoder().eval()
    result = anyshape.export(model, examples=[step(2, 3, 5), step(3, 4, 9)], f=tmp_path / "m.onnx", quick=True)
    assert result.verdict == "checked"
    call = step(4, 1, 12)
    torch.testing.assert_close(anyshape.load(tmp_path / "m.onnx")(*call), model(*call), rtol=1e-4, atol=1e-5)


# ---- inputs that say something about others


@pytest.mark.parametrize("leaf", ["attention_mask", "batch.position_ids", "x.pos", "attn_bias", "valid", "padding0"])
def test_what_says_something_about_others_is_told_by_name(leaf):
    assert follows_by_name(leaf)


@pytest.mark.parametrize("leaf", ["ids", "pose", "postal", "past_key_values.0.key", "padlock"])
def test_other_inputs_are_not(leaf):
    assert not follows_by_name(leaf)


def test_a_mask_goes_with_the_input_whose_name_it_shares():
    places = [("src", 1), ("tgt", 1), ("src_mask", 1), ("tgt_mask", 1)]
    assert by_input(places) == [[places[0], places[2]], [places[1], places[3]]]


def test_what_stands_in_one_container_is_one_input():
    assert by_input([("past.0.key", 2), ("past.0.value", 2), ("attention_mask", 1)]) == []
