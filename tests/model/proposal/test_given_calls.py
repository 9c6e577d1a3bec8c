from __future__ import annotations

import collections

import pytest
import torch
from torch import nn

from anyshape.declaration.calls import bind_call
from anyshape.declaration.targets import resolve_target
from anyshape.errors import DeclarationError
from anyshape.model.proposal.given_calls import best_call, columns_of, read_calls
from anyshape.verbs.watch import watch


class Net(nn.Module):
    def forward(self, x, mask=None, *, scale=1.0, keep=2, flag=False, mode="mean", states=()):
        return x * scale if mask is None else x * mask * scale


class Whole(nn.Module):
    def forward(self, batch):
        return batch["x"] + 1


TARGET = resolve_target(Net())
X, Y = torch.ones(2, 3), torch.ones(4, 5)


def refused(examples):
    with pytest.raises(DeclarationError) as caught:
        read_calls(TARGET, examples)
    return str(caught.value)


@pytest.mark.parametrize(
    "call",
    [
        (X, X),
        {"x": X, "mask": X},
        collections.UserDict({"x": X, "mask": X}),
        {"args": (X,), "kwargs": {"mask": X}},
        {"args": [X, X]},
        {"kwargs": {"x": X, "mask": X}},
        (X, {"mask": X}),
    ],
    ids=["tuple", "keywords", "batch", "both", "args", "kwargs", "trailing dict"],
)
def test_a_call_may_be_written_in_many_ways(call):
    (found,) = read_calls(TARGET, [call])
    assert {name: tuple(value.shape) for name, value in found.values.items()} == {"x": (2, 3), "mask": (2, 3)}


def test_a_bare_tensor_is_a_call():
    assert [found.values["x"].shape for found in read_calls(TARGET, (X, Y))] == [(2, 3), (4, 5)]


def test_a_dict_that_the_model_takes_as_one_argument_stays_one():
    (found,) = read_calls(resolve_target(Whole()), [{"x": X}])
    assert list(found.values) == ["batch.x"]


def test_what_was_recorded_is_read():
    model = Net()
    with watch(model) as seen:
        model(X, mask=X)
    assert list(read_calls(resolve_target(model), seen)[0].values) == ["x", "mask"]


NO_LISTS = {
    "a tensor": (X, "examples is of type Tensor: give a list of calls, such as [(x,), (y,)], or what watch recorded"),
    "a dict": (
        {"x": X},
        "examples is of type dict: give a list of calls, such as [(x,), (y,)], or what watch recorded",
    ),
    "a number": (3, "examples is of type int: give a list of calls, such as [(x,), (y,)], or what watch recorded"),
    "nothing": ([], "examples is empty: give two calls of different sizes"),
    "a list in it": (
        [(X,), [Y]],
        "examples[1] is of type list: "
        'a call is a tuple of arguments, a dict of keywords, or {"args": ..., "kwargs": ...}',
    ),
    "too many": (
        [(X,), (X, X, X)],
        "examples[1]: the example does not fit `Net(x, mask, scale, keep, flag, mode, states)`: "
        "too many positional arguments",
    ),
}


@pytest.mark.parametrize("kind", NO_LISTS)
def test_what_is_no_list_of_calls_gets_one_sentence(kind):
    examples, sentence = NO_LISTS[kind]
    assert refused(examples) == sentence


def test_a_watch_that_saw_nothing_says_so():
    with watch(Net()) as seen:
        pass
    assert refused(seen) == "watch recorded no call: give two calls of different sizes"


# ---- calls of several kinds


def test_an_argument_that_is_none_in_some_calls_makes_two_files():
    assert refused([(X, X), (Y, None), {"x": Y, "mask": Y}, (X,)]) == (
        "`mask` is given in examples[0] and examples[2] but left out, None or empty in examples[1] and examples[3]: "
        "export one file for each kind of call, with examples=[examples[0], examples[2]] "
        "and with examples=[examples[1], examples[3]]"
    )


