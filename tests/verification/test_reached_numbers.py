"""Contents that reach numbers which the model or its file compares values with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx.parser
import onnx_ir as ir
import torch
from torch import Tensor

from anyshape.model import oracle
from anyshape.model.request import understand
from anyshape.testbench.plan import Budget
from anyshape.verification.contents import Content
from anyshape.verification.reached_numbers import contents_at_numbers

X = torch.tensor([0.5, 1.0, 1.5, 2.0])
IDS = torch.tensor([3, 0, 7, 7])
PLAIN = "main (float[n] x) => (float[n] y) { y = Identity (x) }"


def found_for(
    model: Callable[..., Tensor], *values: Tensor, text: str = PLAIN, seconds: float | None = None
) -> list[Content]:
    names = ("x", "z")[: len(values)]
    request = understand(model, values, None, dims=dict.fromkeys(names, "n"), sizes=None, make_inputs=None)
    reference = oracle.from_example(request.target, request.signature, request.spec, seed=0)
    graph = ir.from_proto(onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 20]> {text}'))
    example = oracle.Outcome({"n": 4}, 0, dict(zip(names, values, strict=True)))
    return list(contents_at_numbers(reference, example, graph, {name: name for name in names}, Budget(seconds)))


def words_of(*args: Any, **more: Any) -> list[str]:
    return [one.words for one in found_for(*args, **more)]


def test_inputs_hold_the_number_and_what_lies_beside_it() -> None:
    (content,) = found_for(lambda x: (x > 100).float(), X)
    assert content.words == "holding 100 and numbers beside it"
    assert content.changed(X).tolist() == [100, 1, 50, 2]


def test_ids_hold_the_one_that_is_asked_for() -> None:
    (content,) = found_for(lambda x: (x == 9).float(), IDS)
    assert content.words == "holding 9"
    assert content.changed(IDS).tolist() == [9, 0, 9, 7]


def test_what_drawn_values_meet_is_left_as_it_is() -> None:
    assert words_of(lambda x: (x == 7).float() + (x > 3), IDS) == []
    assert words_of(lambda x: (x * 2 > 2.5).float(), X) == []


def test_results_are_scaled_until_they_lie_on_both_sides() -> None:
    (content,) = found_for(lambda x: (x.exp() * 2 > 1e9).float(), X)
    results = content.changed(X).exp() * 2
    assert results.min() < 1e9 < results.max()


def test_what_no_scale_changes_is_not_tried() -> None:
    assert words_of(lambda x: x * (torch.arange(4) > 100).any(), X) == []
    assert words_of(lambda x: x * (x.sigmoid() > 100), X) == []


def test_values_stay_such_that_their_squares_are_numbers() -> None:
    assert words_of(lambda x: x * (x * 2 > -3e38), X) == []
    assert words_of(lambda x: x * (x * 2 > 3e38), X) == []


def test_few_numbers_are_reached() -> None:
    assert len(words_of(lambda x: sum((x > 100 * n).float() for n in range(1, 9)), X)) == 4


def test_numbers_of_the_file_count_as_well() -> None:
    text = """main (float[n] x, int64[n] z) => (float[n] y) {
      top = Constant <value_float: float = 700.0> () pad = Constant <value_int: int = 9> ()
      low = Min (x, top) is_pad = Equal (z, pad) y = Where (is_pad, x, low)
    }"""
    found = found_for(lambda x, z: x + z, X, IDS, text=text)
    assert [(one.leaves, one.words) for one in found] == [
        (("x",), "holding 700 and numbers beside it"), (("z",), "holding 9"),
    ]  # fmt: skip


def test_sizes_that_a_file_compares_are_no_values() -> None:
    text = """main (int64[n] x) => (bool[1] y) {
      n = Shape (x) limit = Constant <value_ints: ints = [64]> () y = Less (n, limit)
    }"""
    assert words_of(lambda x: x * 1, IDS, text=text) == []


def test_nothing_is_asked_where_the_budget_is_used_up() -> None:
    assert words_of(lambda x: (x > 100).float(), X, seconds=-1.0) == []


def test_ids_reach_the_last_row_of_a_table() -> None:
    text = "main (int64[n] x) => (float[n] y) <float[10] table = {0,1,2,3,4,5,6,7,8,9}> { y = Gather (table, x) }"
    (content,) = found_for(lambda x: torch.arange(10.0)[x], IDS, text=text)
    assert content.words == "holding 9"
    assert content.changed(IDS).tolist() == [9, 0, 9, 7]
    assert words_of(lambda x: torch.arange(10.0)[x], IDS + 2, text=text) == []


def test_integers_that_are_divided_are_negated_unless_they_are_indices() -> None:
    divided = "main (int64[n] x) => (int64[n] y) <int64 three = {3}> { y = Div (x, three) }"
    (content,) = found_for(lambda x: x // 3, IDS, text=divided)
    assert (content.words, content.changed(IDS).tolist()) == ("negated", [-3, 0, -7, -7])
    assert words_of(lambda x: x // 3, IDS - 4, text=divided) == []
    placed = "main (int64[n] x) => (int64[n] y) <int64 three = {3}> { a = Div (x, three) y = Gather (x, a) }"
    assert words_of(lambda x: x[x // 3], IDS, text=placed) == []
