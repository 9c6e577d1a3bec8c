"""What the process of a task does, called here in this one."""

from __future__ import annotations

import textwrap
from pathlib import Path

import onnx.parser
import pytest

from anyshape.cli.entry_jobs import check_options, list_models, run_file, run_model, run_target, written_names
from anyshape.errors import DeclarationError

ZOO = """
import torch
from torch import nn

class Branch(nn.Module):
    def forward(self, x):
        return x * 2 if x.shape[0] > 2 else x

class Pinned(nn.Module):
    def forward(self, x):
        return x.view(2, 8) + 1

columns = {"plain": {}, "torch": None}

def models():
    x = torch.zeros(2, 8)
    call = {"inputs": (x,), "dims": {"x": "batch 8"}}
    yield {"name": "branch", "model": Branch, "tags": ["small"], **call}
    yield {"name": "pinned", "model": Pinned(), "options": {"opset_version": 18}, **call}
    yield {"name": "broken", "model": lambda: 1 / 0, **call}
    yield {"name": "inputless", "model": Branch}
"""


@pytest.fixture
def zoo(tmp_path: Path) -> str:
    (tmp_path / "zoo_of_tests.py").write_text(ZOO)
    return str(tmp_path / "zoo_of_tests.py")


def tell(stage: str) -> None:
    pass


def run(zoo: str, model: str, by: str = "anyshape", **written: str) -> dict:
    return run_model(tell, zoo, model, by, {}, written)


def test_models_are_listed_without_being_made(zoo: str) -> None:
    told = list_models(tell, zoo)
    assert told["models"][:2] == [
        {"name": "branch", "tags": ["small"], "options": {}},
        {"name": "pinned", "tags": [], "options": {"opset_version": 18}},
    ]
    assert told["columns"] == {"plain": {}, "torch": None}


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("x = 1", "`zoo_of_tests.py` has no `models()`, which yields the entries of a collection"),
        ("def models(): yield 3", "`zoo_of_tests.py:models` yields a int without a name: yield a dict with `name`"),
        ("def models(): yield {'name': 'a', 'model': len, 'tags': 'small'}",
         "`zoo_of_tests.py:models` yields `a` with the `tags` 'small': give a list of texts"),
        ("def models(): yield {'name': 'a', 'model': len, 'tags': [5]}",
         "`zoo_of_tests.py:models` yields `a` with the `tags` [5]: give a list of texts"),
        ("def models(): yield {'name': 'a', 'model': len, 'options': ['x']}",
         "`zoo_of_tests.py:models` yields `a` with a list as its `options`: give a dict"),
        ("def models(): yield {'name': 'a', 'model': len, 'options': {'dtype': object()}}",
         "`options` of `a` are no plain values: a object is among them"),
        ("columns = {'a': {'dtype': {1, 2}}}\ndef models(): return []",
         "`columns` of `zoo_of_tests.py` are no plain values: a set is among them"),
        ("def models(): yield {'name': 'a'}", "`zoo_of_tests.py:models` yields `a` without a `model`"),
        ("def models(): yield {'name': 'a', 'model': 1, 'dim': {}}",
         "`zoo_of_tests.py:models` yields `a` with `dim`; did you mean `dims`?"),
        ("def models(): yield {'name': 'a', 'model': 1, 'judge': 'me'}",
         "`zoo_of_tests.py:models` yields `a` with a str as its `judge`: give a function"),
    ],
)  # fmt: skip
def test_what_is_no_collection_is_one_sentence(zoo: str, source: str, sentence: str) -> None:
    Path(zoo).write_text(source)
    with pytest.raises(DeclarationError) as told:
        list_models(tell, zoo)
    assert str(told.value) == sentence


def test_a_type_of_torch_s_is_told_by_its_name_and_a_seed_is_a_number(zoo: str, tmp_path: Path) -> None:
    source = "import torch\ndef models(): yield {'name': 'a', 'model': len, 'options': {'dtype': torch.float16}}"
    Path(zoo).write_text(source)
    assert list_models(tell, zoo)["models"][0]["options"] == {"dtype": "float16"}
    for seed in ("x", -1, float("inf")):
        told = run_model(tell, zoo, "a", "anyshape", {"seed": seed}, {})
        assert told["cause"] == f"seed is {seed!r}: give a whole number that is not negative"
    said = {"target": f"{zoo}:a"}
    assert run_target(tell, said, "anyshape", {"seed": "x"}, {})["cause"].startswith("seed is 'x'")


