"""A mask that torch would look at is applied as it is, wherever the layer stands."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn.modules import transformer

import anyshape
from anyshape.conversion.operators.attention import CAUSAL_MASKS
from anyshape.conversion.operators.repair import applied
from tests.running import is_right

SIZES = [(1, 1, 1), (3, 5, 4), (2, 7, 1), (4, 2, 9)]
SENTENCE = "nn.Transformer: the mask is applied as it is, without a look at its values"


class Decoder(nn.TransformerDecoder):
    """A user's subclass."""

    def __init__(self) -> None:
        super().__init__(nn.TransformerDecoderLayer(8, 2, 12, batch_first=True), num_layers=1)


class Inner(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.decoder = Decoder()

    def forward(self, target: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        result: Tensor = self.decoder(target, memory, tgt_mask=mask)
        return result


class Twice(nn.Module):
    """Two of them, three submodules deep."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleDict({"one": nn.ModuleList([Inner()]), "two": nn.ModuleList([Inner()])})

    def forward(self, target: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
        for part in self.parts.values():
            target = part[0](target, memory, mask)
        return target


def make(batch: int, tgt: int, src: int, *, causal: bool) -> tuple[Tensor, ...]:
    mask = nn.Transformer.generate_square_subsequent_mask(tgt)
    return torch.randn(batch, tgt, 8), torch.randn(batch, src, 8), mask if causal else torch.randn(tgt, tgt)


@pytest.mark.parametrize("causal", [True, False])
def test_a_mask_of_any_kind_exports_and_is_applied(causal: bool, tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, path = Twice().eval(), tmp_path / "model.onnx"
    dims = {"target": "batch tgt 8", "memory": "batch src 8", "mask": "tgt tgt"}
    result = anyshape.export(model, make(3, 5, 4, causal=causal), path, dims=dims, quick=True)
    assert [attempt.strategy for attempt in result.attempts] == ["torch.export"]
    assert result.repairs == (SENTENCE,)
    for kind in (True, False):  # one file for both kinds of mask, whichever was traced
        assert all(is_right(path, model, make(*sizes, causal=kind)) for sizes in SIZES)


def test_what_the_caller_says_is_believed() -> None:
    mask = torch.zeros(2, 2)
    with applied([CAUSAL_MASKS]) as acted:
        detect = transformer._detect_is_causal_mask
        assert [detect(mask, is_causal=said) for said in (True, False)] == [True, False]
        assert acted.sentences == []
        assert detect(mask) is False
        assert acted.sentences == [SENTENCE]


def test_torch_is_as_before_also_after_an_exception() -> None:
    original = transformer._detect_is_causal_mask
    with pytest.raises(ZeroDivisionError), applied([CAUSAL_MASKS]):
        assert transformer._detect_is_causal_mask is not original
        raise ZeroDivisionError
    assert transformer._detect_is_causal_mask is original
