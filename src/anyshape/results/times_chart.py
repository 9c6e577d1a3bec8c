"""Times as a picture: lines over the sizes, with what eight of ten calls lie between as a band; plain SVG."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Sequence
from html import escape

from anyshape.errors import AnyshapeError
from anyshape.results.times import Series, Times
from anyshape.sizes.spelling import without_controls

_WIDTH, _HEIGHT = 720, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 66, 84
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Of Okabe and Ito: colour-blind people tell them apart; dashes say the same once more."""
_DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 4", "1 2")

_START = (
    f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" '
    'role="img" font-family="sans-serif" font-size="12" fill="#333">'
)


EMPTY_PICTURE = f"{_START}</svg>"
_SCALE = 2
"""Pixels for each of the picture's units: sharp where screens have small ones."""


def pixels_of(picture: str) -> bytes:
    """The same picture as a PNG; one sentence where that cannot be drawn."""
    try:
        from resvg_py import svg_to_bytes
    except ModuleNotFoundError:
        raise AnyshapeError("a PNG needs resvg-py: pip install 'anyshape[png]', or name a .svg") from None
    if svg_to_bytes(f"{_START}<text y='20'>ms</text></svg>") == svg_to_bytes(EMPTY_PICTURE):
        # without a font, letters are left out, and nobody is told
        raise AnyshapeError("a PNG needs a font, and none is found on this machine: name a .svg")
    return bytes(svg_to_bytes(picture, zoom=_SCALE))


def chart_of(times: Times) -> str:
    """The picture; both axes are logarithmic where one dim varies, else the sizes stand side by side."""
    places, labels = _places_of(times)
    known = [point for series in times.series for point in series.points if point is not None]
    least = min((point.low for point in known), default=0.1)
    most = max((point.high for point in known), default=1.0)
    scale = _Scale(math.floor(math.log10(max(least, 1e-6)) * 2) / 2, math.ceil(math.log10(max(most, 1e-6)) * 2) / 2)
    parts = [
        _START,
        f"<title>{_text(times.headline)}</title>",
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
        f'<text x="{_LEFT}" y="20" font-size="14">{_text(times.headline)}</text>',
        *_axes(scale, places, labels),
    ]
    for index, series in enumerate(times.series):
        parts += _curve(series, places, scale, index)
        parts += _legend(series.name, index)
    return "\n".join([*parts, "</svg>", ""])


class _Scale:
    """Milliseconds as heights."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, max(high, low + 0.5)

    def height(self, milliseconds: float) -> float:
        share = (math.log10(max(milliseconds, 1e-6)) - self.low) / (self.high - self.low)
        return round(_HEIGHT - _BOTTOM - share * (_HEIGHT - _BOTTOM - _TOP), 1)

    @property
    def ticks(self) -> list[float]:
        return [
            step * 10.0**power
            for power in range(math.floor(self.low), math.ceil(self.high) + 1)
            for step in (1, 2, 5)
            if self.low - 1e-9 <= math.log10(step * 10.0**power) <= self.high + 1e-9
        ]


def _places_of(times: Times) -> tuple[list[float], list[str]]:
    """Where each size stands from left to right, and its label."""
    varying = [dim for dim in times.sizes[0] if len({sizes[dim] for sizes in times.sizes}) > 1]
    room = _WIDTH - _LEFT - _RIGHT - 40
    if len(varying) == 1 and min(sizes[varying[0]] for sizes in times.sizes) > 0:
        (dim,) = varying
        logs = [math.log(sizes[dim]) for sizes in times.sizes]
        shares = [(one - min(logs)) / (max(logs) - min(logs)) for one in logs]
        labels = [f"{dim} {sizes[dim]}" for sizes in times.sizes]
    else:
        shares = [index / max(len(times.sizes) - 1, 1) for index in range(len(times.sizes))]
        labels = [" ".join(f"{dim} {sizes[dim]}" for dim in varying) for sizes in times.sizes]
    return [round(_LEFT + 20 + share * room, 1) for share in shares], labels


def _axes(scale: _Scale, places: Sequence[float], labels: Sequence[str]) -> Iterator[str]:
    for tick in scale.ticks:
        y = scale.height(tick)
        yield f'<path d="M{_LEFT} {y}H{_WIDTH - _RIGHT}" stroke="#ddd"/>'
        yield f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{tick:g} ms</text>'
    bottom = _HEIGHT - _BOTTOM
    for x, label in zip(places, labels, strict=True):
        yield f'<path d="M{x} {bottom}v5" stroke="#999"/>'
        yield f'<text transform="translate({x + 4} {bottom + 16}) rotate(-30)" text-anchor="end">{_text(label)}</text>'


def _curve(series: Series, places: Sequence[float], scale: _Scale, index: int) -> Iterator[str]:
    colour, dash = _COLOURS[index % len(_COLOURS)], _DASHES[index % len(_DASHES)]
    pairs = sorted(zip(places, series.points, strict=True), key=operator.itemgetter(0))
    known = [(x, point) for x, point in pairs if point is not None]
    if not known:
        return
    upper = [f"{x} {scale.height(point.high)}" for x, point in known]
    lower = [f"{x} {scale.height(point.low)}" for x, point in reversed(known)]
    yield f'<path d="M{"L".join([*upper, *lower])}Z" fill="{colour}" fill-opacity="0.15"/>'
    line = "L".join(f"{x} {scale.height(point.median)}" for x, point in known)
    yield f'<path d="M{line}" fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"/>'
    for x, point in known:
        told = _text(f"{series.name}: {point.median:.3g} ms ({point.low:.3g} to {point.high:.3g})")
        y = scale.height(point.median)
        yield f'<circle cx="{x}" cy="{y}" r="3.5" fill="{colour}"><title>{told}</title></circle>'


def _legend(name: str, index: int) -> Iterator[str]:
    colour, dash = _COLOURS[index % len(_COLOURS)], _DASHES[index % len(_DASHES)]
    x, y = _LEFT + index % 4 * 160, 36 + index // 4 * 16
    yield f'<path d="M{x} {y}h24" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"/>'
    yield f'<text x="{x + 30}" y="{y + 4}">{_text(name if len(name) <= 20 else name[:19] + "…")}</text>'


def _text(text: str) -> str:
    """Names of files and dims are anybody's."""
    return escape(without_controls(text))
