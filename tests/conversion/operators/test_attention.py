"""Attention of any rank and with any mask, as ONNX's operator and as products; masks are applied as they are."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.export import Dim
from torch.nn.modules import transformer

import anyshape
from anyshape.conversion.operators.attention import CAUSAL_MASKS
from anyshape.conversion.operators.repair import applied
from anyshape.conversion.translation import translate_program
from anyshape.torchkit.capture import export_program
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


# ---- as ONNX's operator and as products, at sizes that were never traced


TRACED = {"b": 3, "n": 5, "m": 4, "w": 6}
OTHERS = [
    {"b": 1, "n": 1, "m": 1, "w": 1},
    {"b": 2, "n": 1, "m": 7, "w": 3},
    {"b": 1, "n": 8, "m": 2, "w": 2},
    {"b": 4, "n": 3, "m": 3, "w": 1},
]
Shape = tuple[str | int, ...]


class Attention(nn.Module):
    """Takes its inputs as one tuple, as the product's adapter does."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.options = options

    def forward(self, *values: Tensor) -> Tensor:
        mask = values[3] if len(values) > 3 else None
        return F.scaled_dot_product_attention(*values[:3], attn_mask=mask, **self.options)


def _call(shapes: list[Shape], sizes: dict[str, int], mask: Callable[[Tensor], Tensor] | None) -> tuple[Tensor, ...]:
    values = [torch.randn([sizes.get(str(axis), axis) for axis in shape]) for shape in shapes]  # type: ignore[misc]
    return (*values[:3], *(mask(value) for value in values[3:] if mask is not None))


def _dynamic(shapes: list[Shape]) -> list[dict[int, Any]]:
    return [{axis: Dim.DYNAMIC for axis, size in enumerate(shape) if isinstance(size, str)} for shape in shapes]


def _translated(module: nn.Module, args: tuple[Tensor, ...], shapes: list[Shape], opset: int) -> ir.Model:
    program = export_program(_Flat(module), args, _dynamic(shapes))
    return translate_program(program, opset, {}).model


class _Flat(nn.Module):
    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *values: Tensor) -> Tensor:
        result: Tensor = self.module(*values)
        return result


def _kinds(model: ir.Model) -> set[str]:
    return {node.op_type for node in ir.traversal.RecursiveGraphIterator(model.graph)}


def _some_hidden(value: Tensor) -> Tensor:
    """The last query sees nothing."""
    seen = value > -0.3
    seen[..., -1, :] = False
    return seen


def _as_numbers(value: Tensor) -> Tensor:
    seen = _some_hidden(value)
    return torch.where(seen, value, -math.inf)


def _very_low(value: Tensor) -> Tensor:
    """Hidden by the lowest number, which is not infinite: a query that sees nothing sees all alike."""
    return torch.where(_some_hidden(value), value, torch.finfo(torch.float32).min)


PAIR: list[Shape] = [("b", 2, "n", 8), ("b", 2, "m", 8), ("b", 2, "m", 6)]
CASES: dict[str, tuple[dict[str, Any], list[Shape], Callable[[Tensor], Tensor] | None]] = {
    "four axes": ({}, PAIR, None),
    "causal, lengths of their own": ({"is_causal": True}, PAIR, None),
    "scaled": ({"scale": 0.7}, PAIR, None),
    "scaled below zero": ({"scale": -0.3, "is_causal": True}, PAIR, None),
    "three axes": ({}, [("b", "n", 8), ("b", "m", 8), ("b", "m", 8)], None),
    "three axes, a mask each": ({}, [("b", "n", 8), ("b", "m", 8), ("b", "m", 8), ("b", "n", "m")], _some_hidden),
    "three axes, one mask": ({}, [("b", "n", 8), ("b", "m", 8), ("b", "m", 8), ("n", "m")], _as_numbers),
    "two axes": ({}, [("n", 8), ("m", 8), ("m", 3)], None),
    "two axes, masked": ({}, [("n", 8), ("m", 8), ("m", 3), ("n", "m")], _some_hidden),
    "five axes": ({}, [("b", "w", 2, "n", 8), ("b", "w", 2, "m", 8), ("b", "w", 2, "m", 8)], None),
    "five axes, causal": (
        {"is_causal": True}, [("b", "w", 2, "n", 8), ("b", "w", 2, "m", 8), ("b", "w", 2, "m", 8)], None,
    ),
    "five axes, a mask per head": (
        {}, [("b", "w", 2, "n", 8), ("b", "w", 2, "m", 8), ("b", "w", 2, "m", 8), (2, "n", "m")], _as_numbers,
    ),
    "five axes, a mask per window": (
        {}, [("b", "w", 2, "n", 8), ("b", "w", 2, "m", 8), ("b", "w", 2, "m", 8), ("w", 1, "n", "m")], _some_hidden,
    ),
    "a mask for all": ({}, [*PAIR, ("n", "m")], _some_hidden),
    "a mask per head": ({}, [*PAIR, (2, "n", "m")], _as_numbers),
    "a mask over keys": ({}, [*PAIR, ("b", 1, 1, "m")], lambda value: value > 0),
    "a mask over queries": ({}, [*PAIR, ("b", 1, "n", 1)], _some_hidden),
    "a mask of numbers over keys": ({}, [*PAIR, (1, 1, 1, "m")], lambda value: value),
    "hidden by infinity": ({}, [*PAIR, ("b", 2, "n", "m")], _as_numbers),
    "hidden by a low number": ({}, [*PAIR, ("b", 1, "n", "m")], _very_low),
    "grouped heads": ({"enable_gqa": True}, [("b", 6, "n", 8), ("b", 2, "m", 8), ("b", 2, "m", 8)], None),
    "grouped heads, masked": (
        {"enable_gqa": True}, [("b", 6, "n", 8), ("b", 2, "m", 8), ("b", 2, "m", 8), ("b", 1, "n", "m")], _some_hidden,
    ),
    "as many heads as groups": ({"enable_gqa": True, "is_causal": True}, PAIR, None),
    "one key for all of the batch": ({}, [("b", 2, "n", 8), (1, 2, "m", 8), (1, 2, "m", 8)], None),
}  # fmt: skip
NOT_FOR_THE_OPERATOR = {"scaled below zero", "one key for all of the batch"}


@pytest.mark.parametrize("opset", [23, 20])
@pytest.mark.parametrize("name", CASES)
def test_gives_what_pytorch_gives_at_every_size(name: str, opset: int) -> None:
    torch.manual_seed(0)
    options, shapes, mask = CASES[name]
    module = Attention(**options)
    model = _translated(module, _call(shapes, TRACED, mask), shapes, opset)
    assert ("Attention" in _kinds(model)) == (opset == 23 and name not in NOT_FOR_THE_OPERATOR)
    session = onnxruntime.InferenceSession(ir.to_proto(model).SerializeToString())
    for sizes in (TRACED, *OTHERS):
        args = _call(shapes, sizes, mask)
        feeds = {port.name: value.numpy() for port, value in zip(session.get_inputs(), args, strict=True)}
        with torch.no_grad():
            wanted = module(*args).numpy()
        np.testing.assert_allclose(session.run(None, feeds)[0], wanted, rtol=1e-4, atol=1e-5, err_msg=str(sizes))
