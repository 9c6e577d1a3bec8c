"""A collection: models of a Python file, checkpoints and .onnx files of a folder, or a YAML list of these.

A YAML file and a folder are data, by whomever: what leads out of their folder, by a name or by a link, is refused, and
nothing of them is executed but the Python files that they name below it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from anyshape.checkpoints.folders import is_checkpoint
from anyshape.errors import DeclarationError, first_line, reason_of_system
from anyshape.fleet.option_sets import OptionSet, read_option_sets
from anyshape.sizes import budgets
from anyshape.sizes.notation import did_you_mean, listed

Kind = Literal["model", "target", "checkpoint", "onnx"]


@dataclass(frozen=True)
class CollectedEntry:
    """One thing to sweep."""

    name: str
    kind: Kind
    place: Path
    """The Python file, the checkpoint's folder or the ONNX file."""
    said: Mapping[str, Any] = field(default_factory=dict)
    """What the collection says of it: `target`, `inputs`, `dims`, `sizes`, `where`, `weights`."""
    options: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class SweptCollection:
    entries: tuple[CollectedEntry, ...]
    columns: tuple[OptionSet, ...] = ()
    """The collection's own; those of the command line replace them."""


ListModels = Callable[[Path], Mapping[str, Any]]
"""The `models` of a Python file, with their tags and options, and its `columns`: asked of a process of its own."""


def read_collection(place: Path, list_models: ListModels) -> SweptCollection:
    """Everything that a collection names, each under a name of its own."""
    if not place.exists():
        raise DeclarationError(f"there is no collection `{place}`")
    found = _collection_at(place.resolve(), "", list_models, depth=0)
    if not found.entries:
        raise DeclarationError(f"`{place}` has nothing to sweep: no model, no checkpoint and no .onnx file")
    return found


def _collection_at(place: Path, prefix: str, list_models: ListModels, depth: int) -> SweptCollection:
    if place.is_dir():
        return SweptCollection(tuple(_entries_of_folder(place, prefix)))
    if place.suffix == ".py":
        return _collection_of_python(place, prefix, list_models(place))
    if place.suffix in (".yaml", ".yml"):
        return _collection_of_yaml(place, prefix, list_models, depth)
    if place.suffix == ".onnx":
        return SweptCollection((CollectedEntry(f"{prefix}{place.stem}", "onnx", place),))
    raise DeclarationError(f"`{place}` is no collection: name a .py, .yaml or .onnx file, or a folder")


# ---- a folder


def _entries_of_folder(folder: Path, prefix: str) -> Iterator[CollectedEntry]:
    """Checkpoints and files at any depth; a checkpoint is not looked into, and links are not followed."""
    if is_checkpoint(folder):
        yield CollectedEntry(f"{prefix}{folder.name}", "checkpoint", folder)
        return
    for parent, folders, files in os.walk(folder, followlinks=False):
        here = Path(parent)
        checkpoints = [name for name in folders if not (here / name).is_symlink() and is_checkpoint(here / name)]
        folders[:] = sorted(name for name in folders if name not in checkpoints and not name.startswith("."))
        for name in sorted(checkpoints):
            yield CollectedEntry(prefix + _name_below(here / name, folder), "checkpoint", here / name)
        for name in sorted(one for one in files if one.endswith(".onnx")):
            if (here / name).resolve().is_relative_to(folder):
                yield CollectedEntry(prefix + _name_below(here / name, folder), "onnx", here / name)


def _name_below(place: Path, folder: Path) -> str:
    """A name that any system's bytes can be told by."""
    return place.relative_to(folder).as_posix().encode(errors="backslashreplace").decode()


# ---- a Python file: what it says was said in a process of its own


def _collection_of_python(place: Path, prefix: str, told: Mapping[str, Any]) -> SweptCollection:
    entries = tuple(
        CollectedEntry(
            f"{prefix}{one['name']}", "model", place, {"model": one["name"]}, one["options"], tuple(one["tags"])
        )
        for one in told["models"]
    )
    return SweptCollection(entries, read_option_sets(told["columns"], f"`columns` of `{place.name}`"))


# ---- a YAML file

_KINDS = ("target", "checkpoint", "onnx", "collection")
_SAID = ("inputs", "dims", "sizes", "where", "weights")
_KEYS = (*_KINDS, "name", "tags", "options", *_SAID)


def _collection_of_yaml(place: Path, prefix: str, list_models: ListModels, depth: int) -> SweptCollection:
    if depth > budgets.DEEPEST_COLLECTION:
        raise DeclarationError(f"`{place.name}` lists collections that list each other")
    content = _yaml_in(place)
    columns: Any = {}
    if isinstance(content, Mapping):
        if strange := [key for key in content if key not in ("entries", "columns")]:
            raise DeclarationError(f"`{place.name}` has `{strange[0]}`: a collection has `entries` and `columns`")
        columns, content = content.get("columns") or {}, content.get("entries")
    if not isinstance(content, list):
        raise DeclarationError(f"`{place.name}` is no list of entries, and has none called `entries`")
    entries: list[CollectedEntry] = []
    for number, row in enumerate(content, 1):
        where = f"entry {number} of `{place.name}`"
        entries += _entries_of_row(row, where, place.parent, prefix, list_models, depth)
    return SweptCollection(tuple(entries), read_option_sets(columns, f"`columns` of `{place.name}`"))


