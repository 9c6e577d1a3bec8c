"""Calls that PyTorch runs unchecked, and does not define, raise instead: a size that is tried may be an accident.

`scaled_dot_product_attention` takes keys and values of two lengths and reads beyond the end of the shorter ones: what
it gives then changes from call to call, and may end the process. `ctc_loss` reads beside the steps where a label is no
class. A batch norm by its inner name writes beside statistics of other channels. A recurrent layer over a packed
sequence writes beside the state of another batch, and an LSTM by its function's name beside weights that do not fit.
Bags of embeddings may begin behind the last index. A search among boundaries that do not rise ends anywhere. What else
may end the process is rehearsed in a copy of it.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeGuard

import torch

from anyshape.source.live_code import LOCK
from anyshape.torchkit.operator_mode import OperatorMode
from anyshape.torchkit.private_names import lookup
from anyshape.torchkit.rehearsal import may_end_the_process, signature_of_call, survives


class UndefinedCallError(RuntimeError):
    """A call whose result PyTorch does not define."""


def _is_tensor(value: Any) -> TypeGuard[torch.Tensor]:
    return isinstance(value, torch.Tensor)


def _check_attention(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, *_: Any, **__: Any) -> None:
    del query
    if key.dim() > 1 and value.dim() > 1 and key.shape[-2] != value.shape[-2]:
        lengths = f"{key.shape[-2]} keys and {value.shape[-2]} values"
        raise UndefinedCallError(f"scaled_dot_product_attention has {lengths}: PyTorch reads beyond the shorter ones")


def _check_channels(*args: Any, **named: Any) -> None:
    x, *given = (one for one in (*args[:1], named.pop("input", None), *args[1:5], *named.values()) if _is_tensor(one))
    channels = x.shape[1] if x.dim() > 1 else 1
    if any(one.numel() != channels for one in given):
        raise UndefinedCallError(f"a batch norm of {channels} channels has other statistics: PyTorch reads beside them")


def _check_bags(weight: torch.Tensor, indices: torch.Tensor, offsets: torch.Tensor, *how: Any, **__: Any) -> None:
    _scale, mode, _sparse, _weights, ends_with_size = (*how, *_HOW_BAGS_ARE_MADE[len(how) :])[:5]
    if mode == _LARGEST_OF_BAG and ends_with_size and [indices.numel()] != offsets[-1:].tolist():
        raise UndefinedCallError("embedding_bag has a last offset that is not the end: PyTorch writes beside the bags")
    for one, most in ((indices, weight.shape[0] - 1), (offsets, indices.numel())):
        if one.numel() and (int(one.min()) < 0 or int(one.max()) > most):
            raise UndefinedCallError("embedding_bag has an index or an offset beyond the end: PyTorch looks it up")


_HOW_BAGS_ARE_MADE = (False, 0, False, None, False)
_LARGEST_OF_BAG = 2
"""Among the modes of an `embedding_bag`."""


def _check_lstm(x: torch.Tensor, weights: Sequence[Any], states: Sequence[torch.Tensor], hidden: int) -> None:
    """Of one layer, or of several: input weights, hidden weights and, if there are any, biases in turn."""
    fits = x.shape[-1] == weights[0].shape[-1] and all(one.shape[0] == 4 * hidden for one in weights)
    matrices = [one for one in weights if one.dim() > 1]
    fits &= all(one.shape[-1] == hidden for one in (*matrices[1::2], *states))
    fits &= all(one.shape[-2] == x.shape[1] and one.numel() == states[0].numel() for one in states)
    if not fits:
        raise UndefinedCallError("an LSTM has weights or a state of another size: PyTorch writes beside them")


def _check_mkldnn_layer(x: Any, *given: Any, **_: Any) -> None:
    weights, states, (_reverse, _batches, mode, hidden) = given[:4], given[4:6], given[6:10]
    if mode == _LSTM:
        _check_lstm(x, weights, states, hidden)


_LSTM = 2
"""Among the modes of a recurrent layer."""
_CHECKS: Mapping[str, Callable[..., None]] = {
    "aten::_scaled_dot_product_flash_attention_for_cpu": _check_attention,
    "aten::_scaled_dot_product_attention_math": _check_attention,
    "aten::_scaled_dot_product_flash_attention": _check_attention,
    "aten::_scaled_dot_product_efficient_attention": _check_attention,
    "aten::_scaled_dot_product_fused_attention_overrideable": _check_attention,
    "aten::native_batch_norm": _check_channels,
    "aten::_native_batch_norm_legit": _check_channels,
    "aten::_native_batch_norm_legit_no_training": _check_channels,
    "aten::_batch_norm_with_update": _check_channels,
    "aten::_batch_norm_with_update_functional": _check_channels,
    "aten::_batch_norm_no_update": _check_channels,
    "aten::_embedding_bag": _check_bags,
    "aten::_embedding_bag_forward_only": _check_bags,
    "aten::mkldnn_rnn_layer": _check_mkldnn_layer,
}
"""By the operator's name: what raises where a call is not defined."""


