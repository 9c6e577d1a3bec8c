"""Messages are plain data both ways, and what is none of ours is refused before anything is allocated."""

from __future__ import annotations

import io
import json
import struct

import numpy as np
import pytest

from anyshape.runtime.strangers_process import receive, send


def _sent(message):
    stream = io.BytesIO()
    send(stream, message)
    stream.seek(0)
    return stream


def _forged(tree, rows, content=b""):
    text = json.dumps([tree, rows]).encode()
    return io.BytesIO(struct.pack("<Q", len(text)) + text + content)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.array(3, np.int64),
        np.zeros((0, 4), np.uint8),
        np.arange(12).reshape(3, 4)[:, ::2],
        np.array([True, False]),
        np.ones(2, np.float16),
        np.array([["a", "b\0"]], dtype=object),
    ],
    ids=str,
)
def test_arrays_arrive_as_they_were_sent(array):
    found = receive(_sent({"feeds": {"x": array}, "none": None}))
    assert found["none"] is None
    assert (found["feeds"]["x"].dtype, found["feeds"]["x"].shape) == (array.dtype, array.shape)
    np.testing.assert_array_equal(found["feeds"]["x"], array)


def test_bytes_lists_and_keys_of_any_kind_arrive():
    message = [{1: "a", "b": b"\0\1"}, [1.5, [True, None]]]
    assert receive(_sent(message)) == message


def test_results_may_be_written_to():
    receive(_sent(np.ones(3)))[0] = 2


@pytest.mark.parametrize(
    "rows",
    [[["|O", [1]]], [["<f4", [-1]]], [["<f4", [10**12]]], [["<f4", [10**6, 10**6, 10**6]]], [["rubbish", [1]]], [3]],
)
def test_what_is_no_array_of_numbers_is_refused(rows):
    with pytest.raises((ValueError, TypeError)):
        receive(_forged({"array": 0}, rows), 10**9)


def test_a_message_without_end_is_refused():
    with pytest.raises(ValueError, match="too long"):
        receive(io.BytesIO(struct.pack("<Q", 2**60)))


def test_a_message_that_ends_too_soon_is_an_end():
    whole = _sent(np.ones(3)).getvalue()
    for end in (0, 4, 12, len(whole) - 1):
        with pytest.raises(EOFError):
            receive(io.BytesIO(whole[:end]))
