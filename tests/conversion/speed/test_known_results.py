"""Results that a trace is told are those that torch would have found; where they are not plain, torch is asked."""

from __future__ import annotations

import linecache
import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sympy
import torch
from torch import Tensor, nn
from torch._subclasses import fake_impls
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext
from torch.utils._sympy.functions import Max, Min

from anyshape.conversion.speed import known_results
from anyshape.conversion.torch_export import export_program

aten = torch.ops.aten


def _fake(mode: FakeTensorMode, value: Tensor) -> FakeTensor:
    """A tensor whose first axis has a name instead of a size."""
    first, *rest = (DimDynamic.DYNAMIC, *[DimDynamic.STATIC] * (value.dim() - 1))
    return mode.from_tensor(value, symbolic_context=StatelessSymbolicContext(dynamic_sizes=[first, *rest]))


def _look(value: Tensor) -> tuple[object, ...]:
    return (str(value.shape), str(value.stride()), value.dtype, value.device, value.is_contiguous())


def _looks(op, values: list[Tensor | None], more: tuple[object, ...]) -> list[tuple[object, ...]]:
    with FakeTensorMode(shape_env=ShapeEnv()) as mode:
        first, *rest = values
        fakes = [_fake(mode, first), *(None if value is None else mode.from_tensor(value) for value in rest)]
        result = op(*fakes, *more)
    return [_look(one) for one in (result if isinstance(result, tuple) else (result,))]


INPUTS = {
    "plain": torch.randn(3, 5, 4, 6),
    "channels last": torch.randn(3, 5, 4, 6).to(memory_format=torch.channels_last),
    "transposed": torch.randn(3, 6, 4, 5).transpose(1, 3),
    "half": torch.randn(3, 5, 4, 6).half(),
    "double": torch.randn(3, 5, 4, 6).double(),
}


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("op", known_results._ELEMENTWISE, ids=str)
def test_elementwise(op, kind: str) -> None:
    expected = _looks(op, [INPUTS[kind]], ())
    with known_results.known_results():
        assert _looks(op, [INPUTS[kind]], ()) == expected


@pytest.mark.parametrize("kind", INPUTS)
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("held", [torch.float16, torch.float32, torch.float64])
def test_batch_norms(kind: str, affine: bool, held: torch.dtype) -> None:
    learnt = torch.ones(5, dtype=held)
    values = [INPUTS[kind], *([learnt, learnt] if affine else [None, None]), learnt, learnt]
    expected = _looks(known_results._NORM, values, (0.1, 1e-5))
    with known_results.known_results():
        assert _looks(known_results._NORM, values, (0.1, 1e-5)) == expected


def test_integers_are_left_to_torch() -> None:
    values = [torch.arange(6).reshape(2, 3)]
    expected = _looks(aten.sqrt.default, values, ())
    with known_results.known_results():
        assert _looks(aten.sqrt.default, values, ()) == expected
    assert expected[0][2] == torch.float32


def test_channels_that_do_not_fit_are_refused_as_before() -> None:
    norm = nn.BatchNorm1d(4).eval()
    with known_results.known_results(), pytest.raises(Exception, match="4"):
        torch.export.export(norm, (torch.randn(2, 5, 3),), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))


def test_other_threads_are_told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    monkeypatch.setattr(known_results, "_like_the_first", lambda *given: told.append(given) or NotImplemented)
    with known_results.known_results(), ThreadPoolExecutor(1) as other:
        looks = other.submit(_looks, aten.relu.default, [INPUTS["plain"]], ()).result()
        assert told == []
        assert _looks(aten.relu.default, [INPUTS["plain"]], ()) == looks
        assert len(told) == 1


def test_torchs_table_is_as_it_was_afterwards() -> None:
    before = dict(fake_impls.get_fast_op_impls())
    with pytest.raises(KeyboardInterrupt), known_results.known_results():
        assert known_results._NORM in fake_impls.get_fast_op_impls()
        raise KeyboardInterrupt
    assert fake_impls.get_fast_op_impls() == before


def test_a_torch_without_such_a_table_finds_them_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(fake_impls, "get_fast_op_impls")
    with known_results.known_results():
        pass


