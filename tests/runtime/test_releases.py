"""Which opset is written for whom, and what each release of ONNX Runtime really loads."""

from __future__ import annotations

import onnxruntime
import pytest

from anyshape.errors import DeclarationError
from anyshape.runtime.releases import (
    DEFAULT_OPSET,
    OLDEST_OPSET,
    RELEASES,
    choose_opset,
    installed_release,
    ir_version_for,
    understand_target,
)

INSTALLED = installed_release()


def chosen(asked: int | None, target: str | None) -> int:
    return choose_opset(asked, None if target is None else understand_target(target), 23)


@pytest.mark.parametrize(
    ("asked", "target", "opset"),
    [
        (None, None, DEFAULT_OPSET), (18, None, 18), (24, None, 24), (11, None, 11), (None, "onnxruntime==1.18", 21),
        (17, " onnxruntime >= 1.18.2 ", 17), (None, "onnxruntime==1.12", 17), (None, "onnxruntime@1.13", 17),
        (None, "onnxruntime==1.31", 23), (None, "onnxruntime", 23), (24, "onnxruntime", 24),
    ],
)  # fmt: skip
def test_the_opset(asked: int | None, target: str | None, opset: int) -> None:
    assert chosen(asked, target) == opset


TAKES = f"the installed ONNX Runtime {onnxruntime.__version__} takes {OLDEST_OPSET} to {INSTALLED.opset}"
HOW = "write `onnxruntime==1.18`, or `onnxruntime` for the installed one"


@pytest.mark.parametrize(
    ("asked", "target", "sentence"),
    [
        (6, None, f"opset_version is 6, {TAKES}"),
        ("18", None, f"opset_version is '18', {TAKES}"),
        (True, None, f"opset_version is True, {TAKES}"),
        (99, None, f"opset_version is 99, {TAKES}"),
        (22, "onnxruntime==1.18", "opset_version is 22, but target ONNX Runtime 1.18 takes 21 at most"),
        (None, "tensorrt", f"target is `tensorrt`: {HOW}"),
        (None, "onnxruntime1.18", f"target is `onnxruntime1.18`: {HOW}"),
        (None, "onnxruntime==1", f"target is `onnxruntime==1`: {HOW}"),
        (None, "onnxruntime==1.2", "target is `onnxruntime==1.2`, but ONNX Runtime 1.12 is the oldest that is known"),
        (None, "onnxruntime==9.9", "target is `onnxruntime==9.9`, but ONNX Runtime 1.31 is the newest that is known"),
    ],
)
def test_what_cannot_be_is_refused(asked: int, target: str, sentence: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        chosen(asked, target)
    assert str(caught.value) == sentence


def test_every_release_takes_the_ir_version_of_its_own_opsets() -> None:
    for release in RELEASES.values():
        assert all(ir_version_for(opset) <= release.ir_version for opset in range(OLDEST_OPSET, release.opset + 1))


def test_the_installed_release_is_as_the_table_says() -> None:
    major, minor = (int(part) for part in onnxruntime.__version__.split(".")[:2])
    assert (INSTALLED.opset, INSTALLED.version) == (RELEASES[major, minor].opset, onnxruntime.__version__)
