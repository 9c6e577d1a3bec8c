"""The documentation keeps its word: every example runs and prints what the page shows; tables agree with the code.

In README.md and docs/**/*.md

- a ```python block is executed. The blocks of one page share a namespace and count their lines as one `script.py`, in
  an empty folder. A block whose first line is `# file: model.py` is written to that file instead.
- a ```text block right after a ```python block is what that block prints, or the exception with which it ends.
- in a ```console block, each `$ anyshape ...` is run in the same folder, and what follows is what it prints;
  `$ echo $?` shows its exit code.

What depends on the machine is masked on both sides before they are compared (see MASKS). A line `...` in a shown output
stands for any lines. What stands between `<!-- generated: NAME -->` and `<!-- end -->` is made from the code (see
GENERATED). `python -m tests.test_docs [PAGE ...]` writes what is really printed and generated into the pages.
"""

from __future__ import annotations

import ast
import contextlib
import doctest
import importlib
import inspect
import io
import linecache
import os
import re
import shlex
import subprocess
import sys
import tempfile
import tomllib
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import CodeType, ModuleType

import pytest
import torch
from click.testing import CliRunner

import anyshape
from anyshape.cli import program
from anyshape.conversion.strategies import FORMS, STRATEGIES
from anyshape.declaration.options import TORCH_ARGUMENTS
from anyshape.results.explanations import RULES
from anyshape.runtime.releases import RELEASES
from anyshape.sizes import budgets
from anyshape.testbench.judgement import FACTOR
from tests.api_reference import PUBLIC, is_explained, reference
from tests.test_architecture import ORDER

ROOT = Path(__file__).parent.parent
HOUSE = ROOT / "src/anyshape"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OF_OTHERS = {"docs/upstream.md"}
"""Scripts that show the faults of other projects: half a minute, and our code changes nothing about them."""


def _name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


MASKS = (
    (r"\d+\.\d+\.\d+(\+\w+)?", "<version>"),
    (r"\bopset \d+", "opset <n>"),
    (r"\b\d+(\.\d+)? s\b", "<seconds> s"),
    (r"\b\d+\.\d x the (model|static file)'s", r"<ratio> x the \1's"),
    (r"\bat \d+ sizes? in\b", "at <n> sizes in"),
    (r"\b\d+ to \d+ \(\d+\)", "<from> to <to> (<n>)"),
    (r"\b(\d+) \((\d+)\)(?=;|$)", "<size> (<n>)"),
    (r"\bsmallest of \d+ (failing|such) sizes\b", r"smallest of <n> \1 sizes"),
    (r"\b\d+ were run\b", "<n> were run"),
    (r"\bdiffers by \S+ \(allowed \S+\)", "differs by <error> (allowed <error>)"),
    (r"\b\d+(\.\d+)?e[+-]\d+\b", "<error>"),
    (r"\b\d+(\.\d+)? (bytes|kB|MB)\b", "<bytes>"),
    (r"^  (machine|nodes)  .*$", r"  \1  <this machine's>"),
    (r"^  note     other programs took .*\n", ""),
    (r"\bdiffer by up to \d+%", "differ by up to <n>%"),
    (r"^  sizes  .*$", "  sizes <figures>"),
    (r"^(  .*?) +\d[\d.]* ms .*$", r"\1 <figures>"),
)
"""Versions, seconds, errors against rounding noise, how many sizes were run and how far, bytes of a file, and figures
that are measured.
"""


@dataclass(frozen=True)
class Block:
    """One fenced block of a page; `line` is the page's line of its first line of text."""

    language: str
    text: str
    line: int


@dataclass(frozen=True)
class Shown:
    """What a page shows for one example, and what really came; `block` is where the page shows it."""

    block: Block
    expected: str
    actual: str


