"""Pages in a real browser: drawn without an error, moved by sliders to the runtime's own shapes, used by keys alone."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import onnx
import pytest
import torch
from torch import nn

import anyshape
from anyshape.costs.account import costs_of
from anyshape.onnxfile.interface import Port
from anyshape.results.report.assembly import assemble
from anyshape.results.report.document import ReportDocument
from anyshape.results.report.writing import write_report
from tests.onnxfile import drawing
from tests.results.report import browsing
from tests.results.report.browsing import (
    data_of,
    in_units,
    opened,
    real_shapes,
    set_size,
    shown_shapes,
    shown_totals,
)  # fmt: skip
from tests.results.report.samples import EVIL, REFUSED, RIGHT
from tests.results.report.test_document import TIMES


@pytest.fixture(scope="module")
def browser():
    with browsing.browser() as running:
        yield running


def test_a_page_is_drawn_whole(browser, tmp_path):
    """The quick one: the map has a mark for each size, a slider moves shapes, a node unfolds."""
    path = drawing.write(tmp_path / "small.onnx", drawing.CONVOLUTION)
    anyshape.report(path, tmp_path / "r.html", quick=True)
    with opened(browser, tmp_path / "r.html") as tab:
        assert tab.locator(".mark").count() == len(data_of(tab)["map"]["marks"])
        set_size(tab, "height", 9)
        set_size(tab, "width", 17)
        set_size(tab, "batch", 5)
        assert shown_shapes(tab) == {"y": "[5, 1, 7, 15]"}
        assert shown_totals(tab) == _totals(path, {"batch": 5, "height": 9, "width": 17})
        tab.locator(".item.node").first.click()
        assert "[batch, 1, height - 2, width - 2]" in tab.locator("#graph-detail").inner_text()


# ---- six models


class Attention(nn.Module):
    """Two dims, one of which has a limit of the model's own."""

    def __init__(self):
        super().__init__()
        self.embedding, self.positions = nn.Embedding(50, 16), nn.Embedding(32, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)

    def forward(self, tokens):
        return self.layer(self.embedding(tokens) + self.positions(torch.arange(tokens.shape[1])))


class Halving(nn.Module):
    """Steps, and a relation between dims."""

    def __init__(self):
        super().__init__()
        self.down, self.up = nn.Conv2d(3, 4, 3, 2, 1), nn.ConvTranspose2d(4, 3, 2, 2)

    def forward(self, image):
        return self.up(torch.relu(self.down(image)))


class Branching(nn.Module):
    """One dim, and a branch on it."""

    def forward(self, x):
        return x * 2 if x.shape[0] > 2 else x


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.GRU(4, 6, batch_first=True), nn.Linear(6, 2)

    def forward(self, x):
        return self.head(self.cell(x)[0])


def _text_and_image():
    """Four dims and three inputs: the demo."""
    sys.path.insert(0, str(Path(__file__).parents[3] / "examples"))
    try:
        from demo import TextAndImage
    finally:
        sys.path.pop(0)
    call = (torch.randint(0, 1000, (2, 7)), torch.ones(2, 7, dtype=torch.bool), torch.randn(2, 3, 48, 64))
    dims = {"tokens": "batch seq", "mask": "batch seq", "image": "batch 3 height width"}
    return TextAndImage(), call, {"dims": dims, "sizes": {"height": "8..", "width": "8.."}}


def _bert():
    from transformers import BertConfig, BertModel

    config = BertConfig(
        hidden_size=16, num_hidden_layers=12, num_attention_heads=2, intermediate_size=32, vocab_size=99,
        max_position_embeddings=64,
    )  # fmt: skip
    dims = {"input_ids": "batch seq", "attention_mask": "batch seq"}
    return BertModel(config), torch.randint(0, 99, (2, 7)), {"dims": {"input_ids": dims["input_ids"]}}


MODELS = {
    "attention": lambda: (Attention(), torch.randint(0, 50, (2, 7)), {"dims": {"tokens": "batch seq"}}),
    "halving": lambda: (
        Halving(),
        torch.randn(1, 3, 16, 24),
        {
            "dims": {"image": "1 3 height width"},
            "sizes": {"height": "8..64 step 8", "width": "8..64 step 8"},
            "where": ["height <= width"],
        },
    ),
    "branching": lambda: (Branching(), torch.ones(4, 3), {"dims": {"x": "n 3"}}),
    "recurrent": lambda: (Recurrent(), torch.randn(2, 5, 4), {"dims": {"x": "batch seq 4"}}),
    "text and image": _text_and_image,
    "bert": _bert,
}
SIZES = {
    "attention": {"batch": 3, "seq": 11},
    "halving": {"height": 24, "width": 40},
    "branching": {"n": 6},
    "recurrent": {"batch": 3, "seq": 9},
    "text and image": {"batch": 3, "seq": 5, "height": 40, "width": 27},
    "bert": {"batch": 3, "seq": 13},
}


