"""Draws: where a module takes random numbers, and standard noise that is given to it instead, the module untouched.

Whatever is drawn is made of one of two kinds of noise: standard normal, or uniform in [0, 1). A mode of torch's puts
noise that somebody hands in where a function would draw, in eager and in a trace alike; what it does not know draws as
ever, which shows in the generators.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any, Literal, Protocol

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812  as everybody calls it
from torch import Tensor
from torch.overrides import TorchFunctionMode

from anyshape.errors import DeclarationError
from anyshape.source.spans import Span, is_users, span_of_line, span_of_stack
from anyshape.torchkit.operator_mode import OperatorMode

Noise = Literal["normal", "uniform"]


class Draw(Protocol):
    """Gives noise of a kind; `is_result` where it is itself what the function returns."""

    def __call__(
        self, noise: Noise, shape: Sequence[int], dtype: torch.dtype, device: torch.device, *, is_result: bool = False
    ) -> Tensor: ...


def drawn_noise(wanted: WantedNoise) -> Tensor:
    """From torch's own generator, by the two functions that every way to a file knows."""
    make = torch.randn if wanted.noise == "normal" else torch.rand
    return make(wanted.shape, dtype=wanted.dtype)


def standard_noise(
    noise: Noise, shape: Sequence[int], dtype: torch.dtype, generator: torch.Generator | None = None
) -> Tensor:
    made = torch.randn if noise == "normal" else torch.rand
    return made(tuple(shape), dtype=dtype, generator=generator)


# ---- what functions make of noise; what is drawn for flags and numbers of a narrow type is drawn in float32


def _like(draw: Draw, noise: Noise, values: Tensor, *, is_result: bool = False) -> Tensor:
    if not values.is_floating_point():
        raise NotDrawnError(f"numbers of type {str(values.dtype).removeprefix('torch.')}")
    return draw(noise, values.shape, values.dtype, values.device, is_result=is_result)


def _uniform(draw: Draw, values: Tensor, shape: Sequence[int] | None = None) -> Tensor:
    dtype = torch.float64 if values.dtype == torch.float64 else torch.float32
    return draw("uniform", values.shape if shape is None else shape, dtype, values.device)


class NotDrawnError(Exception):
    """Standard noise does not express what is drawn."""


