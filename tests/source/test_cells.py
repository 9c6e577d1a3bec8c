from __future__ import annotations

import linecache
import subprocess
import sys
from types import SimpleNamespace

import pytest

from anyshape.source.cells import cell_name, typed_text


class _Notebook:
    """Cells that were run, as IPython keeps them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch
        self.registered: dict[str, int] = {}
        self.typed, self.parsed = [""], [""]
        history = SimpleNamespace(input_hist_raw=self.typed, input_hist_parsed=self.parsed)
        shell = SimpleNamespace(compile=SimpleNamespace(_filename_map=self.registered), history_manager=history)
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))

    def run(self, typed: str, filename: str, parsed: str | None = None, *, is_in_history: bool = True) -> None:
        parsed = typed if parsed is None else parsed
        if is_in_history:
            self.typed.append(typed)
            self.parsed.append(parsed)
        self.registered[filename] = len(self.typed) - is_in_history
        self._monkeypatch.setitem(
            linecache.cache, filename, (len(parsed), None, parsed.splitlines(keepends=True), filename)
        )


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> _Notebook:
    return _Notebook(monkeypatch)


@pytest.mark.parametrize(
    ("filename", "name"),
    [
        ("<ipython-input-5-0123456789ab>", "In [5]"),
        ("/tmp/ipykernel_123/456.py", "In [?]"),
        (r"C:\Users\me\AppData\Local\Temp\ipykernel_123\456.py", "In [?]"),
        ("/tmp/ipython-input-12-3456.py", "In [12]"),
        ("/tmp/ipython-input-3456.py", "In [?]"),
        ("In [7]", "In [7]"),
        ("In [7] %%capture", "In [7] %%capture"),
        ("net.py", None),
        ("/tmp/456.py", None),
        ("/home/me/ipykernel_examples/5.py", None),
        ("<string>", None),
        ("<stdin>", None),
        ("<timed exec>", None),
    ],
)
def test_a_cell_of_no_kernel_at_hand_is_known_by_its_name_alone(filename: str, name: str | None) -> None:
    assert cell_name(filename) == name
    assert typed_text(filename) is None


def test_a_cell_has_the_number_of_its_last_run(notebook: _Notebook) -> None:
    notebook.run("n = 1", "/tmp/ipykernel_1/10.py")
    notebook.run("%pwd\nn = 2", "/tmp/ipykernel_1/20.py", "get_ipython().run_line_magic('pwd', '')\nn = 2\n")
    assert cell_name("/tmp/ipykernel_1/10.py") == "In [1]"
    assert cell_name("/tmp/ipykernel_1/20.py") == "In [2]"
    assert typed_text("/tmp/ipykernel_1/20.py") == "%pwd\nn = 2"
    notebook.run("n = 1", "/tmp/ipykernel_1/10.py")
    assert cell_name("/tmp/ipykernel_1/10.py") == "In [3]"


def test_a_name_of_any_form_is_a_cell_s_where_ipython_says_so(notebook: _Notebook) -> None:
    notebook.run("n = 4", "<command-77-0123>")
    assert cell_name("<command-77-0123>") == "In [1]"


def test_a_register_that_is_gone_is_made_good_by_the_history(notebook: _Notebook) -> None:
    notebook.run("n = 5", "/tmp/ipykernel_1/30.py")
    notebook.run("n = 6", "/tmp/ipykernel_1/40.py")
    notebook.registered.clear()
    assert cell_name("/tmp/ipykernel_1/30.py") == "In [1]"
    assert cell_name("/tmp/ipykernel_1/40.py") == "In [2]"


def test_the_body_of_a_magic_is_counted_below_it(notebook: _Notebook) -> None:
    """IPython registers it as the next cell, which it is not."""
    notebook.run("%%capture\nn = 7\nm = 8", "/tmp/ipykernel_1/50.py", "get_ipython().run_cell_magic(...)")
    notebook.run("n = 7\nm = 8\n", "/tmp/ipykernel_1/60.py", is_in_history=False)
    notebook.run("n = 9", "/tmp/ipykernel_1/70.py")
    assert notebook.registered["/tmp/ipykernel_1/60.py"] == 2
    assert cell_name("/tmp/ipykernel_1/60.py") == "In [1] %%capture"
    assert typed_text("/tmp/ipykernel_1/60.py") == "%%capture\nn = 7\nm = 8"


def test_a_cell_of_another_notebook_takes_no_number_of_this_one(notebook: _Notebook) -> None:
    notebook.run("%run other.ipynb", "/tmp/ipykernel_1/80.py")
    notebook.run("n = 11", "/tmp/ipykernel_1/90.py", is_in_history=False)
    assert cell_name("/tmp/ipykernel_1/90.py") == "In [?]"
    assert typed_text("/tmp/ipykernel_1/90.py") is None


def test_a_cell_keeps_its_number_while_an_edit_of_it_is_tried(
    notebook: _Notebook, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook.run("n = 12", "/tmp/ipykernel_1/100.py")
    assert cell_name("/tmp/ipykernel_1/100.py") == "In [1]"
    monkeypatch.setitem(linecache.cache, "/tmp/ipykernel_1/100.py", (7, None, ["n = 13\n"], "/tmp/ipykernel_1/100.py"))
    assert cell_name("/tmp/ipykernel_1/100.py") == "In [1]"


def test_ipython_is_not_imported_for_it() -> None:
    code = (
        "import sys; from anyshape.source.cells import cell_name; cell_name('<ipython-input-1-'); print(*sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "IPython" not in ran.stdout.split()
