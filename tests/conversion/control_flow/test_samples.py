"""Sizes that stand for all: questions and lengths at each of them, and names for long sizes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import sympy
import torch
from torch import SymInt, Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext

from anyshape.conversion.control_flow.samples import Samples, Table, has_unknown_length, length_of_slice, remember
from anyshape.sizes.notation import parse_expression

N, M = sympy.Symbol("s0", integer=True), sympy.Symbol("s1", integer=True)


def _samples(count: int = 20) -> Samples:
    sizes = [{"n": n, "m": 2 * n} for n in range(1, count + 1)]
    meaning = {N: parse_expression("n"), M: parse_expression("m")}
    return Samples.of(Table(sizes, [N, M], lambda: meaning))


def test_a_question_is_asked_of_all_sizes_at_once() -> None:
    samples = _samples(4)
    values = samples.values(M > N + 2)
    assert values is not None
    assert values.tolist() == [False, False, True, True]
    assert samples.where(M > N + 2, answer=True).rows.tolist() == [2, 3]
    assert samples.values(sympy.Symbol("u0") > 1) is None


def test_few_sizes_or_a_single_one_do_not_speak_for_others() -> None:
    assert _samples().vary([N, M])
    assert not _samples(5).vary([N])
    assert not _samples().where(sympy.Eq(N, 3), answer=True).vary([N])


def test_the_first_of_them_is_what_torch_is_shown() -> None:
    shown = _samples().where(N > 6, answer=True).first()
    assert (shown[N], shown[M]) == (7, 14)
    assert sympy.Symbol("u0") not in shown


def test_a_named_size_is_known_at_the_samples() -> None:
    samples, name = _samples(3), sympy.Symbol("u3", integer=True)
    samples.table.name(name, samples.rows, np.array([5, 6, 7]))
    values = samples.values(name + N)
    assert values is not None
    assert values.tolist() == [6, 8, 10]


@pytest.mark.parametrize(
    ("start", "end"), [(None, None), (2, 5), (-3, None), (None, -1), (4, 2), (None, 100), (-50, 3)]
)
def test_a_slice_is_as_long_as_pythons(start: int | None, end: int | None) -> None:
    found = length_of_slice(9, start, end, _samples(3))
    assert found is not None
    assert found.tolist() == [len(range(9)[start:end])] * 3


@pytest.fixture
def x() -> Iterator[Tensor]:
    varying = StatelessSymbolicContext([DimDynamic.DYNAMIC])
    plain = torch.ones(6, dtype=torch.int64)
    with FakeTensorMode(shape_env=ShapeEnv()) as mode:
        yield mode.from_tensor(plain, symbolic_context=varying)


def test_a_slice_up_to_a_value_has_an_unknown_length(x: Tensor) -> None:
    assert x.fake_mode.shape_env is not None  # type: ignore[attr-defined]
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        value = x.fake_mode.shape_env.create_unbacked_symint()  # type: ignore[attr-defined]
    assert isinstance(value, SymInt)
    assert has_unknown_length(slice(None, value))
    assert not has_unknown_length(slice(value, value + 2))
    assert not has_unknown_length(slice(None, x.shape[0]))
    assert not has_unknown_length(slice(None, None, 2))


def test_only_a_new_symbol_is_remembered(x: Tensor) -> None:
    samples = _samples(3)
    remember(x.shape[0], np.array([4, 5, 6]), samples)
    assert isinstance(x.shape[0], SymInt)
    values = samples.values(x.shape[0].node.expr)
    assert values is not None
    assert values.tolist() == [4, 5, 6]
    remember(x.shape[0], np.array([0, 0, 0]), samples)
    assert samples.table.columns()[x.shape[0].node.expr].tolist() == [4, 5, 6]
