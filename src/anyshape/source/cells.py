"""A notebook's cell: the number that its reader knows it by, and its text as it was typed.

IPython compiles a cell under a name of its own: `<ipython-input-5-...>`, or a path at which no file need stand, or at
which a debugger's copy does. None of them means anything to the reader, and none outlives the kernel.
"""

from __future__ import annotations

import functools
import linecache
import re
import sys
from typing import Any

NAMELESS = "In [?]"
"""A cell whose number nobody knows: of another kernel, or of a notebook that another one ran."""

_COMPILED_AS = re.compile(
    r"<ipython-input-(\d+)-|.*[/\\](?:ipykernel_\d+[/\\]\d+\.py|ipython-input-(?:(\d+)-)?\d+\.py)$"
)
"""Names of cells in IPython, ipykernel and Colab; some have the number in them."""
_SHOWN_AS = re.compile(r"In \[(\d+|\?)\]( %%\w+)?")


def cell_name(filename: str) -> str | None:
    """`In [5]`, as a notebook shows it beside the cell; None for the name of anything else.

    `In [5] %%capture` is what stands below that line of the cell: its lines are counted from there.
    """
    if _SHOWN_AS.fullmatch(filename):
        return filename
    registered = _registered_number(filename)
    if registered is None and not _COMPILED_AS.match(filename):
        return None
    number, magic = _execution_of(filename, registered)
    return NAMELESS if number is None else f"In [{number}] {magic}".strip()


def typed_text(filename: str) -> str | None:
    """A cell as it was typed, with its magics; None where IPython has not kept it."""
    number, _ = _execution_of(filename, _registered_number(filename))
    typed = _history("input_hist_raw")
    return typed[number] if number is not None and number < len(typed) else None


@functools.lru_cache(maxsize=1024)
def _execution_of(filename: str, registered: int | None) -> tuple[int | None, str]:
    """The number of a cell, and the magic below which the text stands that goes by this name.

    Kept, because the lines of a name are others while an edit is tried. The register alone does not do: it knows the
    body of a magic, and a cell of another notebook, by the number of the next cell.
    """
    text = "".join(linecache.getlines(filename)).strip()
    numbers = [number for number, cell in enumerate(_history("input_hist_parsed")) if text and cell.strip() == text]
    if numbers:
        return registered if registered in numbers else numbers[-1], ""
    for number, cell in reversed(list(enumerate(_history("input_hist_raw")))):
        if text and cell.startswith("%%") and cell.strip().endswith(text):
            return number, cell.split()[0]
    found = _COMPILED_AS.match(filename)
    written = found and (found[1] or found[2])
    return int(written) if written and registered is None else None, ""


def _running_shell() -> Any:
    """The IPython that this process runs in; none is ever imported or begun."""
    find = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return None if find is None else find()


def _registered_number(filename: str) -> int | None:
    number = getattr(getattr(_running_shell(), "compile", None), "_filename_map", {}).get(filename)
    return None if number is None else int(number)


def _history(kind: str) -> list[str]:
    """What was run in this kernel, by its number."""
    return list(getattr(getattr(_running_shell(), "history_manager", None), kind, ()))