@pytest.fixture(scope="module", params=MODELS)
def report(request, tmp_path_factory):
    """The name of a model, its file and its page."""
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("pages")
    model, call, declared = MODELS[request.param]()
    result = anyshape.export(model.eval(), call, folder / "model.onnx", quick=True, **declared)
    result.report(folder / "r.html")
    return request.param, folder / "model.onnx", folder / "r.html"


@pytest.mark.slow
def test_sliders_give_the_shapes_of_the_runtime(browser, report):
    name, path, page = report
    with opened(browser, page) as tab:
        for dim, size in SIZES[name].items():
            set_size(tab, dim, size)
        shown = shown_shapes(tab)
        known = {one for node in onnx.load(path).graph.node for one in node.output}
        names = [one for one in shown if one in known]
        step = max(1, len(names) // 20)
        chosen = names[::step]
        assert len(chosen) >= min(20, len(names))
        assert {one: shown[one] for one in chosen} == real_shapes(path, SIZES[name], chosen)
        assert shown_totals(tab) == _totals(path, SIZES[name])


def _totals(path, sizes):
    """The same figures, computed in Python."""
    costs = costs_of(path)
    numbers = costs.numbers(sizes)
    moved = sum(numbers[node.moved] for node in costs.nodes)
    in_bytes = ("B", "kB", "MB", "GB")
    memory, weights, bytes_moved = (in_units(one, in_bytes) for one in (costs.memory(sizes), costs.weights, moved))
    return [memory, weights, in_units(costs.flops(sizes), ("", "k", "M", "G")), bytes_moved]


@pytest.mark.slow
def test_the_map_has_as_many_marks_as_sizes_were_run(browser, report):
    with opened(browser, report[2]) as tab:
        marks = data_of(tab)["map"]["marks"]
        assert tab.locator(".mark").count() == len(marks)
        assert tab.locator("#map details tbody tr").count() == len(marks)
        tab.locator(".mark").last.click()
        chosen = marks[int(tab.locator(".mark").last.get_attribute("data-run"))]
        figures = tab.locator("#map-detail dd").all_inner_texts()
        assert figures[: len(chosen["sizes"])] == [str(size) for size in chosen["sizes"]]


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 768, 1280])
def test_no_page_is_wider_than_its_window(browser, report, width):
    with opened(browser, report[2], width=width) as tab:
        for group in range(2):
            if tab.locator(".item.group").count() > group:
                tab.locator(".item.group").nth(group).dispatch_event("click")
        assert tab.evaluate("document.documentElement.scrollWidth") == width


NAMED = """(element) => [element.tagName, element.id, element.className.baseVal ?? element.className,
  element.getAttribute("aria-label")].join("|")"""
REACHABLE = f"""() => [...document.querySelectorAll('a, button, select, input, summary, [tabindex="0"]')]
  .filter((one) => one.checkVisibility() && !one.closest("details:not([open]) > :not(summary)")).map({NAMED})"""


@pytest.mark.slow
def test_keys_alone_reach_everything(browser, report):
    """Every control by Tab; marks and nodes behind the first of them by arrows, Enter chooses."""
    with opened(browser, report[2]) as tab:
        reached = set()
        tab.evaluate("document.body.focus()")
        for _ in range(400):
            tab.keyboard.press("Tab")
            label = tab.evaluate(f"({NAMED})(document.activeElement)")
            if label.startswith("BODY"):
                break
            reached.add(label)
        wanted = tab.evaluate(REACHABLE)
        assert len(wanted) > 8
        assert set(wanted) - reached == set()
        tab.locator('.mark[tabindex="0"]').focus()
        before = tab.evaluate("document.activeElement.getAttribute('aria-label')")
        if tab.locator(".mark").count() > 1:
            moved = [tab.keyboard.press(f"Arrow{way}") for way in ("Up", "Right", "Down", "Left", "Left", "Up")]
            tab.keyboard.press("End")
            assert moved
            assert tab.evaluate("document.activeElement.getAttribute('aria-label')") != before
        tab.keyboard.press("Enter")
        assert tab.locator("#map-detail h3").count() == 1
        tab.locator('.item[tabindex="0"]').focus()
        tab.keyboard.press("Enter")
        assert tab.locator("#graph-detail h3").count() == 1