def test_the_order_in_memory_is_not_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class Net(nn.Module):
        def forward(self, *values: Tensor) -> Tensor:
            return values[0].relu() + 1

    def layouts() -> set[object]:
        program = export_program(Net(), (torch.ones(3, 4),), [{0: torch.export.Dim.DYNAMIC}])
        return {node.meta["tensor_meta"].memory_format for node in program.graph.nodes if node.op == "call_function"}

    assert layouts() == {None}
    monkeypatch.setenv("ANYSHAPE_SHORTCUTS", "0")
    assert layouts() == {torch.contiguous_format}


def test_few_lines_are_read_for_the_stacks_of_nodes_and_those_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    genuine = linecache.getline

    def getline(filename: str, *where: Any) -> str:
        read.append(filename)
        return genuine(filename, *where)

    def lines_and_stacks(switch: str) -> tuple[int, list[str]]:
        monkeypatch.setenv("ANYSHAPE_SHORTCUTS", switch)
        read.clear()
        with monkeypatch.context() as patch:
            patch.setattr(linecache, "getline", getline)
            program = export_program(Even().eval(), (torch.randn(9),), [{0: torch.export.Dim.DYNAMIC}])
        stacks = [node.stack_trace or "" for node in program.graph.nodes if node.target is aten.sum.dim_IntList]
        return len(read), stacks

    (most, expected), (fewest, stacks) = lines_and_stacks("0"), lines_and_stacks("1")
    assert fewest * 2 < most
    assert stacks == expected
    assert "unfold(0, 3, 2)" in stacks[0]


class Even(nn.Module):
    """Padded as far as halves come out even, twice, as convolutions of other frameworks are."""

    def forward(self, *values: Tensor) -> Tensor:
        x = values[0]
        for _ in range(2):
            missing = max((math.ceil(x.shape[0] / 2) - 1) * 2 + 3 - x.shape[0], 0)
            x = nn.functional.pad(x, (0, missing)).unfold(0, 3, 2).sum(-1)
        return x


def _size_of_result(*, are_on: bool, monkeypatch: pytest.MonkeyPatch) -> sympy.Expr:
    monkeypatch.setenv("ANYSHAPE_SHORTCUTS", "1" if are_on else "0")
    program = export_program(Even().eval(), (torch.randn(9),), [{0: torch.export.Dim.DYNAMIC}])
    (result,) = program.graph.output_node().args[0]
    size: sympy.Expr = result.meta["val"].shape[0].node.expr
    return size


def test_the_larger_of_two_sizes_is_one_of_them_where_it_is_seen_which(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = _size_of_result(are_on=True, monkeypatch=monkeypatch)
    full = _size_of_result(are_on=False, monkeypatch=monkeypatch)
    assert not plain.has(Max)
    assert full.has(Max)
    (symbol,), (other,) = plain.free_symbols, full.free_symbols
    for size in range(1, 40):
        assert plain.subs(symbol, size) == full.subs(other, size) == -(-size // 4)


class Extremes(nn.Module):
    def forward(self, *values: Tensor) -> Tensor:
        n, m = values[0].shape
        kept = max(n, m), min(n, m)
        plain = max(n - n % 2, n), min(n // 2 * 2, n), max(3 - n % 2, 0), min(n % 4 - 4, m - m)
        return values[0].new_zeros([*kept, *plain[:3], plain[3] + 5])


def test_which_is_larger_is_left_open_where_sizes_decide() -> None:
    axis = torch.export.Dim.DYNAMIC
    program = export_program(Extremes().eval(), (torch.randn(6, 9),), [{0: axis, 1: axis}])
    (result,) = program.graph.output_node().args[0]
    most, least, *plain = [size.node.expr for size in result.meta["val"].shape]
    assert most.has(Max)
    assert least.has(Min)
    assert not any(size.has(Max, Min) for size in plain)
    (n,) = plain[0].free_symbols
    for size in range(1, 30):
        assert [one.subs(n, size) for one in plain] == [size, size // 2 * 2, 3 - size % 2, size % 4 + 1]