def _yaml_in(place: Path) -> Any:
    try:
        import yaml
    except ImportError:
        raise DeclarationError(f"`{place}` needs the package PyYAML: pip install pyyaml") from None
    try:
        content = yaml.safe_load(place.read_text(encoding="utf-8"))
    except OSError as error:
        raise DeclarationError(f"`{place}` cannot be read: {reason_of_system(error)}") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        raise DeclarationError(f"`{place}` is no YAML: {first_line(error)}") from None
    _refuse_endless(content, place)
    return content


def _refuse_endless(content: Any, place: Path) -> None:
    """An alias stands for what it names wherever it is written, and this may hold aliases, or itself."""
    waiting, count = [content], 0
    while waiting:
        value = waiting.pop()
        count += 1
        if isinstance(value, (dict, list)):
            waiting += value.values() if isinstance(value, dict) else value
        if count + len(waiting) > budgets.MOST_VALUES_OF_A_COLLECTION:
            raise DeclarationError(
                f"`{place.name}` has more than {budgets.MOST_VALUES_OF_A_COLLECTION:,} values, aliases written out"
            )


def _entries_of_row(
    row: Any, where: str, folder: Path, prefix: str, list_models: ListModels, depth: int
) -> Iterable[CollectedEntry]:
    said = _row_with_kind(row, where)
    kind = next(kind for kind in _KINDS if kind in said)
    text = _text_of(said[kind], f"`{kind}` of {where}")
    name = prefix + _text_of(said.get("name", text), f"`name` of {where}")
    tags = tuple(_text_of(tag, f"`tags` of {where}") for tag in _list_of(said.get("tags", []), f"`tags` of {where}"))
    options = _mapping_of(said.get("options", {}), f"`options` of {where}")
    further: dict[str, Any] = {key: _said_of(key, said[key], where) for key in _SAID if key in said}
    if "weights" in further and further["weights"] != "random":
        further["weights"] = str(_place_below(_text_of(further["weights"], f"`weights` of {where}"), folder, where))
    if kind == "collection":
        if given := [key for key in (*_SAID, "options") if key in said]:
            raise DeclarationError(f"{where} gives `{given[0]}` to a whole collection: its entries have their own")
        place = _place_below(text, folder, where)
        inner = _collection_at(place, f"{prefix}{said['name']}/" if "name" in said else prefix, list_models, depth + 1)
        return [_entry_with_tags(entry, tags) for entry in inner.entries]
    if kind == "target":
        file, colon, rest = text.partition(".py:")
        if not colon:
            raise DeclarationError(f"{where} has the target `{text}`: name FILE.py:NAME, below its folder")
        place = _place_below(f"{file}.py", folder, where)
        return [CollectedEntry(name, "target", place, {**further, "target": f"{place}:{rest}"}, options, tags)]
    place = _place_below(text, folder, where)
    return [CollectedEntry(name, kind, place, further, options, tags)]  # type: ignore[arg-type]


def _said_of(key: str, value: Any, where: str) -> Any:
    """What a row says of its model, of the type that this has."""
    place = f"`{key}` of {where}"
    if key in ("inputs", "where"):
        return [_text_of(one, place) for one in _list_of(value, place)]
    return _mapping_of(value, place) if key in ("dims", "sizes") else value


def _row_with_kind(row: Any, where: str) -> Mapping[str, Any]:
    """A text is any collection or target; a mapping says what it is."""
    if isinstance(row, str):
        return {"target" if ".py:" in row else "collection": row}
    said = _mapping_of(row, where)
    if strange := [key for key in said if key not in _KEYS]:
        raise DeclarationError(f"{where} has `{strange[0]}`{did_you_mean(str(strange[0]), _KEYS)}")
    if len(kinds := [kind for kind in _KINDS if kind in said]) != 1:
        raise DeclarationError(f"{where} names {len(kinds)} of {listed(_KINDS)}: it is one of them")
    return said


def _entry_with_tags(entry: CollectedEntry, tags: tuple[str, ...]) -> CollectedEntry:
    together = tuple(dict.fromkeys((*entry.tags, *tags)))
    return CollectedEntry(entry.name, entry.kind, entry.place, entry.said, entry.options, together)


def _place_below(text: str, folder: Path, where: str) -> Path:
    """A file or folder that is there, inside of the collection's own folder with all links followed."""
    try:
        place = (folder / text).resolve()
        is_there = place.exists()
    except (OSError, ValueError) as error:
        raise DeclarationError(f"{where} names `{text}`, which is no path: {first_line(error)}") from None
    if not place.is_relative_to(folder.resolve()):
        raise DeclarationError(f"{where} names `{text}`, which leads out of the collection's folder")
    if not is_there:
        raise DeclarationError(f"{where} names `{text}`, which is not there")
    return place


# ---- plain values of somebody's file


def _text_of(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value:
        found = "empty" if value == "" else f"a {type(value).__name__}"
        raise DeclarationError(f"{where} is {found}: write a text")
    return value


def _list_of(value: Any, where: str) -> Sequence[Any]:
    if not isinstance(value, list):
        raise DeclarationError(f"{where} are a {type(value).__name__}: write a list")
    return value


def _mapping_of(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise DeclarationError(f"{where} is a {type(value).__name__}: write names with values")
    return value
