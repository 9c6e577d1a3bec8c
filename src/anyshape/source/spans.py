"""A span: a place in the user's source, counted as people count; and the way to it from frames, tracebacks, definitions
and nodes of a file.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import linecache
import os
import re
import site
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any

from anyshape.sizes import budgets
from anyshape.source.cells import NAMELESS, cell_name


@dataclass(frozen=True)
class Span:
    """A place in the user's source; lines and columns count from 1, columns in characters."""

    path: str
    line: int
    column: int = 1
    end_line: int | None = None
    end_column: int | None = None
    function: str = ""

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}:{self.column}"
        return f"{place} in {self.function}" if self.function else place

    @property
    def is_known(self) -> bool:
        """Whether there is Python source at all: a traced module has none."""
        return self.path != _NOWHERE


_NOWHERE = "<unknown>"


Extent = tuple[int | None, int | None, int | None, int | None]
"""First line, last line, first byte, byte after the last; None where the compiler noted nothing."""


def extent_of(code: CodeType, instruction: int) -> Extent:
    """Where an instruction (`f_lasti`, `tb_lasti`) stands."""
    return next(itertools.islice(code.co_positions(), instruction // 2, None), (None, None, None, None))


def characters_before(text: str, offset: int) -> int:
    """Columns are counted in bytes by the compiler, in characters by people; where there is no text, bytes must do."""
    return offset if not text else len(text.encode()[:offset].decode(errors="replace"))


# ---- whose code it is


OURS = Path(__file__).resolve().parent.parent
_HOOKS = tuple(
    OURS / place
    for place in (
        "torchkit", "conversion/operators", "conversion/control_flow", "conversion/speed", "diagnosis/open_trace.py",
    )
)  # fmt: skip
"""What of ours a running model calls: the model lies further out on the stack."""

_WITHOUT_FILE = ("<ipython-input-", "<timed ", "<magic-timeit", "<python-input-", "<stdin>", "<string>")
"""What a cell of a notebook, one under `%%time`, a line at the prompt and text given to exec are called, not a file."""


_LIBRARIES = ("torch", "sympy", "onnxscript", "onnx_ir", "numpy", "typing_extensions", "typing_extensions.py")
_PLACES_OF_PACKAGES = ("site-packages", "dist-packages")


@functools.cache
def is_within(filename: str, *roots: Path) -> bool:
    """Whether a file is one of these or lies below one, by whatever links either is reached."""
    return any(_real_path(filename).is_relative_to(_real_path(root)) for root in roots)


@functools.cache
def _real_path(path: str | Path) -> Path:
    return Path(os.path.realpath(path))


def _library_roots() -> tuple[Path, ...]:
    """Folders of code that is neither the user's nor a model library's, the standard library last."""
    roots = [OURS]
    for name in _LIBRARIES:
        module = sys.modules.get(name)
        if module is not None and module.__file__:
            path = Path(module.__file__)
            roots.append(path.parent if path.name == "__init__.py" else path)
    return (*roots, Path(inspect.__file__).parent)


@functools.cache
def is_users(filename: str) -> bool:
    """Whether a file is the user's or a model library's: not torch, not the standard library, not ours."""
    if filename.startswith("<"):
        return filename.startswith(_WITHOUT_FILE) or cell_name(filename) is not None
    if filename.startswith("torch/fx/"):
        return False  # so torch.export signs the sizes that it reads off inputs
    if is_librarys(filename):
        # installed packages lie inside the standard library's folder; those of another machine go by their name
        return _package_of(filename) not in _LIBRARIES and not is_within(filename, *_library_roots()[:-1])
    return not is_within(filename, *_library_roots())


@functools.cache
def is_librarys(filename: str) -> bool:
    """Whether a file was installed, and is not the user's own."""
    folders = [Path(folder) for folder in (*site.getsitepackages(), site.getusersitepackages())]
    return _package_of(filename) is not None or is_within(filename, *folders)


def _package_of(filename: str) -> str | None:
    """What stands below a folder of packages; one that is linked into it from elsewhere does not."""
    parts = str(_real_path(filename)).replace("\\", "/").split("/")  # a file may have been written elsewhere
    return next((inner for outer, inner in itertools.pairwise(parts) if outer in _PLACES_OF_PACKAGES), None)


def is_ours(filename: str) -> bool:
    return is_within(filename, OURS)


@functools.cache
def is_outer(filename: str) -> bool:
    """Whether what lies further out on the stack is no longer the model, but whoever called us."""
    return is_ours(filename) and not is_within(filename, *_HOOKS)


# ---- from frames, tracebacks and definitions


def frames_of_model(frame: FrameType | None) -> Iterator[FrameType]:
    """The frames of the model's, seen from `frame` outwards; none where the model is not on the stack."""
    while frame is not None and not is_outer(frame.f_code.co_filename):
        if is_users(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


def span_of_stack(frame: FrameType | None) -> Span | None:
    """The innermost place of the model's, seen from `frame` outwards."""
    found = next(frames_of_model(frame), None)
    return None if found is None else span_of_code(found.f_code, found.f_lasti, found.f_lineno)


def steps_of_error(error: BaseException) -> Iterator[TracebackType]:
    """The places of the user's that an exception passed through, the innermost last."""
    step = error.__traceback__
    while step is not None:
        if is_users(step.tb_frame.f_code.co_filename):
            yield step
        step = step.tb_next


def span_of_error(error: BaseException) -> Span | None:
    """The innermost place of the user's that an exception passed through."""
    steps = list(steps_of_error(error))
    return span_of_code(steps[-1].tb_frame.f_code, steps[-1].tb_lasti, steps[-1].tb_lineno) if steps else None


def span_of_definition(function: Callable[..., Any]) -> Span:
    """The `def` line of a function: where a finding stands when nothing better is known."""
    function = inspect.unwrap(getattr(function, "__func__", function))
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        owner = type(function)
        try:
            path, line = shown_path(inspect.getfile(owner)), inspect.getsourcelines(owner)[1]
        except (OSError, TypeError):
            path, line = _NOWHERE, 1
        return Span(path, line, function=owner.__qualname__)
    first, last = code.co_firstlineno, code.co_firstlineno + budgets.MOST_DECORATOR_LINES
    if code.co_name == "<lambda>":
        return span_of_line(code, first)
    below = ((number, linecache.getline(code.co_filename, number)) for number in range(first, last))
    line = next((number for number, text in below if "def " in text or not text), last)  # past the decorators
    return span_of_line(code, line)


def span_of_code(code: CodeType, instruction: int, line: int) -> Span:
    """The place of one instruction."""
    first, last, start, end = extent_of(code, instruction)
    # a multi-line call chain is named at the method's own line
    first = first or line
    text = linecache.getline(code.co_filename, first)
    if start is None:
        start, end, last = _indent(text), None, None
    column = characters_before(text, start)
    last_text = linecache.getline(code.co_filename, last) if last else text
    end_column = None if end is None else characters_before(last_text, end) + 1
    return Span(shown_path(code.co_filename), first, column + 1, last, end_column, _qualified_name(code))


def span_of_line(code: CodeType, line: int) -> Span:
    """A whole line, where no instruction is known."""
    column = _indent(linecache.getline(code.co_filename, line)) + 1
    return Span(shown_path(code.co_filename), line, column, function=_qualified_name(code))


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _qualified_name(code: CodeType) -> str:
    return code.co_qualname.replace("<locals>.", "")


# ---- paths as people know them


def shown_path(filename: str) -> str:
    """A path as the user knows it: relative to the working directory or to the folder that packages lie in.

    A notebook's cell is known by its number.
    """
    shown = cell_name(filename) or _path_below_a_root(Path(filename))
    if shown != NAMELESS:  # which may be any
        _FILENAMES[shown] = filename
    return shown


_FILENAMES: dict[str, str] = {}
"""Path as shown -> the file, which may lie elsewhere than the working directory and the packages."""


def _path_below_a_root(path: Path) -> str:
    for way in (lambda one: one, _real_path):  # as it is called, then wherever links lead
        for root in map(way, _roots()):
            # relative to the file system's own root would be the whole path
            if root != Path(root.anchor) and way(path).is_relative_to(root):
                return way(path).relative_to(root).as_posix()
    return path.name


def _roots() -> Iterator[Path]:
    for folder in (*site.getsitepackages(), site.getusersitepackages()):
        yield Path(folder)
    yield Path.cwd()
    yield from (Path(entry) for entry in sys.path if entry)


def source_line(span: Span) -> str | None:
    """The text of a span's line, where the file can still be read."""
    if span.path.endswith(".onnx"):
        return None  # a file that was checked without its model has no lines
    known = _FILENAMES.get(span.path)
    if known is not None and (text := linecache.getline(known, span.line)):
        return text.rstrip("\n")
    for root in (Path.cwd(), *_roots()):  # whole paths: `linecache` keeps lines by the name that it was given
        path = root / span.path
        if path.is_file():
            text = linecache.getline(str(path), span.line)
            return text.rstrip("\n") if text else None
    return None


# ---- nodes of a file


_SOURCE_KEYS = ("anyshape.source", "pkg.torch.onnx.stack_trace")
"""What we write into a file, and what torch's own exporter writes."""


def span_of_node(node: Any) -> Span | None:
    """Where a node of an ONNX file came from, by what its exporter wrote into its metadata."""
    for entry in node.metadata_props:
        if entry.key == _SOURCE_KEYS[0]:
            place, _, function = entry.value.partition(" in ")
            file, _, line = place.rpartition(":")
            span = Span(file, int(line), function=function) if line.isdecimal() else None
            return None if span is None else replace(span, column=_indent(source_line(span) or "") + 1)
        if entry.key == _SOURCE_KEYS[1]:
            return span_of_recorded_stack(entry.value)
    return None


_STACK_LINE = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')


def span_of_recorded_stack(stack: str) -> Span | None:
    """The innermost place of the user's in a stack that torch recorded on a node."""
    found = None
    for filename, line, function in _STACK_LINE.findall(stack):
        if is_users(filename):
            column = _indent(linecache.getline(filename, int(line))) + 1
            found = Span(shown_path(filename), int(line), column, function=function)
    return found
