"""A real browser for the tests of pages, and what it tells of a page that misbehaves."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest


@contextlib.contextmanager
def browser() -> Iterator[Any]:
    """Chromium as the system has it; a test that needs one skips where there is none."""
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("no Chromium is installed: apt-get install chromium")
    api = pytest.importorskip("playwright.sync_api", reason="no playwright is installed")
    with api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        try:
            yield running
        finally:
            running.close()


@contextlib.contextmanager
def opened(running: Any, page: Path, *, width: int = 1280, dark: bool = False, **more: Any) -> Iterator[Any]:
    """A page that is drawn; afterwards nothing may have been said in the console or asked of the network."""
    context = running.new_context(
        viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", **more
    )
    tab, said, asked = context.new_page(), [], []
    tab.on("console", lambda message: said.append(message.text))
    tab.on("pageerror", lambda error: said.append(str(error)))
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(page.as_uri())
    tab.wait_for_selector("html[data-ready=yes]", state="attached")
    yield tab
    context.close()
    assert said == []
    assert [url for url in asked if not url.startswith("data:")] == [page.as_uri()]


def data_of(tab: Any) -> dict[str, Any]:
    """The data that a page shows."""
    return json.loads(tab.locator("#data").text_content())


def set_size(tab: Any, dim: str, size: int) -> None:
    """Write a size into a slider's field, as a user does."""
    field = tab.locator(f'#sliders input[type=number][aria-label="{dim}"]')
    field.fill(str(size))
    field.press("Enter")


def shown_shapes(tab: Any) -> dict[str, list[list[int]]]:
    """The shapes of what every node gives, as the page's table shows them at the sliders' sizes."""
    if tab.locator("#more-nodes").is_visible() and "all" in tab.locator("#more-nodes").text_content():
        tab.locator("#more-nodes").click()
    values, nodes = data_of(tab)["costs"]["values"], data_of(tab)["costs"]["nodes"]
    rows = tab.locator("#node-table tbody tr").evaluate_all(
        "rows => rows.map(row => [Number(row.dataset.node), row.querySelector('.shapes').innerText])"
    )
    found = {}
    for place, text in rows:
        names = [values[value]["name"] for value in nodes[place]["outputs"] if value >= 0]
        for name, line in zip(names, text.split("\n"), strict=True):
            found[name] = line[line.index("[") :]
    return found


def shown_totals(tab: Any) -> list[str]:
    """Peak memory, weights, FLOPs and bytes moved, as the page shows them."""
    return tab.locator("#totals .figure").all_inner_texts()


def in_units(number: float, units: tuple[str, ...]) -> str:
    """As the page rounds: three digits."""
    place = 0
    while number >= 999.5 and place < len(units) - 1:
        number, place = number / 1000, place + 1
    digits = 0 if place == 0 or number >= 100 else 1 if number >= 10 else 2
    return f"{number:.{digits}f} {units[place]}".rstrip()


def real_shapes(path: Path, sizes: dict[str, int], names: list[str]) -> dict[str, str]:
    """The shapes of inner values in ONNX Runtime at these sizes, written as the page writes them."""
    model = onnx.load(path)
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    feeds = {}
    types = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(bool)": np.bool_}
    for port in session.get_inputs():
        shape = [sizes[axis] if isinstance(axis, str) else axis for axis in port.shape]
        feeds[port.name] = np.ones(shape, types[port.type])
    return {
        name: "[" + ", ".join(map(str, array.shape)) + "]"
        for name, array in zip(names, session.run(names, feeds), strict=True)
    }
