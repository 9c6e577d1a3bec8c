"""Values live from their node to the last that reads them."""

from __future__ import annotations

from anyshape.costs.liveness import changes, peak_bytes

LIVES = [((0,), (1,)), ((1, -1), (2,)), ((1,), (3,)), ((2, 3), (4,))]
"""x -> a; a -> b; a -> c; b, c -> y."""


def test_each_value_ends_with_its_last_reader() -> None:
    assert list(changes(LIVES, [0], [4])) == [([1], []), ([2], []), ([3], [1]), ([4], [2, 3])]


def test_the_peak_counts_inputs_throughout_and_bodies_while_they_run() -> None:
    sized = [100, 10, 20, 30, 1]
    assert peak_bytes(LIVES, sized, [0, 0, 0, 0], [0], [4]) == 100 + 10 + 20 + 30
    assert peak_bytes(LIVES, sized, [0, 500, 0, 0], [0], [4]) == 100 + 10 + 20 + 500


def test_what_nobody_reads_is_gone_after_its_node() -> None:
    assert list(changes([((), (0,)), ((), (1,))], [], [1])) == [([0], [0]), ([1], [])]