def test_what_anyshape_makes_of_a_model(zoo: str, tmp_path: Path) -> None:
    told = run(zoo, "branch", folder=str(tmp_path), files="files/branch")
    assert told["outcome"] == "checked"
    assert told["sizes"] > 5
    assert (tmp_path / "files/branch/model.onnx").exists()
    told = run(zoo, "pinned")
    assert (told["outcome"], told["cause"]) == ("refused", "pinned-dim: `batch` cannot vary")


@pytest.mark.slow
@pytest.mark.parametrize("by", ["torch", "torchscript"])
def test_a_file_by_torch_is_judged_by_check(zoo: str, by: str) -> None:
    told = run(zoo, "branch", by)
    assert told["outcome"] == "wrong"
    assert told["cause"].startswith("wrong-values: ")


@pytest.mark.slow
def test_what_torch_refuses_is_refused_with_its_own_reason(zoo: str) -> None:
    told = run(zoo, "pinned", "torch")
    assert told["outcome"] == "refused"
    assert "Next steps" not in told["cause"]


def test_an_entry_that_cannot_run_is_a_defect(zoo: str) -> None:
    told = run(zoo, "broken")
    assert told["outcome"] == "defect"
    assert told["cause"].startswith("the model of `broken` cannot be made: ZeroDivisionError: division by zero")
    assert run(zoo, "inputless")["cause"].startswith("`inputless` has no inputs to run on")
    assert run(zoo, "gone")["cause"] == "`models()` of `zoo_of_tests.py` yields no `gone` any more"


JUDGED = """
import torch
from torch import nn

def judge(said):
    def judged(path, model):
        assert path.suffix == ".onnx" and isinstance(model, nn.Module)
        if isinstance(said, Exception):
            raise said
        return said
    return judged

def models(only=None):
    for name, said in {
        "nothing": None, "text": "off by 3", "kept": {"largest": 2.0}, "both": {"cause": "off", "largest": 3.0},
        "asserted": AssertionError("not close"), "bare": AssertionError(), "truth": False,
        "odd": {"at": {(1, 2): 3}}, "broken": ValueError("no file"),
    }.items():
        if only in (None, name):
            yield {"name": name, "model": nn.ReLU, "inputs": (torch.zeros(2, 3),), "dims": {}, "judge": judge(said)}
"""


@pytest.mark.parametrize(
    ("name", "outcome", "cause", "kept"),
    [
        ("nothing", "checked", None, None),
        ("text", "wrong", "off by 3", None),
        ("kept", "checked", None, {"largest": 2.0}),
        ("both", "wrong", "off", {"largest": 3.0}),
        ("asserted", "wrong", "not close", None),
        ("bare", "wrong", "an assertion of `judge` fails", None),
        ("truth", "defect", "`judge` of `truth` gives a bool: give what is wrong in a text, or nothing", None),
        (
            "odd",
            "defect",
            "`judge` of `odd` gives what is no JSON: keys must be str, int, float, bool or None, not",
            None,
        ),
        ("broken", "defect", "`judge` of `broken` fails: ValueError: no file", None),
    ],
)
def test_the_judge_of_an_entry_has_the_last_word(zoo: str, name: str, outcome: str, cause: str, kept: dict) -> None:
    Path(zoo).write_text(JUDGED)
    told = run(zoo, name)
    assert (told["outcome"], told.get("judged")) == (outcome, kept)
    assert cause is None or told["cause"].startswith(cause)


@pytest.mark.slow
def test_a_judge_of_ones_own_takes_the_place_of_check(zoo: str) -> None:
    """Torch's file of the model is wrong, and this judge does not look."""
    source = ZOO.replace('"tags": ["small"]', '"judge": lambda path, model: None')
    Path(zoo).write_text(source)
    assert run(zoo, "branch", "torchscript")["outcome"] == "checked"


def test_what_a_model_does_is_not_said_of_the_listing(zoo: str) -> None:
    """What no verb takes for a failure of the model's is left to the task's process, which says what it was."""
    Path(zoo).write_text(ZOO.replace("return x.view(2, 8) + 1", "raise SystemExit(3)"))
    with pytest.raises(SystemExit):
        run(zoo, "pinned")


