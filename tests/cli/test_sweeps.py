"""`anyshape sweep` as users call it; each entry in a process of its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from anyshape.cli import program
from anyshape.fleet.result_lines import TaskRecord, read_records
from tests.cli.test_entry_jobs import STATIC, ZOO


def invoke(*arguments: object, code: int = 0) -> str:
    ran = CliRunner().invoke(program, [str(one) for one in arguments])
    assert ran.exit_code == code, ran.output
    return ran.output


@pytest.fixture
def zoo(tmp_path: Path) -> Path:
    (tmp_path / "zoo.py").write_text(ZOO)
    return tmp_path / "zoo.py"


@pytest.mark.slow
def test_a_python_file_is_swept_and_resumed(zoo: Path, tmp_path: Path) -> None:
    out = tmp_path / "results"
    text = invoke("sweep", zoo, "-o", out, "--by", "anyshape", "--jobs", 2)
    assert "swept: 4 results" in text
    assert "anyshape     1 checked, 1 refused, 2 defect" in text
    records = read_records(out)
    assert records["branch", "anyshape"].tags == ("small",)
    assert "holds results: --resume goes on with them" in invoke("sweep", zoo, "-o", out, "--by", "anyshape", code=2)
    again = invoke("sweep", zoo, "-o", out, "--by", "anyshape", "--resume", "--json", "--quiet")
    assert json.loads(again)["ran"] == 0
    assert (out / "results.html").exists()


@pytest.mark.slow
def test_columns_of_the_collection_and_limits(zoo: Path, tmp_path: Path) -> None:
    zoo.write_text(
        "import time\n"
        + ZOO.replace("def models", "def wait():\n    time.sleep(600)\n\ndef models").replace(
            '"model": lambda: 1 / 0', '"model": wait'
        )
    )
    invoke("sweep", zoo, "-o", tmp_path / "r", "--seconds", "30", "--shard", "1/2", "--quiet")
    invoke("sweep", zoo, "-o", tmp_path / "r", "--seconds", "30", "--shard", "2/2", "--quiet")
    found = {key: one.outcome for key, one in read_records(tmp_path / "r").items()}
    assert found["broken", "plain"] == "timeout"
    assert {column for _, column in found} == {"plain", "torch"}
    assert len(found) == 8


def test_files_of_a_folder_are_checked_or_freed(tmp_path: Path) -> None:
    import onnx.parser

    for name in ("a", "deep/b"):
        (tmp_path / "files" / name).parent.mkdir(parents=True, exist_ok=True)
        onnx.save(onnx.parser.parse_model(STATIC), tmp_path / "files" / f"{name}.onnx")
    text = invoke("sweep", tmp_path / "files", "-o", tmp_path / "r", "--by", "check", "--by", "make-dynamic", "--keep")
    assert "check        2 checked" in text
    assert "make-dynamic 2 checked" in text
    assert len(list((tmp_path / "r/files").glob("*/model.onnx"))) == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--shard", ""], "the shard is ``: write i/N, from 1/N to N/N"),
        (["-o", ""], "the folder of results is ``: give its name, such as `.` for the current folder"),
        (["--shard", "9/8"], "the shard is `9/8`: write i/N, from 1/N to N/N"),
        (["--again", "refusd"], "--again `refusd` is no outcome; did you mean `refused`?"),
        (["--column", "a=dtypo=float16"], "the column `a`, by anyshape has no option `dtypo`; did you mean `dtype`?"),
        (["--seconds", "-1"], "a task is given -1 s and 12 GB: both must be more than nothing and have an end"),
        (["--gigabytes", "inf"], "a task is given 600 s and inf GB: both must be more than nothing and have an end"),
        (["--by", "anyshape", "--by", "make-dynamic"],
         "the column `make-dynamic` is by `make-dynamic`, which serves no entry of this collection, such as "),
        (["--only", "("], "--only `(` is no regular expression: missing ), unterminated subpattern at position 0"),
        (["--address", "127.0.0.1:1"], "--address is a cluster's: give --engine ray, too"),
    ],
)  # fmt: skip
def test_wrong_usage_is_one_sentence(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    (tmp_path / "net.py").write_text("")
    (tmp_path / "c.yaml").write_text("- net.py:Net")
    text = invoke("sweep", tmp_path / "c.yaml", "-o", tmp_path / "r", *arguments, code=2)
    assert text.startswith(f"error: {sentence}")
    assert not (tmp_path / "r/results.jsonl").exists()


def test_a_collection_without_a_name_is_not_the_current_folder(tmp_path: Path) -> None:
    text = invoke("sweep", "", "-o", tmp_path / "r", code=2)
    assert text == "error: the collection is ``: give its name, such as `.` for the current folder\n"


def test_a_listing_may_take_longer_than_an_entry(tmp_path: Path) -> None:
    source = (
        "import time\ndef models(only=None):\n    time.sleep(0 if only else 3)\n    yield {'name': 'a', 'model': len}\n"
    )
    (tmp_path / "slow.py").write_text(source)
    assert "anyshape     1 timeout" in invoke("sweep", tmp_path / "slow.py", "-o", tmp_path / "r", "--seconds", "0.2")


def test_two_entries_of_one_name_are_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("")
    (tmp_path / "c.yaml").write_text("- net.py:Net\n- net.py:Net")
    text = invoke("sweep", tmp_path / "c.yaml", "-o", tmp_path / "r", code=2)
    assert "two entries are called `net.py:Net` in column `anyshape`" in text


def write(folder: Path, *records: TaskRecord) -> Path:
    folder.mkdir()
    (folder / "results.jsonl").write_bytes(b"".join(one.to_line() for one in records))
    return folder


def test_results_are_merged_and_compared(tmp_path: Path) -> None:
    old = write(tmp_path / "old", TaskRecord("a", "anyshape", "checked"), TaskRecord("b", "anyshape", "refused"))
    new = write(tmp_path / "new", TaskRecord("a", "anyshape", "refused", cause="pinned-dim"))
    assert "swept: 2 results" in invoke("sweep", "merge", old, new, "-o", tmp_path / "all")
    assert read_records(tmp_path / "all")["a", "anyshape"].outcome == "refused"
    assert (tmp_path / "all/results.html").exists()
    text = invoke("sweep", "compare", old, new, code=1)
    assert text.startswith(
        "worse: 1 worse, 1 gone, 0 the same\n  worse    a [anyshape] checked -> refused: pinned-dim\n"
    )
    assert json.loads(invoke("sweep", "compare", old, old, "--json"))["regression"] is False
    (tmp_path / "e.jsonl").touch()
    for pair in ((old, tmp_path / "e.jsonl"), (tmp_path / "e.jsonl", old)):
        assert invoke("sweep", "compare", *pair, code=2) == (
            f"error: the sweep in `{tmp_path}/e.jsonl` has no result yet: there is nothing to compare\n"
        )
    assert invoke("sweep", "compare", old, tmp_path / "none", code=2).startswith("error: there are no results in ")


def test_reports_come_along_where_results_are_merged(tmp_path: Path) -> None:
    records = [TaskRecord("a", "anyshape", "checked", report="reports/a.html"),
               TaskRecord("b", "anyshape", "checked", report="../outer.html"),
               TaskRecord("c", "anyshape", "checked", report="results.jsonl")]  # fmt: skip
    shard = write(tmp_path / "shard", *records)
    (shard / "reports").mkdir()
    (shard / "reports/a.html").write_text("report of a")
    (tmp_path / "outer.html").write_text("outside")
    told = json.loads(invoke("sweep", "merge", shard / "results.jsonl", "-o", tmp_path / "all", "--json"))
    assert (told["results"], told["ran"]) == (3, 3)
    assert (tmp_path / "all/reports/a.html").read_text() == "report of a"
    assert 'href="reports/a.html"' in (tmp_path / "all/results.html").read_text()
    assert sorted(one.name for one in (tmp_path / "all").rglob("*.*")) == ["a.html", "results.html", "results.jsonl"]
    invoke("sweep", "merge", tmp_path / "all", "-o", tmp_path / "all")
    assert len(read_records(tmp_path / "all")) == 3


def test_help_tells_of_all_commands() -> None:
    text = invoke("sweep", "--help")
    assert all(name in text for name in ("run", "merge", "compare"))
    assert "--shard" in invoke("sweep", "run", "--help")
