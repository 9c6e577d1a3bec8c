"""Which dims are a batch, and whether a file mixes its samples."""

from __future__ import annotations

import numpy as np
import pytest

from anyshape.sizes.notation import parse_expression
from anyshape.testbench.batches import axis_of, batch_dims, first_mixed_output, taken


def row(text):
    return tuple(None if word == "_" else parse_expression(word) for word in text.split())


@pytest.mark.parametrize(
    ("rows", "dims"),
    [
        (["batch seq _"], ["batch"]),
        (["bs seq", "bs"], ["bs"]),
        (["text_batch seq", "image_batch _ _"], ["text_batch", "image_batch"]),
        (["nodes_per_batch _"], []),
        (["N _ _", "N"], ["N"]),
        (["N"], []),
        (["n _"], []),
        (["n _ _"], ["n"]),
        (["seq batch"], ["batch"]),
        (["seq n _"], []),
        (["batch batch"], []),
        (["2*batch _"], []),
        (["tokens", "batch"], []),
    ],
)
def test_a_batch_is_named_like_one_and_can_be_cut(rows, dims):
    rows = [row(text) for text in rows]
    names = dict.fromkeys(name for one in rows for e in one if e is not None for name in e.names)
    assert batch_dims(names, rows) == dims


def test_the_axis_of_a_dim():
    assert axis_of("batch", row("seq batch _")) == 1
    assert axis_of("batch", row("seq _")) is None


def test_a_part_of_some_axes():
    value = np.arange(24).reshape(2, 3, 4)
    assert taken(value, [1, 2], slice(1, 3)).shape == (2, 2, 2)
    assert taken(value, [], slice(0, 0)) is value


ROWS = {"x": row("batch _"), "table": row("_ _")}
WHOLE = {
    "x": np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32), "table": np.ones((4, 2), np.float32),
}  # fmt: skip


@pytest.mark.parametrize(
    ("run", "index"),
    [
        (lambda f: [f["x"] @ f["table"]], None),
        (lambda f: [f["x"] @ f["table"], f["x"] - f["x"].mean(0)], 1),
        (lambda f: [f["x"].sum(0)], None),  # no axis of samples
        (lambda f: [np.repeat(f["x"], 2, 0)], None),  # several entries for each
        (lambda f: [np.repeat(f["x"], 2, 0)[::-1]], 0),
        (lambda f: [f["x"] @ f["x"].T], None),  # the batch twice: pairs, on purpose
    ],
)
def test_an_output_whose_samples_are_mixed_is_found(run, index):
    assert first_mixed_output(run, WHOLE, "batch", ROWS, (2, 1)) == index