def test_where_one_entry_is_asked_for_models_may_leave_out_the_others(zoo: str) -> None:
    Path(zoo).write_text(JUDGED.replace("        if only", "        assert only in (None, 'nothing')\n        if only"))
    assert [one["name"] for one in list_models(tell, zoo)["models"]][:2] == ["nothing", "text"]
    assert run(zoo, "nothing")["outcome"] == "checked"
    assert run(zoo, "text")["outcome"] == "defect"


def test_cpu_seconds_are_told_by_stage(zoo: str, tmp_path: Path) -> None:
    told = run(zoo, "branch", folder=str(tmp_path), report="branch.html")["cpu"]
    assert set(told) >= {"converting", "checking", "reporting"}
    assert all(seconds > 0 for seconds in told.values())


def test_a_file_that_says_that_nothing_varies_is_believed(zoo: str) -> None:
    Path(zoo).write_text(ZOO.replace('{"x": "batch 8"}', "{}"))
    assert run(zoo, "pinned")["sizes"] == 1


def test_a_target_has_what_the_collection_says_of_its_inputs(zoo: str) -> None:
    said = {"target": f"{zoo}:Branch", "inputs": ["x: float32[batch, 3]"], "sizes": {"batch": "1..5"}}
    assert run_target(tell, said, "anyshape", {"opset_version": 18}, {})["outcome"] == "checked"
    assert run_target(tell, {"target": f"{zoo}:None_"}, "anyshape", {}, {})["outcome"] == "defect"


STATIC = """
    <ir_version: 8, opset_import: ["": 18]>
    agraph (float[2, 4] x) => (float[2, 4] y) { y = Relu(x) }
"""


def test_files_are_checked_and_freed(tmp_path: Path) -> None:
    path = tmp_path / "static.onnx"
    onnx.save(onnx.parser.parse_model(textwrap.dedent(STATIC)), path)
    assert run_file(tell, str(path), {}, "check", {}, {})["outcome"] == "checked"
    written = {"folder": str(tmp_path), "files": "freed"}
    assert run_file(tell, str(path), {"dims": {"x": "batch 4"}}, "make-dynamic", {}, written)["outcome"] == "checked"
    assert (tmp_path / "freed/model.onnx").exists()
    path.write_bytes(b"no model")
    assert run_file(tell, str(path), {}, "check", {}, {})["outcome"] == "defect"


def test_a_result_that_can_write_a_page_writes_it_below_the_folder(zoo: str, tmp_path: Path, monkeypatch) -> None:
    from anyshape.results.result import Result

    monkeypatch.setattr(Result, "report", lambda self, path: Path(path).write_text(self.verdict), raising=False)
    told = run(zoo, "pinned", folder=str(tmp_path), report="reports/pinned.html")
    assert told["report"] == "reports/pinned.html"
    assert (tmp_path / "reports/pinned.html").read_text() == "refused"
    monkeypatch.setattr(Result, "report", lambda self, path: 1 / 0)
    told = run(zoo, "pinned", folder=str(tmp_path), report="reports/pinned.html")
    assert (told["outcome"], told["no_report"]) == ("refused", "ZeroDivisionError: division by zero")


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", "", "x" * 5000, "\ud800", ".", "nul\0"])
def test_names_of_files_stay_below_the_folder_and_differ(name: str, tmp_path: Path) -> None:
    names = written_names(tmp_path, name, "anyshape", keeps_files=True)
    for key in ("report", "files"):
        place = (tmp_path / names[key]).resolve()
        assert place.parent.parent == tmp_path.resolve()
        assert len(place.name) < 120
    assert names["files"] != written_names(tmp_path, name, "anyshape ", keeps_files=True)["files"]


def test_an_option_that_nobody_knows_is_one_sentence() -> None:
    check_options("anyshape", "model", {"dtype": "float16"}, "the column `x`")
    check_options("anyshape", "checkpoint", {"task": "fill-mask"}, "the column `x`")
    for by, option in (("torch", "dtype"), ("check", "trusted"), ("anyshape", "trust_remote_code")):
        with pytest.raises(DeclarationError, match=f"has no option `{option}`"):
            check_options(by, "model", {option: 1}, "the column `x`")