def blocks_of(page: str) -> list[Block]:
    found = re.finditer(r"^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return [Block(m[1], m[2], page.count("\n", 0, m.start(2)) + 1) for m in found]


# ---- running a page


def run_page(page: str) -> Iterator[Shown]:
    """Run all examples in the working directory."""
    module = ModuleType("script")
    module.__file__ = str(Path.cwd() / "script.py")
    sys.modules["script"] = module  # torch's strict mode looks a model's globals up in its module
    script = ""
    last = Block("", "", 0)
    printed = ""
    for block in blocks_of(page):
        if block.language == "python" and block.text.startswith("# file: "):
            name, _, source = block.text.removeprefix("# file: ").partition("\n")
            Path(name).write_text(source, encoding="utf-8")
        elif block.language == "python":
            assert not printed.startswith("Traceback"), f"line {last.line} fails:\n{printed}"
            printed = _run_python(script, block.text, vars(module))
            script += f"{block.text}\n"
        elif block.language == "text" and last.language == "python":
            yield Shown(block, block.text, printed.removeprefix("Traceback\n"))
            printed = ""
        elif block.language == "console":
            yield Shown(block, block.text, _run_console(block.text))
        last = block
    assert not printed.startswith("Traceback"), f"line {last.line} fails:\n{printed}"


def _run_python(before: str, source: str, namespace: dict[str, object]) -> str:
    path = Path.cwd() / "script.py"
    path.write_text(before + source, encoding="utf-8")
    linecache.clearcache()
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            exec(_compiled(source, path, before.count("\n")), namespace)
        except Exception as error:  # noqa: BLE001  an example may end in an error, which the page then shows
            return f"Traceback\n{printed.getvalue()}{_last_words(error)}"
    return printed.getvalue()


def _compiled(source: str, path: Path, offset: int) -> CodeType:
    return compile("\n" * offset + source, str(path), "exec")


def _last_words(error: Exception) -> str:
    """The end of the traceback that Python would print."""
    return "".join(traceback.format_exception_only(error))


def _run_console(text: str) -> str:
    """The same block with what the commands really print."""
    lines, code = [], 0
    for command in re.findall(r"^\$ (?:.*\\\n)*.*$", text, re.MULTILINE):
        lines.append(command)
        words = shlex.split(command.removeprefix("$ ").replace("\\\n", " "))
        if words == ["echo", "$?"]:
            lines.append(str(code))
            continue
        assert words[0] == "anyshape", command
        outcome = CliRunner().invoke(program, words[1:])
        code = outcome.exit_code
        lines.append((outcome.stdout or outcome.stderr).rstrip("\n"))
    return "\n".join(lines) + "\n"


@contextlib.contextmanager
def empty_folder(folder: Path) -> Iterator[None]:
    """Inside, the working directory is `folder`, from which modules can be imported, as beside a user's script."""
    before, path, known = Path.cwd(), list(sys.path), set(sys.modules)
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    try:
        with warnings.catch_warnings(), torch.random.fork_rng():
            warnings.simplefilter("ignore")  # torch's own, of which the pages do not speak
            torch.manual_seed(0)
            yield
    finally:
        os.chdir(before)
        sys.path[:] = path
        for name in set(sys.modules) - known:
            if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(folder)):
                del sys.modules[name]


# ---- comparing


def masked(text: str) -> str:
    for pattern, instead in MASKS:
        text = re.sub(pattern, instead, text, flags=re.MULTILINE)
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def agrees(expected: str, actual: str) -> bool:
    parts = [re.escape(part) for part in re.split(r"^ *\.\.\.$", masked(expected), flags=re.MULTILINE)]
    return re.fullmatch(r".*".join(parts), masked(actual), re.DOTALL) is not None


@pytest.mark.parametrize(
    "page", [pytest.param(p, marks=[pytest.mark.slow] if _name(p) in OF_OTHERS else [], id=_name(p)) for p in PAGES]
)
def test_examples_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    with empty_folder(tmp_path):
        for shown in run_page(page.read_text(encoding="utf-8")):
            if not agrees(shown.expected, shown.actual):
                assert masked(shown.actual) == masked(shown.expected), f"{page.name}, line {shown.block.line}"


def test_an_output_that_differs_is_noticed() -> None:
    assert agrees("took 1.5 s\n", "took 0.2 s\n")
    assert agrees("first\n...\nlast\n", "first\nsecond\nthird\nlast\n")
    assert not agrees("batch 1..\n", "batch 2..\n")
    assert not agrees("first\n...\nlast\n", "first\nsecond\n")


