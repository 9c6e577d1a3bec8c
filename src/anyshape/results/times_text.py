"""Times as text: a table with a bar for each row, as wide as the terminal lets, in ASCII where it has no blocks."""

from __future__ import annotations

import math
import shutil
import sys
from collections import Counter
from collections.abc import Iterator

from anyshape.results.text import labelled_lines
from anyshape.results.times import TimedPoint, TimeRatio, Times
from anyshape.sizes import budgets
from anyshape.sizes.notation import Sizes

_BLOCKS = " ▏▎▍▌▋▊▉█"
_SHORTEST_BAR, _LONGEST_BAR = 8, 40
_CLOCKS = {
    "thread": "the thread's own time, whatever else the machine does",
    "wall": "the wall clock, which other programs lengthen",
}


def headline_of(times: Times) -> str:
    sizes = f"{len(times.sizes)} size{'s' if len(times.sizes) != 1 else ''}"
    threads = f"{times.threads} thread{'s' if times.threads != 1 else ''}"
    return f"timed: {times.series[0].name} at {sizes} in {times.runtime} on {threads}"


def times_text(times: Times, *, width: int | None = None, blocks: bool | None = None) -> str:
    """The whole; width and blocks are those of the terminal where they are not told."""
    width = shutil.get_terminal_size((100, 24)).columns if width is None else width
    blocks = _has_blocks() if blocks is None else blocks
    table = _with_bars(list(_rows(times)), times, width, blocks=blocks)
    return "\n".join([headline_of(times), *labelled_lines(facts_of(times)), "", *table])


def facts_of(times: Times) -> Iterator[tuple[str, str]]:
    yield "machine", times.machine
    yield "clock", f"{_CLOCKS[times.clock]}; at least {times.rounds} rounds, in random order"
    if any(point is not None and point.memory is not None for one in times.series for point in one.points):
        yield "memory", "what a fresh process grew by in its first run: no weights, no inputs, nothing of PyTorch's"
    if times.nodes:
        at = described(times.sizes[times.profiled_at])
        yield "nodes", f"{_shares(times)}{f' at {at}' if at else ''}"
    yield from (("note", note) for note in times.notes)


def described(sizes: Sizes) -> str:
    """`batch = 1, seq = 16`."""
    return ", ".join(f"{dim} = {size}" for dim, size in sizes.items())


def _shares(times: Times) -> str:
    """By operator: names of nodes say little to a reader; the JSON has them."""
    shares: Counter[str] = Counter()
    for operator, share in times.nodes.values():
        shares[operator] += share  # type: ignore[assignment]
    return ", ".join(f"{name} {share:.0%}" for name, share in shares.most_common(budgets.MOST_NODES_SHOWN))


# ---- the table


_HEAD = ("sizes", "", "median", "10-90 %", "ratio", "memory")
_Row = tuple[tuple[str, ...], float | None]
"""Its cells, and the milliseconds of its bar."""


def _rows(times: Times) -> Iterator[_Row]:
    ratios = {(one.name, one.size): one for one in times.ratios}
    for index, sizes in enumerate(times.sizes):
        place = described(sizes) or "as it is"
        for series in times.series:
            point = series.points[index]
            cells = _cells(point, ratios.get((series.name, index)))
            yield (place, series.name, *cells), None if point is None else point.median
            place = ""


def _cells(point: TimedPoint | None, ratio: TimeRatio | None) -> tuple[str, ...]:
    if point is None:
        return "not timed", "", "", ""
    unit = f"{_figure(point.median)} ms"
    return unit, f"{_figure(point.low)}-{_figure(point.high)}", _ratio_in_words(ratio), _in_bytes(point.memory)


def _figure(milliseconds: float) -> str:
    """Three digits that count."""
    digits = max(0, 2 - math.floor(math.log10(milliseconds))) if milliseconds > 0 else 0
    return f"{milliseconds:.{min(digits, 5)}f}"


def _ratio_in_words(ratio: TimeRatio | None) -> str:
    if ratio is None:
        return ""
    if not math.isfinite(ratio.high):
        return f"{ratio.median:.2f} (too few rounds)"
    told = f"{ratio.median:.2f} ({ratio.low:.2f}-{ratio.high:.2f})"
    return f"{told} noise" if ratio.is_noise else told


def _in_bytes(memory: int | None) -> str:
    if memory is None:
        return ""
    if memory < 10**6:
        return f"{memory / 1000:.0f} kB"
    return f"{memory / 10**6:.1f} MB" if memory < 10**9 else f"{memory / 10**9:.2f} GB"


def _with_bars(rows: list[_Row], times: Times, width: int, *, blocks: bool) -> Iterator[str]:
    used = [index for index in range(len(_HEAD)) if any(cells[index] for cells, _ in rows)]
    widths = {index: max(len(_HEAD[index]), *(len(cells[index]) for cells, _ in rows)) for index in used}
    room = min(width - sum(widths.values()) - 2 * len(used) - 2, _LONGEST_BAR)
    longest = max((one for _, one in rows if one is not None), default=0.0)
    is_alone = len(times.sizes) * len(times.series) == 1
    for cells, value in [(_HEAD, None), *rows]:
        line = "  ".join(f"{cells[i]:<{widths[i]}}" if i < 2 else f"{cells[i]:>{widths[i]}}" for i in used)
        bar = "" if value is None or room < _SHORTEST_BAR or is_alone else _bar(value / longest, room, blocks=blocks)
        yield f"  {line}  {bar}".rstrip()


def _bar(share: float, room: int, *, blocks: bool) -> str:
    eighths = max(1, round(share * room * 8))
    if not blocks:
        return "#" * max(1, round(eighths / 8))
    return "█" * (eighths // 8) + _BLOCKS[eighths % 8].strip()


def _has_blocks() -> bool:
    try:
        _BLOCKS.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except (UnicodeError, LookupError):
        return False
    return True
