"""TARGET as it is written: `model.py:Net(4, depth=2).encode` taken apart, and what is wrong with it before torch loads.

A file is read and parsed, and never run: what it lacks, and what is no Python at all, is one sentence at once.
"""

from __future__ import annotations

import ast
import importlib.machinery
import importlib.util
import os
import re
import stat
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anyshape.errors import DeclarationError
from anyshape.onnxfile.destination import refuse_foreign
from anyshape.sizes.notation import did_you_mean


@dataclass(frozen=True)
class Step:
    """One name on the way from the file to the model, with the arguments that it is called with, if any."""

    name: str
    arguments: tuple[tuple[Any, ...], Mapping[str, Any]] | None = None


@dataclass(frozen=True)
class TargetText:
    """TARGET, taken apart."""

    text: str
    place: str
    """`model.py`, `package.module` or `scripted.pt`."""
    steps: tuple[Step, ...]
    is_archive: bool = False
    """Whether it is a module that torch.jit.save wrote, which is its own model and has no code in Python."""

    @property
    def is_file(self) -> bool:
        return self.place.endswith(".py") or "/" in self.place or "\\" in self.place


def read_target(text: str) -> TargetText:
    """What TARGET names, found in its file or package as far as that can be told without running either."""
    found = _taken_apart(text)
    place = text if found is None else found.place
    refuse_foreign(place)
    if stat.S_ISREG(mode_of(place)) and _is_torchscript(Path(place)):
        return TargetText(text, place, () if found is None else found.steps, is_archive=True)
    if found is None:
        raise DeclarationError(_sentence_about(text))
    if not found.is_file:
        _refuse_absent_module(found.place)
        return found
    path = Path(found.place)
    if not stat.S_ISREG(mode_of(found.place)):
        raise DeclarationError(f"there is no file `{found.place}`{_near(path)}")
    if path.suffix != ".py":
        raise DeclarationError(_about_file(path) or f"`{found.place}` is no Python file")
    _refuse_absent_name(path, found)
    return found


def _taken_apart(text: str) -> TargetText | None:
    """Split at the first colon behind which names stand: a path may have one, too, and an argument."""
    for colon in re.finditer(":", text):
        place, rest = text[: colon.start()], text[colon.end() :]
        tree = _expression(rest)
        if place and tree is not None and (steps := _steps_of(tree)):
            return TargetText(text, place, tuple(steps))
    return None


def _expression(text: str) -> ast.expr | None:
    try:
        return ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _steps_of(tree: ast.expr) -> list[Step]:
    """Names with dots between them; nothing where anything else is among them."""
    arguments = _literals_of(tree) if isinstance(tree, ast.Call) else None
    tree = tree.func if isinstance(tree, ast.Call) else tree
    if isinstance(tree, ast.Name):
        return [Step(tree.id, arguments)]
    before = _steps_of(tree.value) if isinstance(tree, ast.Attribute) else []
    return [*before, Step(tree.attr, arguments)] if before and isinstance(tree, ast.Attribute) else []


def _literals_of(call: ast.Call) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
    """What is written between the brackets, of which nothing is executed."""
    if any(keyword.arg is None for keyword in call.keywords):
        raise DeclarationError(f"`{ast.unparse(call)}` has `**`: write each argument with its name")
    named = {str(keyword.arg): _literal(keyword.value, call) for keyword in call.keywords}
    return tuple(_literal(one, call) for one in call.args), named


def _literal(tree: ast.expr, call: ast.Call) -> Any:
    try:
        return ast.literal_eval(tree)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        raise DeclarationError(
            f"`{ast.unparse(call)}` has the argument `{ast.unparse(tree)}`, which is no literal: "
            "write numbers, text, True, False, None, or lists, tuples and dicts of them"
        ) from None


# ---- what is no target

_WEIGHTS = (".pt", ".pth", ".ckpt", ".bin", ".safetensors")


def mode_of(text: str) -> int:
    """What the system says a path is; 0 where there is none, or could be none."""
    try:
        return Path(text).stat().st_mode if text else 0
    except (OSError, ValueError):
        return 0


def _sentence_about(text: str) -> str:
    path, mode = Path(text), mode_of(text)
    place, _, rest = text.partition(":")
    if rest and stat.S_ISREG(mode_of(place)):
        return f"`{rest}` names no model in `{place}`: write `{place}:NAME` or `'{place}:NAME(4, depth=2)'`"
    if stat.S_ISREG(mode):
        return _about_file(path) or f"`{text}` is no Python file: write `FILE.py:NAME` or `package.module:NAME`"
    if stat.S_ISDIR(mode):
        return f"`{text}` is a folder: `anyshape export` takes that of a checkpoint, every command `FILE.py:NAME`"
    if path.suffix in (".py", ".pt2", ".onnx", *_WEIGHTS):
        return f"there is no file `{text}`{_near(path)}"
    if os.sep in text and ":" not in text:
        return f"there is no file or folder `{text}`"
    return f"`{text}` names no model: write `FILE.py:NAME` or `package.module:NAME`"