# ---- examples of docstrings


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_has_an_example_that_runs(name: str, tmp_path: Path) -> None:
    given = {"anyshape": anyshape, "torch": torch}
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner(verbose=False)
    (one,) = finder.find(PUBLIC[name], name, module=False, globs=given)
    printed = io.StringIO()
    with empty_folder(tmp_path):
        runner.run(one, out=printed.write)
    assert runner.tries > 0, "no example"
    assert runner.failures == 0, printed.getvalue()


def test_every_argument_of_a_public_function_is_explained_where_it_is_defined() -> None:
    functions = [one for one in PUBLIC.values() if inspect.isfunction(one)] + [anyshape.checkpoints.export_checkpoint]
    arguments = [(one, name) for one in functions for name in inspect.signature(one).parameters]
    assert [(one.__name__, name) for one, name in arguments if not is_explained(one, name)] == []


# ---- tables that are made from the code


def _rows(head: str, rows: Iterable[Iterable[str]]) -> str:
    columns = head.count("|") - 1
    return "\n".join([head, "|---" * columns + "|", *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


def first_sentence(path: Path) -> str:
    """What a file or a folder says about itself first, on one line and without the full stop."""
    text = " ".join((ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").split("\n\n")[0].split())
    sentence = re.match(r"(.*?)(\.( |$)|$)", text)
    assert sentence is not None
    return sentence[1]


def folders_table() -> str:
    """Every folder in the order of their imports, each followed by the folders in it."""
    rows = []
    for name in ORDER:
        if (file := HOUSE / f"{name}.py").exists():
            rows.append((f"`{name}.py`", first_sentence(file)))
            continue
        for path in sorted((HOUSE / name).rglob("__init__.py")):
            rows.append((f"`{path.parent.relative_to(HOUSE).as_posix()}/`", first_sentence(path)))
    return _rows("| folder | idea |", rows)


def _of_benchmark(module: str, name: str, *of: str) -> str:
    """A table that a benchmark makes of the results that it keeps."""
    folder = str(ROOT / "benchmarks")
    sys.path.insert(0, folder)
    try:
        return str(getattr(importlib.import_module(module), name)(*of))
    finally:
        sys.path.remove(folder)


GENERATED: Mapping[str, Callable[[], str]] = {
    "api": reference,
    "folders": folders_table,
    "matrix": partial(_of_benchmark, "compatibility_tables", "matrix"),
    "environments": partial(_of_benchmark, "compatibility_tables", "environments"),
    "faults": partial(_of_benchmark, "faults", "table"),
    "coverage": partial(_of_benchmark, "coverage_tables", "table"),
    "files_one_thread": partial(_of_benchmark, "performance_tables", "files", "1 thread"),
    "files_two_threads": partial(_of_benchmark, "performance_tables", "files", "2 threads"),
    **{
        name: partial(_of_benchmark, "performance_tables", name)
        for name in (
            "in_short",
            "goals",
            "exports",
            "new_processes",
            "growth",
            "means",
            "nodes",
            "default_form",
            "resizing",
            "memory",
        )
    },
    "operators": partial(_of_benchmark, "operator_tables", "counts"),
    "each_operator": partial(_of_benchmark, "operator_tables", "each_operator"),
    "strategies": lambda: _rows(
        "| strategy | tried where | what it does |", [(f"`{s.name}`", s.when, s.what) for s in STRATEGIES]
    ),
    "forms": lambda: _rows("| form | tried where | what it is |", [(f"`{f.name}`", f.when, f.what) for f in FORMS]),
    "releases": lambda: _rows(
        "| ONNX Runtime | newest opset | newest IR version |",
        [(release.version, str(release.opset), str(release.ir_version)) for release in RELEASES.values()],
    ),
    "rules": lambda: _rows("| rule | meaning |", [(f"[`{r}`](rules/{r}.md)", meaning) for r, meaning in RULES.items()]),
}


def filled(page: str) -> str:
    """The page with what the code gives between its markers."""

    def between(found: re.Match[str]) -> str:
        return f"{found[1]}\n{GENERATED[found[2]]()}<!-- end -->"

    return re.sub(r"(<!-- generated: (\w+) -->)\n.*?<!-- end -->", between, page, flags=re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_what_is_generated_is_what_the_code_gives(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text == filled(text), f"python -m tests.test_docs {page.relative_to(ROOT)}"


def test_every_table_that_can_be_generated_stands_on_a_page() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert sorted(re.findall(r"^<!-- generated: (\w+) -->$", text, re.MULTILINE)) == sorted(GENERATED)


def test_every_folder_has_a_sentence_of_its_own() -> None:
    sentences = [first_sentence(path) for path in HOUSE.rglob("__init__.py")]
    assert [sentence for sentence in sentences if len(sentence.split()) < 5] == []
    assert len(set(sentences)) == len(sentences)


# ---- other tables and names


def _table(page: str, title: str) -> list[list[str]]:
    """The rows of the first table below a heading."""
    text = (ROOT / page).read_text(encoding="utf-8").partition(f"# {title}\n")[2]
    found = re.search(r"^\|.*\n\|[-| ]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert found is not None, f"{page} has no table below `{title}`"
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in found[1].splitlines()]


def test_the_table_of_rules_is_the_code_s() -> None:
    rows = [[f"[`{rule}`](rules/{rule}.md)", meaning] for rule, meaning in RULES.items()]
    assert _table("docs/index.md", "The rules") == rows


def test_every_rule_has_a_page_and_every_page_a_rule() -> None:
    assert {page.stem for page in (ROOT / "docs/rules").glob("*.md")} == set(RULES)


@pytest.mark.parametrize("rule", RULES)
def test_the_page_of_a_rule_has_its_four_parts(rule: str) -> None:
    text = (ROOT / f"docs/rules/{rule}.md").read_text(encoding="utf-8")
    assert text.startswith(f"# {rule}\n")
    parts = ["What it means", "Why", "Example", "What to do"]
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == parts
    assert f"[{rule}]" in text, "the example does not show the rule"


def test_every_argument_of_torch_has_a_row() -> None:
    rows = {row[0].strip("`"): row[1:] for row in _table("docs/from_torch.md", "Every argument")}
    assert set(inspect.signature(torch.onnx.export).parameters) <= set(rows)
    own = inspect.signature(anyshape.export).parameters
    for name, (treatment, sentence) in rows.items():
        if name in TORCH_ARGUMENTS:
            argument = TORCH_ARGUMENTS[name]
            assert (treatment, sentence) == (argument.treatment, argument.sentence), name
        else:
            assert (treatment, name in own) == ("honoured", True), name
    assert set(TORCH_ARGUMENTS) <= set(rows)


def test_the_table_of_folders_is_the_tree_s() -> None:
    rows = {row[0].strip("`") for row in _table("docs/how_it_works.md", "The house")}
    folders = {f"{path.parent.relative_to(HOUSE).as_posix()}/" for path in HOUSE.glob("*/**/__init__.py")}
    assert rows == folders | {path.name for path in HOUSE.glob("*.py")} - {"__init__.py", "__main__.py"}


FILE = re.compile(rf"`((?:src|tests|benchmarks|examples|{'|'.join(ORDER)})/(?:[a-z_]+/)*(?:[a-z_]+\.py)?)`")


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=_name)
def test_files_and_folders_that_a_page_names_are_there(page: Path) -> None:
    named = FILE.findall(page.read_text(encoding="utf-8"))
    assert [name for name in named if not any((place / name).exists() for place in (HOUSE, ROOT))] == []


def test_every_fault_of_others_names_the_file_of_its_work_around() -> None:
    entries = re.split(r"^## ", (ROOT / "docs/upstream.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    for entry in entries:
        last = entry.rstrip("\n").splitlines()[-1]
        assert re.fullmatch(r"Worked around in: `src/anyshape/[\w/]+\.py`(, `src/anyshape/[\w/]+\.py`)*", last), entry[
            :60
        ]


def test_the_wrong_files_are_as_many_as_promised() -> None:
    from tests.verification.wrong_files import RIGHT, SUBJECTS, WRONG

    text = " ".join((ROOT / "docs/promises.md").read_text(encoding="utf-8").split())
    promised = f"holds {len(WRONG)} wrong files and {len(RIGHT)} right ones, made by hand for {len(SUBJECTS)} models"
    assert promised in text


def test_the_figures_that_are_promised_are_those_of_the_code() -> None:
    text = " ".join((ROOT / "docs/promises.md").read_text(encoding="utf-8").split())
    words = {4: "four", 6: "six", 3: "third"}
    promised = (
        f"closed and at most {budgets.FEW_ENOUGH_FOR_ALL}, all of them are run",
        f"up to {budgets.MOST_DECIDED_SIZES} sizes at which comparisons of sizes",
        f"up to {budgets.MOST_ROUNDED_SIZES} at which a formula of sizes rounds otherwise",
        f"A {words[budgets.SECOND_CONTENT_EVERY]} of the sizes is run with a second content",
        f"calls of more than {budgets.SMALL_VOLUME:,} elements",
        f"elements that are more than {words[budgets.SECOND_CONTENT_UP_TO]} times as large as the traced one",
        f"exceeds {FACTOR:g} times its noise",
        f"is run again, up to {budgets.MOST_JITTERED_RUNS} times",
        f"measured for {words[budgets.ENOUGH_MEASURED_CALLS]} calls",
        f"are reached: up to {words[budgets.MOST_NUMBERS_REACHED]} of them",
        f"for each such decision, for up to {words[budgets.MOST_SIZES_WITH_CONTENTS]}",
    )
    assert [one for one in promised if one not in text] == []


def test_the_changelog_and_the_citation_name_the_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[{re.escape(anyshape.__version__)}\]", changelog, re.MULTILINE)
    assert f'\nversion: "{anyshape.__version__}"\n' in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_every_public_name_and_every_option_is_documented() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [name for name in anyshape.__all__ if name not in text] == []
    functions = (anyshape.export, anyshape.check, anyshape.make_dynamic)
    arguments = [name for function in functions for name in inspect.signature(function).parameters]
    assert [name for name in arguments if name != "torch_arguments" and f"`{name}" not in text] == []
    options = [o for command in program.commands.values() for p in command.params for o in p.opts if o[:2] == "--"]
    assert [name for name in options if name not in text] == []


def test_every_name_of_ours_in_a_text_is_there_after_the_import() -> None:
    """Also those in sentences and messages, which no block runs; in a process that has imported nothing else."""
    texts = [path.read_text(encoding="utf-8") for path in (*PAGES, *HOUSE.rglob("*.py"))]
    calls = {call for text in texts for call in re.findall(r"(?<![\w./])anyshape((?:\.\w+)+)(?=\()", text)}
    assert ".checkpoints.export_checkpoint" in calls
    code = "import anyshape\n" + "\n".join(f"anyshape{call}" for call in sorted(calls))
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_the_readme_names_every_package_that_is_needed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    names = {re.split(r"[<>=]", one, maxsplit=1)[0] for one in needed}
    readme = (ROOT / "README.md").read_text(encoding="utf-8").partition("What it stands on")[2]
    assert [name for name in sorted(names) if re.search(rf"(?<![\w-]){name}(?![\w-])", readme) is None] == []


def test_links_lead_somewhere() -> None:
    for page in {*PAGES, *ROOT.glob("*.md")}:
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


# ---- writing what is really printed into the pages


def rewrite(page: Path) -> None:
    text = filled(page.read_text(encoding="utf-8"))
    lines = text.splitlines(keepends=True)
    with tempfile.TemporaryDirectory() as folder, empty_folder(Path(folder)):
        shown = list(run_page(text))
    for one in reversed(shown):
        if not agrees(one.expected, one.actual):
            first = one.block.line - 1
            lines[first : first + one.block.text.count("\n")] = [one.actual.rstrip("\n") + "\n"]
    page.write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name in sys.argv[1:] or PAGES:
        rewrite(ROOT / name)
