"""Plain values, and what they add up to."""

from __future__ import annotations

from anyshape.costs.file_costs import DimCosts, FileCosts, Growth, NodeCosts, ValueCosts, shares
from anyshape.costs.written_formulas import WrittenFormula

COSTS = FileCosts(
    (DimCosts("n", 1, None, 1, None, 4),),
    (),
    (
        WrittenFormula("n", "d[0]"),
        WrittenFormula("2*n", "2*d[0]"),
        WrittenFormula("8//(n - 1)", "Math.floor(8/(d[0]-1))"),
    ),
    (ValueCosts("x", "float32", 4, (0,), "held"), ValueCosts("y", "float32", 4, (1,), "held")),
    (NodeCosts("a", "Tile", (0, -1), (1,), 1, None, ("net",), "model.py:3"),),
    (0,),
    (1,),
    12,
    ({"n": 3},),
    Growth("O(n)", "O(n)", "12*n", "2*n"),
)


def test_what_most_nodes_do_not_have_is_left_out() -> None:
    assert COSTS.nodes[0].to_dict() == {
        "name": "a", "op": "Tile", "inputs": [0, -1], "outputs": [1], "flops": 1, "moved": None, "scope": ["net"],
        "source": "model.py:3", "mark": "",
    }  # fmt: skip


def test_totals_are_computed_at_any_size() -> None:
    assert COSTS.numbers({"n": 1}) == [1, 2, None]
    assert (COSTS.flops({"n": 5}), COSTS.memory({"n": 5})) == (10, 60)
    assert shares(COSTS) == {"held": 2, "unknown": 0, "contradicted": 0, "not run": 0}