def _about_file(path: Path) -> str:
    """The sentence that fits a file which is there, and which is no code with a name behind it."""
    match path.suffix:
        case ".py":
            return f"`{path}` is a file with no name behind it: write `{path}:NAME`{_names_nearby(path)}"
        case ".onnx":
            return (
                f"`{path}` is an ONNX file already: `anyshape make-dynamic {path} -o FILE` frees its sizes, "
                f"`anyshape check {path}` checks it"
            )
        case ".pt2":
            return (
                f"`{path}` is a program of torch.export: load it in a Python file, "
                f'`program = torch.export.load("{path}")`, and name that: `FILE.py:program`'
            )
        case suffix if suffix in _WEIGHTS:
            return f"`{path}` holds weights and no code: name the model, too, `FILE.py:NAME --weights {path}`"
    return ""


def _is_torchscript(path: Path) -> bool:
    """Such an archive has a folder `code` beside its tensors; nothing of it is executed here."""
    try:
        with zipfile.ZipFile(path) as archive:
            return any(name.split("/")[1:2] == ["code"] for name in archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return False


def _near(path: Path) -> str:
    """Files of nearly that name in the same folder."""
    beside = path.parent.glob(f"*{path.suffix}") if path.parent.is_dir() else ()
    # all of them end alike, which is no likeness
    return did_you_mean(path.stem, [one.stem for one in beside]).replace("`?", f"{path.suffix}`?")


# ---- what stands in a file, without running it


def _names_nearby(path: Path) -> str:
    """What could be meant: the modules that a file defines."""
    found = [f"`{path}:{name}`" for name in _modules_in(path)]
    return f"; did you mean {' or '.join(found[:3])}?" if found else ""


def _modules_in(path: Path) -> Iterator[str]:
    """The classes of a file that can be called as modules are."""
    try:
        tree = ast.parse(path.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in tree.body:
        parts = node.body if isinstance(node, ast.ClassDef) else ()
        if isinstance(node, ast.ClassDef) and any(getattr(part, "name", "") == "forward" for part in parts):
            yield node.name


_MADE_OTHERWISE = re.compile(r"import\s*\*|\b(globals|vars|exec|setattr|__getattr__|__dict__)\b")
"""Ways to a name that is written nowhere."""


def _refuse_absent_name(path: Path, target: TargetText) -> None:
    """One sentence for what is no Python, and for a first name that is not among the words of the file."""
    try:
        source = path.read_bytes()
        tree = ast.parse(source, str(path))
    except OSError as error:
        raise DeclarationError(f"`{target.place}` cannot be read: {error.strerror}") from None
    except (SyntaxError, ValueError) as error:
        said = str(error).replace(str(path), path.name)
        raise DeclarationError(f"`{target.text}` cannot be loaded: {type(error).__name__}: {said}") from error
    text, name = source.decode("utf-8", "replace"), target.steps[0].name
    if name not in re.findall(r"\w+", text) and not _MADE_OTHERWISE.search(text):
        known = [one for node in tree.body for one in _names_of(node)]
        raise DeclarationError(f"`{target.place}` has no `{name}`{did_you_mean(name, known)}")


def _names_of(statement: ast.stmt) -> list[str]:
    """What a statement of a file defines."""
    if isinstance(statement, ast.ClassDef | ast.FunctionDef):
        return [statement.name]
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return [alias.asname or alias.name for alias in statement.names]
    return [one.id for one in ast.walk(statement) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)]


def _refuse_absent_module(name: str) -> None:
    top = name.split(".", maxsplit=1)[0]
    if not all(part.isidentifier() for part in name.split(".")):
        raise DeclarationError(f"`{name}` is neither a Python file nor the name of a module")
    if top not in sys.modules and not _is_importable(top):
        raise DeclarationError(f"there is no module `{top}`{did_you_mean(top, _modules_beside())}")


def _is_importable(top: str) -> bool:
    is_here = importlib.machinery.PathFinder.find_spec(top, [str(Path.cwd()), *sys.path]) is not None
    return is_here or importlib.util.find_spec(top) is not None  # what an editable installation finds by itself


def _modules_beside() -> Sequence[str]:
    return [path.stem for path in Path.cwd().glob("*.py")]