@pytest.mark.slow
def test_every_node_can_be_unfolded_and_found(browser, report):
    with opened(browser, report[2]) as tab:
        assert tab.locator(".item").count() <= 80
        for _ in range(12):
            closed = tab.locator(".item.group:not(.opened)")
            if not closed.count():
                break
            closed.first.dispatch_event("click")
        nodes = data_of(tab)["costs"]["nodes"]
        tab.locator("#find").fill(nodes[-1]["name"])
        tab.locator("#found button").first.click()
        assert nodes[-1]["op"] in tab.locator("#graph-detail h3").inner_text()
        assert tab.locator(".item.chosen").count() == 1


@pytest.mark.slow
def test_contrast_is_enough_in_light_and_dark(browser, report):
    """Ratios of the colours of words to what is behind them: 4.5 is asked for by WCAG AA."""
    for dark in (False, True):
        with opened(browser, report[2], dark=dark) as tab:
            poor = tab.evaluate(CONTRAST)
            assert poor == []


CONTRAST = """() => {
  const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const part = (value) => (value / 255 <= 0.03928 ? value / 255 / 12.92 : ((value / 255 + 0.055) / 1.055) ** 2.4);
  const light = ([red, green, blue]) => 0.2126 * part(red) + 0.7152 * part(green) + 0.0722 * part(blue);
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const found = parse(getComputedStyle(one).backgroundColor);
      if (found.length === 3 || found[3] > 0.99) return found;
    }
    return [255, 255, 255];
  };
  const isText = (child) => child.nodeType === 3 && child.textContent.trim();
  const poor = new Set();
  for (const element of document.querySelectorAll("main *, header *, footer *")) {
    if (![...element.childNodes].some(isText) || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const one = light(parse(element instanceof SVGElement ? style.fill : style.color)), other = light(behind(element));
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (ratio < 4.5) poor.add(`${element.tagName}.${element.className} ${ratio.toFixed(2)}`);
  }
  return [...poor];
}"""


SLIDING = """() => {
  const slider = document.querySelector("#sliders input[type=range]"), start = performance.now();
  for (let place = 0; place < 20; place += 1) { slider.value = place; slider.dispatchEvent(new Event("input")); }
  return (performance.now() - start) / 20;
}"""
COMPUTING = """() => {
  const start = performance.now();
  for (let size = 1; size < 51; size += 1) anyshapeFormulas.expressions([size]);
  return (performance.now() - start) / 50;
}"""


@pytest.mark.slow
def test_a_page_of_a_bert_is_small_and_its_sliders_are_quick(browser, tmp_path):
    model, call, declared = _bert()
    anyshape.export(model.eval(), call, tmp_path / "m.onnx", quick=True, **declared).report(tmp_path / "r.html")
    assert (tmp_path / "r.html").stat().st_size < 400_000
    with opened(browser, tmp_path / "r.html") as tab:
        took = tab.evaluate(SLIDING)
        assert took < 100  # with the tables and the graph drawn anew; computing alone takes a few milliseconds


@pytest.mark.slow
def test_two_thousand_nodes_open_within_a_second_or_so(browser, tmp_path):
    lines = "\n".join(f"  v{i + 1} = Relu(v{i})" for i in range(2000))
    text = f"main (float[batch, 8] v0) => (float[batch, 8] v2000)\n{{\n{lines}\n}}"
    path = drawing.write(tmp_path / "long.onnx", text)
    anyshape.report(path, tmp_path / "r.html", quick=True)
    with opened(browser, tmp_path / "r.html") as tab:
        timing = tab.evaluate("performance.timing.domContentLoadedEventEnd - performance.timing.navigationStart")
        assert timing < 3000  # below one on a machine that does nothing else
        assert tab.evaluate(COMPUTING) < 16
        assert tab.evaluate(SLIDING) < 60  # some 10 on such a machine, with tables and graph drawn anew
        assert tab.locator(".item").count() < 100  # nothing is drawn before it is unfolded
        tab.locator("#more-nodes").click()
        assert tab.evaluate(SLIDING) < 200
        tab.locator("#node-table .shapes", has_text="float32[20, 8]").first.wait_for()


# ---- a refusal, times, and strangers


class Head(nn.Module):
    def forward(self, x):
        return x.view(2, 8, 4).mean(1)


