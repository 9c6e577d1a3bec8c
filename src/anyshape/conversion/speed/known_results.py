"""What an operator gives in a trace, known without running what it is made of, or not asked for at all.

torch finds the shape of a result by running the operator's definition on tensors without data: a batch norm takes
thirty steps of arithmetic with symbols for what has the shape of its input. Here such operators give just that, where
the input is contiguous and nothing is left to find out; else torch is asked as before.
"""

from __future__ import annotations

import contextlib
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import torch

from anyshape.conversion.speed import shortcut
from anyshape.sizes.expressions import bounds_of_rest
from anyshape.source.live_code import LOCK
from anyshape.torchkit.capture import expression_of
from anyshape.torchkit.patches import replaced
from anyshape.torchkit.private_names import lookup

_aten = torch.ops.aten
_ELEMENTWISE = (
    _aten.relu.default, _aten.gelu.default, _aten.silu.default, _aten.sigmoid.default, _aten.tanh.default,
    _aten.elu.default, _aten.leaky_relu.default, _aten.hardtanh.default, _aten.hardswish.default,
    _aten.hardsigmoid.default, _aten.mish.default, _aten.softplus.default, _aten.exp.default, _aten.erf.default,
    _aten.neg.default, _aten.abs.default, _aten.sqrt.default, _aten.rsqrt.default, _aten.cos.default, _aten.sin.default,
)  # fmt: skip
"""One number for each number, of the same floating type."""
_NORM = getattr(lookup("torch.ops.aten._native_batch_norm_legit_no_training"), "default", None)
_TABLE = "torch._subclasses.fake_impls.get_fast_op_impls"
"""Gives torch's own table of results that need no search: by operator, called with the mode and the arguments."""
_IS_CONTIGUOUS = "torch._prims_common.is_contiguous_or_false"
_PROXIES = "torch.fx.experimental.proxy_tensor"
_TENSOR = "torch._subclasses.fake_tensor.FakeTensor"


@shortcut
@contextlib.contextmanager
def layouts_unasked() -> Iterator[None]:
    """Inside, nodes of a program do not note in which order their results lie in memory, which no translation reads:
    with sizes that are formulas of formulas a trace would spend a fifth of its time on it.
    """
    with replaced(f"{_PROXIES}._extract_tensor_metadata", lambda original: partial(original, include_contiguity=False)):
        yield


@shortcut
@contextlib.contextmanager
def lines_unread() -> Iterator[None]:
    """Inside, the stack of a node is noted without the text of its lines, which is read where it is shown: a stack has
    a hundred frames and more, and few of them are the model's.
    """

    def stack_of(frames: Sequence[Mapping[str, Any]], skip: int) -> traceback.StackSummary:
        places = ((frame["filename"], frame["line"], frame["name"]) for frame in reversed(frames[skip:]))
        return traceback.StackSummary(traceback.FrameSummary(*place, lookup_line=False) for place in places)

    with replaced("torch.utils._traceback._extract_symbolized_tb", lambda _: stack_of):
        yield


@shortcut
@contextlib.contextmanager
def plain_maxima() -> Iterator[None]:
    """Inside, the larger or smaller of two sizes is one of them where it is seen which, as of sizes rounded up.

    Padding that lets a convolution come out even takes the larger of `2 * ceil(n / 2) + 1 - n` and 0. If that is kept,
    the size behind each layer is a formula that holds the one before three times, and torch thinks for minutes.
    """

    def make(genuine: Callable[..., Any], *, is_larger: bool) -> Callable[..., Any]:
        def choose(one: torch.SymInt, other: Any) -> Any:
            if isinstance(other, int | torch.SymInt):
                low, high = bounds_of_rest(expression_of(one) - expression_of(other))
                if low >= 0 or high <= 0:
                    return one if bool(low >= 0) == is_larger else other
            return genuine(one, other)

        return choose

    with (
        replaced("torch.SymInt.__sym_max__", partial(make, is_larger=True)),
        replaced("torch.SymInt.__sym_min__", partial(make, is_larger=False)),
    ):
        yield


@shortcut
@contextlib.contextmanager
def known_results() -> Iterator[None]:
    """Inside, a trace is told some results. A torch that has moved what this needs finds them by itself."""
    make_table, is_contiguous = lookup(_TABLE), lookup(_IS_CONTIGUOUS)
    if make_table is None or is_contiguous is None or lookup(_TENSOR) is None:
        yield
        return
    table = make_table()
    ways: dict[Any, Callable[..., Any]] = dict.fromkeys(_ELEMENTWISE, _like_the_first)
    if _NORM is not None:
        ways[_NORM] = _results_of_norm
    with LOCK:
        telling = _Telling(table, is_contiguous)
        added = {op: partial(telling.result, op, way) for op, way in ways.items() if op not in table}
        table.update(added)
        try:
            yield
        finally:
            telling.is_over = True
            for op in added:
                table.pop(op, None)


class _Telling:
    """Tells results to the traces of one thread. The table is torch's own: other threads are sent on to torch."""

    def __init__(self, table: dict[Any, Callable[..., Any]], is_contiguous: Callable[[torch.Tensor], bool]) -> None:
        self._table, self._is_contiguous = table, is_contiguous
        self._thread = threading.get_ident()
        self.is_over = False

    def result(self, op: Any, way: Callable[..., Any], mode: Any, *args: Any, **kwargs: Any) -> Any:
        if threading.get_ident() == self._thread and args[0].is_floating_point() and self._is_contiguous(args[0]):
            found = way(mode, *args, **kwargs)
            if found is not NotImplemented:
                return found
        # out of the table while torch is asked: it would find us there again
        entry = self._table.pop(op, None)
        try:
            with mode:
                return op(*args, **kwargs)
        finally:
            if entry is not None and not self.is_over:
                self._table[op] = entry


def _like_the_first(mode: Any, first: torch.Tensor, *_rest: Any, **_named: Any) -> torch.Tensor:
    return _empty_tensor(mode, first, first.shape)


def _results_of_norm(mode: Any, values: torch.Tensor, *given: Any) -> Any:
    """Where all are of one type, and the channels are as many as were learnt: else something is to be found out."""
    weight, bias, mean, variance = given[:4]
    channels = values.shape[1] if values.dim() > 1 else None
    if not isinstance(channels, int) or mean is None or variance is None or values.device.type != "cpu":
        return NotImplemented  # on other devices the two further results are not empty
    for held in (weight, bias, mean, variance):
        if held is not None and (held.dtype != values.dtype or held.shape != (channels,)):
            return NotImplemented
    return tuple(_empty_tensor(mode, values, shape) for shape in (values.shape, (0,), (0,)))


def _empty_tensor(mode: Any, like: torch.Tensor, shape: Any) -> torch.Tensor:
    fake: torch.Tensor = lookup(_TENSOR)(mode, torch.empty(shape, dtype=like.dtype, device="meta"), device=like.device)
    return fake
