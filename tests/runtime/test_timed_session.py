"""A file that is timed over there: the same results, times that are taken there, memory by size, and its nodes."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from anyshape.errors import DeclarationError
from anyshape.runtime.confinement import StoppedError
from anyshape.runtime.opening import Opening
from anyshape.runtime.session import RuntimeFailureError
from anyshape.runtime.timed_session import _shares_of, timed_file
from anyshape.sizes import budgets
from tests.onnxfile.strangers import endless_loop, text_model

SQUARE = text_model("main (float[n, 8] x) => (float[n, n] y) { t = Transpose<perm=[1, 0]>(x) y = MatMul(x, t) }")


def _opened(folder, model=SQUARE, **options):
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return timed_file(path, model, Opening("", threads=1, **options), trusted=True)


def _feeds(n):
    return {"x": np.ones((n, 8), np.float32)}


def test_results_and_times_come_from_another_process_that_is_gone_afterwards(tmp_path):
    with _opened(tmp_path) as file:
        (found,) = file.results(_feeds(3))
        assert found.tolist() == [[8.0] * 3] * 3
        assert file.sample(_feeds(3), "wall")() > 0
        number = file.process._process.pid
        assert number != os.getpid()
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells what memory is a process's own")
def test_memory_grows_with_what_a_run_takes(tmp_path):
    """Of 2000 x 2000 floats, 16 MB are the output alone."""
    with _opened(tmp_path) as file:
        small, large = file.memory(_feeds(10)), file.memory(_feeds(2000))
    assert small is not None
    assert large is not None
    assert small < 4e6 < 15e6 < large < 64e6


def test_memory_is_not_told_where_nothing_keeps_it(tmp_path):
    with _opened(tmp_path, settings={"enable_cpu_mem_arena": "false"}) as file:
        assert not file.tells_memory
        assert file.memory(_feeds(3)) is None


def test_the_nodes_shares_are_all_of_the_time(tmp_path):
    with _opened(tmp_path) as file:
        shares = file.node_shares(_feeds(200))
    assert sum(share for _, share in shares.values()) == pytest.approx(1)
    assert "FusedMatMul" in {operator for operator, _ in shares.values()}


def test_what_stands_around_other_nodes_is_not_counted_twice():
    events = [_event("loop", "Loop", 90), _event("a", "Add", 60), _event("b", "Mul", 20), {"cat": "Session"}]
    assert _shares_of(events) == {"a": ("Add", 0.75), "b": ("Mul", 0.25)}
    assert _shares_of([]) == {}


def test_a_node_that_waited_in_one_run_takes_no_share_of_all():
    """What a busy machine does to a profile: a node of 2 µs that lost the processor for 9 ms."""
    rows = [(90, 90), (6, 2), (6, 9000), (6, 2), (6, 2)]
    nodes = [
        [_event("a", "MatMul", a), _event("b", "Cast", b), {"cat": "Session", "name": "model_run"}] for a, b in rows
    ]
    assert _shares_of([event for run in nodes for event in run]) == {"a": ("MatMul", 0.75), "b": ("Cast", 0.25)}


def _event(name, operator, spent):
    return {"cat": "Node", "name": f"{name}_kernel_time", "dur": spent, "args": {"op_name": operator}}


def test_inputs_go_by_name_or_else_in_order(tmp_path):
    with _opened(tmp_path) as file:
        assert file.results({"other": np.ones((2, 8), np.float32)})[0].shape == (2, 2)
        with pytest.raises(RuntimeFailureError, match=r"^takes 1 inputs \(x\), and 2 are given$"):
            file.results({"a": np.ones(1), "b": np.ones(1)})


def test_a_run_that_fails_is_a_failure_in_the_runtimes_words(tmp_path):
    with _opened(tmp_path) as file, pytest.raises(RuntimeFailureError, match="Got invalid dimensions for input"):
        file.results({"x": np.ones((2, 9), np.float32)})


def test_a_provider_that_is_not_there_is_one_sentence(tmp_path):
    sentence = r"^this ONNX Runtime has no `NoneExecutionProvider`, only "
    with pytest.raises(DeclarationError, match=sentence), _opened(tmp_path, providers=("NoneExecutionProvider",)):
        pass


@pytest.mark.usefixtures("strangers")
def test_a_strangers_file_is_stopped_where_it_takes_too_much(tmp_path, monkeypatch):
    path, model = tmp_path / "model.onnx", endless_loop("n")
    path.write_bytes(model.SerializeToString())
    monkeypatch.setattr(budgets, "SECONDS_OF_A_LOOP", 0.5)
    with timed_file(path, model, Opening("", threads=1), trusted=False) as file:
        feeds = {one.name: np.ones([2] * len(one.shape), np.float32) for one in file.session.get_inputs()}
        with pytest.raises(StoppedError, match=r"^`model.onnx` was still running after "):
            file.results(feeds)