def test_of_many_calls_the_first_are_named():
    assert refused([(X, X)] + [(X,)] * 5).startswith(
        "`mask` is given in examples[0] but left out, None or empty in "
        "examples[1], examples[2], examples[3] and 2 more: export one file"
    )


def test_what_is_missing_inside_a_container_is_named_as_far_as_it_is_missing():
    assert refused([{"x": X, "states": ({"k": X, "v": X},)}, {"x": X, "states": ({"k": X},)}]) == (
        "`states.0.v` is given in examples[0] but left out, None or empty in examples[1]: "
        "export one file for each kind of call, with examples=[examples[0]] and with examples=[examples[1]]"
    )
    assert refused([(X,), {"x": X, "states": (X, X)}]).startswith("`states` is given in examples[1] but left out,")


def test_calls_of_a_watch_are_chosen_by_kind():
    model = Net()
    with watch(model) as seen:
        model(X)
        model(X, Y[:2, :3])
        model(Y)
    sentence = refused(seen)
    assert sentence.endswith("with examples=seen.of(0) and with examples=seen.of(1)")
    assert [len(read_calls(TARGET, seen.of(kind))) for kind in (0, 1)] == [2, 1]


DIFFERENCES = {
    "`x` is float32 in examples[0] but int64 in examples[1]: give the same dtype in all calls": [
        (X,),
        (X.long(),),
    ],
    "`x` is of shape (2, 3) in examples[0] but of shape (2,) in examples[2]: "
    "give the same number of axes in all calls": [(X,), (X,), (X[:, 0],)],
    "`mask` is a tensor in examples[0] but a float in examples[1]: give the same kind in all calls": [(X, X), (X, 0.5)],
    "`scale` is an int in examples[0] but a float in examples[1]: give the same kind in all calls": [
        {"x": X, "scale": 1},
        {"x": X, "scale": 0.5},
    ],
    "`flag` is True in examples[0] but False in examples[1]: "
    "it becomes part of the file, so export one file for each": [
        {"x": X, "flag": True},
        {"x": X, "flag": False},
    ],
    "`mode` is 'mean' in examples[0] but 'sum' in examples[1]: "
    "it becomes part of the file, so export one file for each": [{"x": X}, {"x": X, "mode": "sum"}],
    "`keep` is 3 in examples[0] but -1 in examples[1]: "
    "a number that varies must not be negative; pass it as a tensor": [{"x": X, "keep": 3}, {"x": X, "keep": -1}],
}


@pytest.mark.parametrize("sentence", DIFFERENCES)
def test_other_differences_name_both_calls(sentence):
    assert refused(DIFFERENCES[sentence]) == sentence


def test_a_text_that_is_given_in_one_call_and_the_default_in_the_other_is_no_difference():
    assert len(read_calls(TARGET, [{"x": X, "mode": "mean"}, {"x": X}])) == 2


def test_a_negative_number_that_stands_still_is_part_of_the_file():
    assert len(read_calls(TARGET, [{"x": X, "keep": -1}, {"x": Y, "keep": -1}])) == 2


# ---- which call is exported


def test_columns_hold_the_sizes_of_every_place():
    calls = [bind_call(TARGET, (X,), {"keep": 3}), bind_call(TARGET, (Y,), {"keep": 4})]
    assert columns_of(calls) == {("x", 0): (2, 4), ("x", 1): (3, 5), ("keep", None): (3, 4)}


@pytest.mark.parametrize(
    ("shapes", "best"),
    [
        ([(1, 7), (4, 6)], 1),
        ([(5, 5), (4, 6)], 1),
        ([(4, 6), (5, 9)], 0),
        ([(3, 0), (1, 1), (2, 2)], 2),
    ],
    ids=["no ones", "no equals", "the smaller", "equals before ones"],
)
def test_the_call_to_export_with_tells_most(shapes, best):
    assert best_call([bind_call(TARGET, (torch.ones(shape),)) for shape in shapes]) == best