class DefinedCalls(OperatorMode):
    """Inside, every such call raises, however it was reached: for probes, whose sizes need not fit each other."""

    def __init__(self) -> None:
        super().__init__()
        self._rehearsed: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        check = _CHECKS.get(func.name().partition(".")[0])
        if check is not None:
            check(*args, **(kwargs or {}))
        if may_end_the_process(func):
            self._rehearse(func, args, kwargs or {})
        return func(*args, **(kwargs or {}))

    def _rehearse(self, func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        call = signature_of_call(func, args, kwargs)
        if call in self._rehearsed:
            return
        if not survives(func, args, kwargs):
            raise UndefinedCallError(f"{func.name()} ends the process at such sizes")
        self._rehearsed.add(call)


def _check_labels(log_probs: torch.Tensor, targets: torch.Tensor, *_: Any, **__: Any) -> None:
    if targets.numel() and (int(targets.min()) < 0 or int(targets.max()) >= log_probs.shape[-1]):
        raise UndefinedCallError("ctc_loss has a label that is no class: PyTorch reads beside the steps")


def _check_layer(*args: Any, **named: Any) -> None:
    """Of `torch.lstm`; layers with projections have states of two sizes, and look at theirs themselves."""
    _check_packed(*args, **named)
    if len(args) <= 2 or _is_tensor(args[1]) or args[1][0].shape[-1] != args[1][1].shape[-1]:
        return
    x, states, weights, *_, batch_first = args
    _check_lstm(x.transpose(0, 1) if batch_first else x, weights, states, states[0].shape[-1])


def _check_packed(*args: Any, **named: Any) -> None:
    """Of a sequence that is not packed the second argument is the state itself, and PyTorch looks at its size."""
    batches = named.get("batch_sizes", args[1] if len(args) > 1 else None)
    state = named.get("hx", args[2] if len(args) > 2 else None)
    states = [one for one in (state if isinstance(state, (tuple, list)) else [state]) if _is_tensor(one)]
    if not _is_tensor(batches) or batches.dim() != 1 or not states or batches.device.type == "meta":
        return
    batch = int(batches[0]) if batches.numel() else 0
    if any(one.dim() != 3 or one.shape[1] != batch or len(one) != len(states[0]) for one in states):
        raise UndefinedCallError(f"a recurrent layer has {batch} packed sequences, and a state of another batch")


def _check_boundaries(boundaries: Any, sorter: Any = None) -> None:
    if not _is_tensor(boundaries) or boundaries.device.type == "meta" or sorter is not None or not boundaries.dim():
        return
    if bool((boundaries[..., 1:] < boundaries[..., :-1]).any()):
        raise UndefinedCallError("boundaries do not rise: PyTorch finds a place that depends on where it looks first")


def _check_search(sorted_sequence: Any, *_: Any, sorter: Any = None, **__: Any) -> None:
    _check_boundaries(sorted_sequence, sorter)


def _check_buckets(input: Any, boundaries: Any, **_: Any) -> None:  # noqa: A002
    del input
    _check_boundaries(boundaries)


_RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")
_LAYERS = lookup("torch._VF")
"""How layers reach them."""
_BY_NAME: Mapping[tuple[Any, str], Callable[..., None]] = {
    **{(owner, name): _check_packed for owner in (torch, _LAYERS) if owner is not None for name in _RECURRENT},
    **{(owner, "lstm"): _check_layer for owner in (torch, _LAYERS) if owner is not None},
    (torch, "embedding_bag"): _check_bags,
    (torch.nn.functional, "scaled_dot_product_attention"): _check_attention,
    (torch.nn.functional, "ctc_loss"): _check_labels,
    (torch, "native_batch_norm"): _check_channels,
    (torch, "bucketize"): _check_buckets,
    (torch, "searchsorted"): _check_search,
}


@contextlib.contextmanager
def calls_are_checked() -> Iterator[None]:
    """Inside, calls by the functions' own names are checked, at no cost for others: for the many runs of a check."""
    with LOCK:
        plain = [(owner, name, getattr(owner, name)) for owner, name in _BY_NAME]
        try:
            for (owner, name, function), check in zip(plain, _BY_NAME.values(), strict=True):
                setattr(owner, name, _checked_first(check, function))
            yield
        finally:
            for owner, name, function in plain:
                setattr(owner, name, function)


@functools.lru_cache(maxsize=64)  # the same ones for every run
def _checked_first(check: Callable[..., None], plain: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(plain)
    def checked(*args: Any, **kwargs: Any) -> Any:
        check(*args, **kwargs)
        return plain(*args, **kwargs)

    return checked