@pytest.mark.slow
def test_a_refusal_shows_where_it_fails_and_its_edit_is_copied(browser, tmp_path):
    with pytest.raises(anyshape.ExportError) as caught:
        anyshape.export(Head(), torch.randn(2, 32), dims={"x": "batch 32"}, quick=True)
    result = caught.value.result
    result.report(tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html", permissions=["clipboard-read", "clipboard-write"]) as tab:
        assert tab.locator("h1").inner_text() == "No file written: batch cannot vary"
        assert tab.locator(".mark.limit").count() == 1
        tab.locator(".copy").click()
        tab.locator(".copy", has_text="Copied").wait_for()  # the page forbids what evaluates text again and again
        assert tab.evaluate("navigator.clipboard.readText()") == result.findings[0].edit.diff
        tab.locator(".rule summary").click()
        assert "take the size from an input" in tab.locator(".rule").inner_text().lower()


@pytest.mark.slow
def test_relations_hold_while_sliders_move(browser, tmp_path):
    text = "main (float[a, b] x, float[a, b] y) => (float[a, b] z)\n{\n  z = Add(x, y)\n}"
    promise = replace(drawing.contract({"a": "1..64", "b": "1..64"}, "a * b <= 100"))
    path = drawing.write(tmp_path / "m.onnx", text, promise)
    anyshape.report(path, tmp_path / "r.html", quick=True)
    with opened(browser, tmp_path / "r.html") as tab:
        set_size(tab, "a", 10)
        set_size(tab, "b", 60)
        a, b = (
            int(one)
            for one in tab.locator("#sliders input[type=number]").evaluate_all("all => all.map(one => one.value)")
        )
        assert (a, b) == (10, 10)
        assert "holds b at 10" in tab.locator("#slider-note").inner_text()
        assert shown_shapes(tab) == {"z": "[10, 10]"}


@pytest.mark.slow
def test_times_are_drawn_and_told(browser, tmp_path):
    write_report(ReportDocument(RIGHT, times=TIMES), tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html") as tab:
        assert tab.locator("#times-plot circle").count() == 1
        tab.locator("#times summary").first.click()
        assert "1.0 ms (0.50 ms to 2.0 ms)" in tab.locator("#times-table").inner_text()


@pytest.mark.slow
def test_names_of_strangers_do_nothing(browser, tmp_path):
    path = drawing.write(tmp_path / "small.onnx", drawing.CONVOLUTION)
    model = onnx.load(path)
    model.graph.node[0].name = EVIL
    model.graph.node[0].metadata_props.add(key="anyshape.source", value=f"{EVIL}:3")
    model.graph.node[0].metadata_props.add(key="namespace", value=f"/{EVIL}")
    model.graph.input[0].name = model.graph.node[0].input[0] = EVIL
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = '"><img src=x onerror=alert(1)>'
    model.producer_name = EVIL
    onnx.save(model, path)
    document = assemble(anyshape.report(path, tmp_path / "r.json", quick=True).result)
    result = replace(
        document.result, inputs=(*document.result.inputs, Port(EVIL, EVIL, (EVIL,))), findings=REFUSED.findings
    )
    write_report(replace(document, result=result), tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html") as tab:
        tab.on("dialog", lambda dialog: pytest.fail(dialog.message))
        assert tab.locator("img").count() == 0
        tab.locator(".mark").first.click()
        tab.locator(".item").first.click()
        tab.locator("#find").fill("<script>")
        assert tab.locator("main script").count() == 0
        assert "<script>alert(1)</script>" in tab.locator("main").inner_text()


@pytest.mark.slow
def test_the_theme_can_be_turned_and_paper_is_light(browser, tmp_path):
    write_report(ReportDocument(RIGHT), tmp_path / "r.html")
    ground = "getComputedStyle(document.body).backgroundColor"
    with opened(browser, tmp_path / "r.html", dark=True) as tab:
        dark = tab.evaluate(ground)
        tab.locator("#theme").click()
        light = tab.evaluate(ground)
        tab.locator("#theme").click()
        assert (tab.evaluate(ground), light) == (dark, "rgb(255, 255, 255)")
        tab.emulate_media(media="print")
        assert tab.evaluate(ground) == "rgb(255, 255, 255)"
        assert len(tab.pdf()) > 10_000


@pytest.mark.slow
def test_what_is_excluded_whatever_other_dims_are_is_hatched(browser, tmp_path):
    """Dots could have been run and were not: what `b <= c` excludes could not, at any size of `a`."""
    text = "main (float[a, b, c] x) => (float[a, b, c] y)\n{\n  y = Relu(x)\n}"
    path = drawing.write(tmp_path / "m.onnx", text)
    anyshape.report(path, tmp_path / "r.html", quick=True, where=["b <= c"])
    with opened(browser, tmp_path / "r.html") as tab:
        chosen = [tab.locator("#map-controls select").nth(place).input_value() for place in range(3)]
        assert sorted(chosen) == ["", "1", "2"]
        assert "excluded by the declaration" in tab.locator("#map-legend").inner_text()
        assert tab.locator('#map-plot path[fill="url(#hatch)"]').count() == 1


@pytest.mark.slow
def test_a_relation_that_never_holds_leaves_a_page_that_stands(browser, tmp_path):
    text = "main (float[a, b] x) => (float[a, b] y)\n{\n  y = Relu(x)\n}"
    path = drawing.write(tmp_path / "m.onnx", text, drawing.contract({"a": "1..8", "b": "1..8"}, "a % (b - b) == 0"))
    anyshape.report(path, tmp_path / "r.html", run=False)
    with opened(browser, tmp_path / "r.html") as tab:
        set_size(tab, "a", 5)
        assert tab.locator("#totals .figure").count() == 4
        assert tab.locator("#curves svg").count() == 0


@pytest.mark.slow
def test_time_is_told_node_by_node_and_faults_are_flagged(browser, tmp_path):
    """Names that objects of JavaScript have by themselves, too: `constructor` has no time here."""
    text = "main (float[n] x) => (float[n] y)\n{\n  [constructor] a = Relu(x)\n  [slow] y = Neg(a)\n}"
    path = drawing.write(tmp_path / "m.onnx", text)
    nodes = {
        "nodes": {"slow": 0.75, "fused": 0.25},
        "operators": {"slow": "Neg", "fused": "FusedGemm"},
        "profiled_at": 1,
    }
    written = anyshape.report(path, tmp_path / "r.html", quick=True, times={**TIMES, **nodes}).document
    fault = replace(REFUSED.findings[0], notes=("first node that differs: `slow` (Neg)",))
    document = assemble(replace(written.result, findings=(fault,)), times=written.times)
    write_report(document, tmp_path / "r.html")
    with opened(browser, tmp_path / "r.html") as tab:
        tab.locator("#times-nodes summary").click()
        rows = [" ".join(row.split()) for row in tab.locator("#times-nodes tbody tr").all_inner_texts()]
        assert rows == ["Neg slow 75 %", "FusedGemm fused 25 %"]
        assert "at batch 8" in tab.locator("#times-nodes-lead").inner_text()
        assert "25 % of the time is in nodes that it made" in tab.locator("#times-nodes-lead").inner_text()
        tab.locator("#graph-colour").select_option("time")
        assert tab.locator(".item rect.share").count() == 1
        assert tab.locator(".item.fault").get_attribute("data-key") == "node1"
        assert tab.locator("#graph-legend").inner_text().split() == ["!", "a", "finding", "is", "about", "it"]


@pytest.mark.slow
def test_the_name_of_the_peak_stays_inside_of_a_narrow_window(browser, tmp_path):
    name = "a_long_name_of_a_node_in_the_middle"
    lines = ("a = Relu(x)", f"[{name}] b = Concat<axis = 0>(a, a)", "y = ReduceSum(b)")
    text = "main (float[n] x) => (float[1] y)\n{\n" + "\n".join(lines) + "\n}"
    anyshape.report(drawing.write(tmp_path / "m.onnx", text), tmp_path / "r.html", quick=True)
    with opened(browser, tmp_path / "r.html", width=390) as tab:
        box = tab.locator("#timeline text.title").bounding_box()
        assert 0 < box["x"] < box["x"] + box["width"] < 390


@pytest.mark.slow
def test_what_is_not_known_is_not_called_nothing(browser, tmp_path):
    """The data decide how many there are: no bytes can be told, and none is not what there are."""
    text = "main (float[n, 4] x) => (float[k, 2] y)\n{\n  a = NonZero(x)\n  b = Transpose(a)\n  y = Cast<to = 1>(b)\n}"
    anyshape.report(drawing.write(tmp_path / "m.onnx", text), tmp_path / "r.html", quick=True)
    with opened(browser, tmp_path / "r.html") as tab:
        cells = tab.locator("#node-table tbody tr").first.locator("td").all_inner_texts()
        assert [cells[2], cells[5].strip()] == ["unknown", "unknown"]
        assert shown_totals(tab)[0].startswith("≥ ")
        assert tab.locator(".item.doubt").count() == 3
        assert "a shape is not known" in tab.locator(".item.doubt").first.get_attribute("aria-label")