def _filler(noise: Noise, empty: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """`randn` and its like: the noise itself, in the shape and type of what would be empty."""

    def fill(draw: Draw, *args: Any, generator: Any = None, **options: Any) -> Tensor:
        del generator
        return _like(draw, noise, empty(*args, **options), is_result=True)

    return fill


def _normal(draw: Draw, mean: Any, std: Any = 1.0, size: Any = None, *, generator: Any = None, **options: Any) -> Any:
    del generator
    like = torch.empty(size, **options) if size is not None else torch.empty_like(mean + std)
    noise = _like(draw, "normal", like)
    made: Tensor = mean + std * noise
    return made


def _fill_normal(draw: Draw, into: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Tensor:
    del generator
    is_standard = type(mean) in (int, float) and type(std) in (int, float) and (mean, std) == (0, 1)
    noise = _like(draw, "normal", into, is_result=is_standard)
    return into.copy_(noise if is_standard else mean + std * noise)


def _fill_log_normal(draw: Draw, into: Tensor, mean: float = 1.0, std: float = 2.0, *, generator: Any = None) -> Tensor:
    del generator
    return into.copy_((mean + std * _like(draw, "normal", into)).exp())


def _fill_uniform(draw: Draw, into: Tensor, *ends: float, generator: Any = None, **named: float) -> Tensor:
    del generator
    low, high = (*ends, *(named.get(name, end) for name, end in (("from", 0.0), ("to", 1.0))[len(ends) :]))
    is_standard = type(low) in (int, float) and type(high) in (int, float) and (low, high) == (0, 1)
    noise = _like(draw, "uniform", into, is_result=is_standard)
    return into.copy_(noise if is_standard else low + (high - low) * noise)


def _exponential(draw: Draw, values: Tensor) -> Tensor:
    """Uniform numbers are multiples of a power of two, so that nothing is lost in `1 - u`; zero is never drawn."""
    noise = _uniform(draw, values)
    return -(1 - noise).log().clamp(max=-torch.finfo(noise.dtype).tiny)


def _fill_exponential(draw: Draw, into: Tensor, lambd: float = 1.0, *, generator: Any = None) -> Tensor:
    del generator
    return into.copy_(_exponential(draw, into) / lambd)


def _fill_cauchy(draw: Draw, into: Tensor, median: float = 0.0, sigma: float = 1.0, *, generator: Any = None) -> Tensor:
    del generator
    return into.copy_(median + sigma * (math.pi * (_uniform(draw, into) - 0.5)).tan())


def _fill_geometric(draw: Draw, into: Tensor, p: float, *, generator: Any = None) -> Tensor:
    del generator
    return into.copy_((-_exponential(draw, into) / math.log1p(-p)).ceil().clamp(min=1))


def _bernoulli(draw: Draw, values: Tensor, p: Any = None, *, generator: Any = None) -> Tensor:
    del generator
    return (_uniform(draw, values) < (values if p is None else p)).to(values.dtype)


def _fill_bernoulli(draw: Draw, into: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    del generator
    return into.copy_((_uniform(draw, into) < p).to(into.dtype))


_EXACT = 2**20
"""Up to so many values, numbers of float32 give each about as often as any other."""


def _integers(draw: Draw, like: Tensor, low: Any, high: Any) -> Tensor:
    count = high - low
    if type(count) is int and count > _EXACT:
        raise NotDrawnError(f"one of {count} integers")
    whole = (_uniform(draw, like) * count).floor().to(torch.int64)
    made: Tensor = whole.clamp(0, count - 1) + low  # the product may be rounded up to the end
    return made.to(like.dtype)


def _randint(draw: Draw, *args: Any, generator: Any = None, **options: Any) -> Tensor:
    del generator
    low = options.pop("low", 0)
    if "high" in options:
        high = options.pop("high")
        low, args = (args[0], args[1:]) if args and isinstance(args[0], int | torch.SymInt) else (low, args)
    elif len(args) > 1 and not isinstance(args[1], (tuple, list)):
        low, high, *args = args  # type: ignore[assignment]
    else:
        high, *args = args  # type: ignore[assignment]
    options.setdefault("dtype", torch.int64)
    return _integers(draw, torch.empty(*args, **options), low, high)


def _randint_like(draw: Draw, values: Tensor, low: Any = 0, high: Any = None, **options: Any) -> Tensor:
    options.pop("generator", None)
    low, high = (0, low) if high is None else (low, high)
    return _integers(draw, torch.empty_like(values, **options), low, high)


def _fill_integers(draw: Draw, into: Tensor, *ends: int, generator: Any = None, **named: int) -> Tensor:
    del generator
    ends = (*ends, named["to"]) if "to" in named else ends
    low = named.get("from", 0)
    if not ends:
        raise NotDrawnError("any number of its type")
    low, high = (low, ends[0]) if len(ends) == 1 else ends
    return into.copy_(_integers(draw, into, low, high))


def _permutation(draw: Draw, n: Any, *, generator: Any = None, dtype: Any = torch.int64, **options: Any) -> Tensor:
    del generator
    return _uniform(draw, torch.empty(n, **options)).argsort().to(dtype)


def _multinomial(
    draw: Draw, weights: Tensor, num_samples: Any, replacement: bool = False, *, generator: Any = None
) -> Tensor:
    del generator
    if replacement or num_samples == 1:
        ends = weights.cumsum(-1)
        noise = _uniform(draw, weights, (*weights.shape[:-1], num_samples))
        return (noise.unsqueeze(-1) >= (ends / ends[..., -1:])[..., :-1].unsqueeze(-2)).sum(-1)
    return (weights / _exponential(draw, weights)).topk(num_samples).indices  # the first that decay


def _share_kept(draw: Draw, values: Tensor, p: float, axes: int | None) -> Tensor:
    """What dropout keeps: single elements, or whole ones along the first `axes`."""
    shape = values.shape if axes is None else (*values.shape[:axes], *(1 for _ in values.shape[axes:]))
    return (_uniform(draw, values, shape) >= p).to(values.dtype)


def _plain_dropout(draw: Draw, values: Tensor, p: float, axes: int | None) -> Tensor:
    return values * 0.0 if p == 1 else values * _share_kept(draw, values, p, axes) / (1 - p)


_SATURATED = -1.7580993408473766
"""What SELU tends to."""


def _alpha_dropout(draw: Draw, values: Tensor, p: float, axes: int | None) -> Tensor:
    if p == 1:
        return values * 0.0
    kept, scale = _share_kept(draw, values, p, axes), 1 / math.sqrt((_SATURATED**2 * p + 1) * (1 - p))
    return values * kept * scale + (_SATURATED * scale) * (1 - kept) - _SATURATED * scale * p


_Dropout = Callable[[Draw, Tensor, float, int | None], Tensor]


def _dropout(drop: _Dropout, axes: int | None = None, *, trains: bool = True, unbatched: int = 0) -> _Maker:
    """`trains` is the default; an input with `unbatched` axes is one sample, which has no batch."""

    def dropped(draw: Draw, input: Tensor, p: float = 0.5, *flags: bool, **named: bool) -> Any:  # noqa: A002
        training = (*flags, named.get("train", named.get("training", trains)))[0]
        if not training or p == 0:
            return input
        made = drop(draw, input, p, 1 if unbatched and input.dim() == unbatched else axes)
        return input.copy_(made) if named.get("inplace", len(flags) > 1 and flags[1]) else made

    return dropped


def _written_dropout(drop: _Dropout, axes: int | None = None) -> _Maker:
    def dropped(draw: Draw, values: Tensor, p: float, train: bool) -> Any:
        return values.copy_(drop(draw, values, p, axes)) if train and p else values

    return dropped


def _rrelu(
    draw: Draw,
    input: Tensor,  # noqa: A002  a keyword of torch's
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    *_: Any,
    **named: Any,
) -> Tensor:
    slope = lower + (upper - lower) * _uniform(draw, input).to(input.dtype) if training else (lower + upper) / 2
    made = torch.where(input > 0, input, input * slope)
    return input.copy_(made) if named.get("inplace") else made


def _gumbel_softmax(
    draw: Draw, logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    del eps  # which torch does not use either
    soft = ((logits - _exponential(draw, logits).to(logits.dtype).log()) / tau).softmax(dim)
    if not hard:
        return soft
    best = soft.max(dim, keepdim=True)[1]
    return torch.zeros_like(logits).scatter_(dim, best, 1.0) - soft.detach() + soft


def _attention(
    draw: Draw, query: Tensor, key: Tensor, value: Tensor, attn_mask: Any = None, dropout_p: float = 0.0, **options: Any
) -> Tensor:
    attend = F.scaled_dot_product_attention
    if not dropout_p:
        return attend(query, key, value, attn_mask, 0.0, **options)
    if options.pop("enable_gqa", False):
        key, value = (one.repeat_interleave(query.shape[-3] // one.shape[-3], -3) for one in (key, value))
    # attention to a unit matrix gives its own weights, of which some are dropped
    unit = torch.eye(key.shape[-2], dtype=query.dtype, device=query.device).expand(*key.shape[:-1], key.shape[-2])
    weights = attend(query, key, unit, attn_mask, 0.0, **options)
    return _plain_dropout(draw, weights, dropout_p, None) @ value


_Maker = Callable[..., Any]
_MAKERS: Mapping[Any, _Maker] = {
    torch.randn: _filler("normal", torch.empty),
    torch.randn_like: _filler("normal", torch.empty_like),
    torch.rand: _filler("uniform", torch.empty),
    torch.rand_like: _filler("uniform", torch.empty_like),
    torch.normal: _normal,
    torch.randint: _randint,
    torch.randint_like: _randint_like,
    torch.randperm: _permutation,
    torch.bernoulli: _bernoulli,
    Tensor.bernoulli: _bernoulli,
    torch.multinomial: _multinomial,
    Tensor.multinomial: _multinomial,
    Tensor.normal_: _fill_normal,
    Tensor.log_normal_: _fill_log_normal,
    Tensor.uniform_: _fill_uniform,
    Tensor.exponential_: _fill_exponential,
    Tensor.cauchy_: _fill_cauchy,
    Tensor.geometric_: _fill_geometric,
    Tensor.bernoulli_: _fill_bernoulli,
    Tensor.random_: _fill_integers,
    F.dropout: _dropout(_plain_dropout),
    F.dropout1d: _dropout(_plain_dropout, 2, unbatched=2),
    F.dropout2d: _dropout(_plain_dropout, 2),
    F.dropout3d: _dropout(_plain_dropout, 2, unbatched=4),
    F.alpha_dropout: _dropout(_alpha_dropout, trains=False),
    F.feature_alpha_dropout: _dropout(_alpha_dropout, 2, trains=False),
    torch.dropout: _dropout(_plain_dropout),
    torch.feature_dropout: _dropout(_plain_dropout, 2),
    torch.alpha_dropout: _dropout(_alpha_dropout),
    torch.feature_alpha_dropout: _dropout(_alpha_dropout, 2),
    torch.dropout_: _written_dropout(_plain_dropout),
    torch.feature_dropout_: _written_dropout(_plain_dropout, 2),
    torch.alpha_dropout_: _written_dropout(_alpha_dropout),
    F.rrelu: _rrelu,
    torch.rrelu: _rrelu,
    F.gumbel_softmax: _gumbel_softmax,
    F.scaled_dot_product_attention: _attention,
}
"""What is drawn from noise instead."""


# ---- noise in the place of draws


@dataclass(frozen=True)
class WantedNoise:
    """What a function would draw, and where it was called; `is_result` where it returns just that."""

    noise: Noise
    shape: tuple[int, ...]
    dtype: torch.dtype
    function: str
    frame: FrameType
    is_result: bool


class GivenDraws(TorchFunctionMode):
    """Inside, functions take what they would draw from somebody.

    What standard noise does not express is refused, or with `or_draw` drawn as ever.
    """

    def __init__(self, give: Callable[[WantedNoise], Tensor], *, or_draw: bool = False) -> None:
        super().__init__()
        self._give, self._or_draw = give, or_draw

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        del types
        make, kwargs = _MAKERS.get(func), dict(kwargs or {})
        if make is None or torch.compiler.is_dynamo_compiling():
            return func(*args, **kwargs)
        name, frame, out = str(func.__name__), sys._getframe(1), kwargs.pop("out", None)

        def draw(
            noise: Noise, shape: Sequence[int], dtype: torch.dtype, device: torch.device, *, is_result: bool = False
        ) -> Tensor:
            given = self._give(WantedNoise(noise, tuple(shape), dtype, name, frame, is_result))
            return given.to(device=device, dtype=dtype)

        try:
            made = make(draw, *args, **kwargs)
        except NotDrawnError as error:
            if self._or_draw:
                return func(*args, **kwargs, **({} if out is None else {"out": out}))
            span = span_of_stack(frame)
            place = f" ({span.path}:{span.line})" if span is not None else ""
            raise DeclarationError(f"`{name}`{place} draws {error}, which standard noise does not express") from None
        return made if out is None else out.copy_(made)


# ---- where random numbers are drawn


class _DrawWatch(OperatorMode):
    """Notes where an operator has moved a generator, and which."""

    def __init__(self) -> None:
        super().__init__()
        self.places: dict[Span | None, str] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        del types
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded not in getattr(func, "tags", ()):
            return func(*args, **kwargs)
        before = torch.default_generator.get_state()
        result = func(*args, **kwargs)
        has_own = kwargs.get("generator") is not None or torch.accelerator.is_available()
        if has_own or not torch.equal(before, torch.default_generator.get_state()):
            self.places.setdefault(span_of_stack(sys._getframe(1)), func.overloadpacket.__name__)
        return result


def drawing_places(run: Callable[[], object], *, torchs_alone: bool = False) -> dict[Span | None, str]:
    """Where torch draws in `run`, and by which operator; where it does not, the lines at which Python or numpy do."""
    watch = _DrawWatch()
    with watch:
        run()
    return watch.places if watch.places or torchs_alone else _lines_that_draw(run)


def _lines_that_draw(run: Callable[[], object]) -> dict[Span | None, str]:
    """The user's lines after which a generator of Python's or numpy's is another."""
    found: dict[Span | None, str] = {}
    known, depth = _states(), 0

    def follow(frame: FrameType, event: str, _: object) -> Any:
        nonlocal known, depth
        if event != "call" or not is_users(frame.f_code.co_filename):
            return None
        known = known if depth else _states()  # outside of the model, generators are seeded
        depth += 1
        return step_from(frame.f_lineno)

    def step_from(line: int) -> Any:
        def step(frame: FrameType, event: str, _: object) -> Any:
            nonlocal line, known, depth
            states = _states()
            for whose in (name for name, state in states.items() if state != known[name]):
                found.setdefault(span_of_line(frame.f_code, line), whose)
            known, line, depth = states, frame.f_lineno if event == "line" else line, depth - (event == "return")
            return step

        return step

    before = sys.gettrace()
    sys.settrace(follow)
    try:
        run()
    finally:
        sys.settrace(before)
    return found


def _states() -> dict[str, object]:
    kept: Any = np.random.get_state(legacy=False)  # noqa: NPY002  the user's code may draw from it
    return {"random": random.getstate(), "numpy.random": (kept["state"]["pos"], kept["state"]["key"].tobytes())}
