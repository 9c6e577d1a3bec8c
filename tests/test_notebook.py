"""Notebooks: those of `examples/` give what they have stored, and cells are known by their numbers in a real kernel.

`python -m tests.test_notebook` executes the examples and stores what they give.
"""

from __future__ import annotations

import html
import os
import tempfile
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.test_docs import masked

NOTEBOOKS = sorted((Path(__file__).parent.parent / "examples").glob("*.ipynb"))


def executed(notebook: Any, folder: Path) -> Any:
    """The notebook with what its cells give, run in a kernel of its own in this folder; an error ends it."""
    where = {"metadata": {"path": str(folder)}}
    client = NotebookClient(notebook, timeout=600, kernel_name="python3", record_timing=False, resources=where)
    client.execute(env={**os.environ, "IPYTHONDIR": str(folder / ".ipython")})  # without what the user starts it with
    notebook.metadata.language_info = {"name": "python"}  # without the version of the Python that ran it
    return notebook


def stored(path: Path) -> Any:
    return nbformat.read(path, as_version=4)


def outputs_of(notebook: Any) -> list[dict[str, str]]:
    """What each cell shows: kind of output -> its text."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return [dict(one["data"]) if "data" in one else {one["name"]: one["text"]} for one in outputs]


def _without_figures(notebook: Any) -> list[dict[str, str]]:
    """The same without versions, times and what else depends on the machine."""
    return [{kind: masked(html.unescape(text)) for kind, text in one.items()} for one in outputs_of(notebook)]


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_gives_what_it_has_stored(path: Path, tmp_path: Path) -> None:
    again = executed(stored(path), tmp_path)
    assert _without_figures(again) == _without_figures(stored(path)), "python -m tests.test_notebook"
    assert [cell.get("execution_count") for cell in again.cells] == [
        cell.get("execution_count") for cell in stored(path).cells
    ]


def test_the_tour_shows_each_kind_of_value_as_html_and_as_text() -> None:
    (tour,) = (path for path in NOTEBOOKS if path.name == "tour.ipynb")
    shown = [one for one in outputs_of(stored(tour)) if "text/html" in one]
    for words in ("checked: ", "error[pinned-dim]: ", "rows.onnx: ", "against static.onnx"):
        assert any(words in one["text/plain"] for one in shown), words
    (finding,) = (one for one in shown if "pinned-dim" in one["text/plain"])
    assert "--> In [5]:4:16 in Rows.forward\n" in finding["text/plain"]
    assert "with this change, to copy" in finding["text/html"]
    everything = "".join(text for one in outputs_of(stored(tour)) for text in one.values())
    assert "ipykernel" not in everything
    assert tempfile.gettempdir() not in everything


CELLS = (
    "from anyshape.source.cells import typed_text\nfrom anyshape.source.spans import Span, shown_path, source_line",
    "\n%pwd\ndef plain(): return 1",
    "%%capture\n\ndef below_magic(): return 2",
    "%%time\ndef timed(): return 3",
    "%%writefile written.py\ndef module(): return 4",
    "from written import module\n%run -n written.py\n%run other.ipynb",
    "def again(): return 5",
    "def again(): return 5",
    "for one in plain, below_magic, timed, module, elsewhere, again:\n"
    "    shown = shown_path(one.__code__.co_filename)\n"
    "    print(shown, repr(source_line(Span(shown, one.__code__.co_firstlineno))))\n"
    "print(repr(typed_text(plain.__code__.co_filename)))",
)


def test_cells_are_known_by_their_numbers_in_a_kernel(tmp_path: Path) -> None:
    """What IPython keeps of cells is its own business, and may move with a version."""
    code = nbformat.v4.new_code_cell
    nbformat.write(nbformat.v4.new_notebook(cells=[code("def elsewhere(): return 6")]), tmp_path / "other.ipynb")
    notebook = executed(nbformat.v4.new_notebook(cells=[code(text) for text in CELLS]), tmp_path)
    assert outputs_of(notebook)[-1]["stdout"].splitlines() == [
        "In [2] 'def plain(): return 1'",
        "In [3] %%capture 'def below_magic(): return 2'",
        "<timed exec> None",
        "written.py 'def module(): return 4'",
        "In [?] None",
        "In [8] 'def again(): return 5'",
        r"'\n%pwd\ndef plain(): return 1'",
    ]


if __name__ == "__main__":
    for path in NOTEBOOKS:
        with tempfile.TemporaryDirectory() as folder:
            nbformat.write(executed(stored(path), Path(folder)), path)
