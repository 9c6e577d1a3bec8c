"""One thread is silent, the others are heard."""

from __future__ import annotations

import contextlib
import io
import logging
import sys
import threading
import warnings
from collections.abc import Callable

import pytest
import torch

import anyshape
from anyshape.torchkit.silence import heard_thread, silent_thread


def in_a_thread(work: Callable[[], object]) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def say(word: str) -> None:
    sys.stdout.write(f"{word} printed\n")
    sys.stdout.buffer.write(b"")
    sys.stderr.write(f"{word} told\n")
    warnings.warn(f"{word} warned", stacklevel=1)
    logging.getLogger("talkative.child").error("%s logged", word)


def test_only_the_silent_thread_is_not_heard(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, recwarn: pytest.WarningsRecorder
) -> None:
    warnings.simplefilter("always")
    with silent_thread(["talkative"]):
        say("silent")
        in_a_thread(lambda: say("other"))
        with heard_thread():
            say("callback")
        say("silent")
    say("after")
    heard = ["other", "callback", "after"]
    assert capsys.readouterr().out.splitlines() == [f"{who} printed" for who in heard]
    assert [str(one.message) for one in recwarn] == [f"{who} warned" for who in heard]
    assert [record.getMessage() for record in caplog.records] == [f"{who} logged" for who in heard]


def test_other_loggers_are_heard(caplog: pytest.LogCaptureFixture) -> None:
    with silent_thread(["talkative"]):
        logging.getLogger("user").error("heard")
    assert [record.getMessage() for record in caplog.records] == ["heard"]


def test_warnings_that_are_errors_do_not_stop_the_silent() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with silent_thread([]):
            warnings.warn("ignored", stacklevel=1)
        with pytest.raises(UserWarning, match="raised"):
            warnings.warn("raised", stacklevel=1)


def test_filters_and_streams_that_others_set_meanwhile_stay() -> None:
    theirs, filters = io.StringIO(), list(warnings.filters)
    try:
        with contextlib.ExitStack() as stack:
            with silent_thread([]):
                warnings.filterwarnings("ignore", message="theirs")
                kept = sys.stdout
                stack.enter_context(contextlib.redirect_stdout(theirs))
            assert sys.stdout is theirs
        assert warnings.filters[0][0] == "ignore"
        assert warnings.filters[0][1].pattern == "theirs"
        assert warnings.filters[1:] == filters
    finally:
        warnings.filters[:] = filters  # type: ignore[attr-defined]
        sys.stdout = kept._streams[0]


class Loud(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        print("from the model")  # noqa: T201
        in_a_thread(lambda: sys.stdout.write("from another thread\n"))
        return x * 2


def test_an_export_does_not_swallow_what_others_say(capsys: pytest.CaptureFixture[str]) -> None:
    anyshape.export(Loud(), torch.ones(2, 3), dims={"x": "batch 3"}, quick=True, progress=print)
    lines = capsys.readouterr().out.splitlines()
    assert lines.count("from the model") == 1  # in its first run
    assert "from another thread" in lines
    assert "running the model" in lines


class Untranslated(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.eigvalsh(x @ x.mT)


def test_the_older_exporter_writes_nothing_to_the_descriptors(capfd: pytest.CaptureFixture[str]) -> None:
    torch._C._jit_set_onnx_log_enabled(True)  # as torch's own exports leave it
    with pytest.raises(anyshape.ExportError):
        anyshape.export(Untranslated(), torch.randn(2, 3, 3), dims={"x": "batch 3 3"}, quick=True)
    assert capfd.readouterr() == ("", "")
