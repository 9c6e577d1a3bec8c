"""Which opset is written: what the user asks for, or the newest that torch writes and the runtime takes."""

from __future__ import annotations

import pytest

from anyshape.conversion.opsets import choose_opset
from anyshape.errors import DeclarationError
from anyshape.runtime.session import newest_opset
from anyshape.torchkit.capture import newest_translated_opset

NEWEST = min(newest_opset(), newest_translated_opset())


@pytest.mark.parametrize(
    ("asked", "target", "opset"),
    [(None, None, NEWEST), (18, None, 18), (None, "onnxruntime==1.18", 21), (17, " onnxruntime >= 1.18.2 ", 17)],
)
def test_the_opset(asked: int | None, target: str | None, opset: int) -> None:
    assert choose_opset(asked, target) == min(opset, NEWEST)


@pytest.mark.parametrize(
    ("asked", "target", "sentence"),
    [
        (6, None, f"opset_version is 6, the installed ONNX Runtime takes 7 to {newest_opset()}"),
        ("18", None, f"opset_version is '18', the installed ONNX Runtime takes 7 to {newest_opset()}"),
        (22, "onnxruntime==1.18", "opset_version is 22, but target `onnxruntime==1.18` takes 21 at most"),
        (None, "tensorrt", "target is `tensorrt`: write `onnxruntime==1.18`"),
        (None, "onnxruntime==1.2", "target is `onnxruntime==1.2`: ONNX Runtime 1.12 is the oldest that is known"),
    ],
)
def test_what_cannot_be_is_refused(asked: int, target: str, sentence: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        choose_opset(asked, target)
    assert str(caught.value) == sentence
