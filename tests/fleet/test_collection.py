from __future__ import annotations

import os
from pathlib import Path

import pytest

from anyshape.errors import DeclarationError
from anyshape.fleet.collection import read_collection
from anyshape.fleet.option_sets import OptionSet

MODELS = {
    "models": [{"name": "a", "tags": ["x"], "options": {}}, {"name": "b", "tags": [], "options": {"narrow": True}}],
    "columns": {"torch": {}},
}


def read(place: Path):
    return read_collection(place, lambda _: MODELS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("one.onnx", "deep/two.onnx", "deep/notes.txt", "bert/config.json", "bert/inner.onnx", ".git/x.onnx"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    (tmp_path / "nets.py").write_text("")
    return tmp_path


def test_a_folder_has_checkpoints_and_files_at_any_depth(folder: Path) -> None:
    found = [(one.name, one.kind) for one in read(folder).entries]
    assert found == [("bert", "checkpoint"), ("one.onnx", "onnx"), ("deep/two.onnx", "onnx")]
    assert [(one.name, one.kind) for one in read(folder / "bert").entries] == [("bert", "checkpoint")]
    assert [(one.name, one.kind) for one in read(folder / "one.onnx").entries] == [("one", "onnx")]


def test_links_out_of_a_folder_are_not_followed(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.onnx").write_text("")
    (folder / "file.onnx").symlink_to(outside / "secret.onnx")
    (folder / "linked").symlink_to(outside)
    (folder / "loop").symlink_to(folder)
    assert [one.name for one in read(folder).entries] == ["bert", "one.onnx", "deep/two.onnx"]


def test_names_that_are_no_text_are_told_all_the_same(folder: Path) -> None:
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff.onnx")).write_text("")
    assert "\\udcff.onnx" in [one.name for one in read(folder).entries]


def test_a_python_file_is_what_its_process_tells(folder: Path) -> None:
    found = read(folder / "nets.py")
    assert [(one.name, one.kind, one.said, one.options, one.tags) for one in found.entries] == [
        ("a", "model", {"model": "a"}, {}, ("x",)),
        ("b", "model", {"model": "b"}, {"narrow": True}, ()),
    ]
    assert found.columns == (OptionSet("torch", "torch"),)


YAML = """
columns: {half: {dtype: float16}}
entries:
  - target: nets.py:Net(4, "a:b")
    name: net
    tags: [small]
    inputs: ["x: float32[batch, 4]"]
    sizes: {batch: 1..8}
    weights: random
    options: {opset_version: 18}
  - nets.py:Other
  - checkpoint: bert
  - onnx: deep/two.onnx
    dims: {x: batch}
  - collection: nets.py
    name: zoo
    tags: [nightly]
  - deep/
"""


def test_a_yaml_list_holds_all_of_these(folder: Path) -> None:
    (folder / "all.yaml").write_text(YAML)
    found = read(folder / "all.yaml")
    assert [(one.name, one.kind, one.tags) for one in found.entries] == [
        ("net", "target", ("small",)), ("nets.py:Other", "target", ()), ("bert", "checkpoint", ()),
        ("deep/two.onnx", "onnx", ()), ("zoo/a", "model", ("x", "nightly")), ("zoo/b", "model", ("nightly",)),
        ("two.onnx", "onnx", ()),
    ]  # fmt: skip
    assert found.entries[0].said == {
        "inputs": ["x: float32[batch, 4]"], "sizes": {"batch": "1..8"}, "weights": "random",
        "target": f'{folder}/nets.py:Net(4, "a:b")',
    }  # fmt: skip
    assert found.entries[0].options == {"opset_version": 18}
    assert found.columns == (OptionSet("half", "anyshape", {"dtype": "float16"}),)
    (folder / "list.yml").write_text("- bert\n")
    assert [one.name for one in read(folder / "list.yml").entries] == ["bert"]


BOMB = "- &a0 [x, x, x, x, x, x, x, x]\n" + "\n".join(f"- &a{n + 1} [{', '.join([f'*a{n}'] * 8)}]" for n in range(8))
"""Eight times as many values with each line."""


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("- ../x.py:Net", "entry 1 of `c.yaml` names `../x.py`, which leads out of the collection's folder"),
        ("- onnx: /etc/passwd", "entry 1 of `c.yaml` names `/etc/passwd`, which leads out of the collection's folder"),
        ("- {onnx: one.onnx, weights: ../w}",
         "entry 1 of `c.yaml` names `../w`, which leads out of the collection's folder"),
        ("- target: os:system", "entry 1 of `c.yaml` has the target `os:system`: name FILE.py:NAME, below its folder"),
        ("- onnx: none.onnx", "entry 1 of `c.yaml` names `none.onnx`, which is not there"),
        ('- onnx: "a\\0b"', "entry 1 of `c.yaml` names `a\0b`, which is no path: embedded null byte"),
        ("- {onnx: one.onnx, checkpoint: bert}",
         "entry 1 of `c.yaml` names 2 of `target`, `checkpoint`, `onnx`, `collection`: it is one of them"),
        ("- {onx: one.onnx}", "entry 1 of `c.yaml` has `onx`; did you mean `onnx`?"),
        ("- 3", "entry 1 of `c.yaml` is a int: write names with values"),
        ("- {onnx: one.onnx, tags: x}", "`tags` of entry 1 of `c.yaml` are a str: write a list"),
        ("- {onnx: one.onnx, name: ''}", "`name` of entry 1 of `c.yaml` is empty: write a text"),
        ("- {onnx: one.onnx, inputs: x}", "`inputs` of entry 1 of `c.yaml` are a str: write a list"),
        ("- {onnx: one.onnx, where: [1]}", "`where` of entry 1 of `c.yaml` is a int: write a text"),
        ("- {onnx: one.onnx, sizes: [1]}", "`sizes` of entry 1 of `c.yaml` is a list: write names with values"),
        ("- {onnx: one.onnx, name: 3}", "`name` of entry 1 of `c.yaml` is a int: write a text"),
        ("- {collection: deep, sizes: {a: 1}}",
         "entry 1 of `c.yaml` gives `sizes` to a whole collection: its entries have their own"),
        ("models: []", "`c.yaml` has `models`: a collection has `entries` and `columns`"),
        ("columns: {}", "`c.yaml` is no list of entries, and has none called `entries`"),
        ("text", "`c.yaml` is no list of entries, and has none called `entries`"),
        ("- {onnx: one.onnx, dims: &d {a: *d}}", "`c.yaml` has more than 2,000,000 values, aliases written out"),
        (BOMB,
         "`c.yaml` has more than 2,000,000 values, aliases written out"),
        ("- c.yaml", "`c.yaml` lists collections that list each other"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_yaml_file_is_one_sentence(folder: Path, text: str, sentence: str) -> None:
    (folder / "c.yaml").write_text(text)
    with pytest.raises(DeclarationError) as told:
        read(folder / "c.yaml")
    assert str(told.value) == sentence


def test_yaml_makes_no_objects_and_a_broken_one_is_one_sentence(folder: Path) -> None:
    for text in ("!!python/object/apply:os.system ['touch owned']", "- [", "- " * 100_000):
        (folder / "c.yaml").write_text(text)
        with pytest.raises(DeclarationError, match="is no YAML: "):
            read(folder / "c.yaml")
    assert not Path("owned").exists()


def test_nothing_to_sweep_is_one_sentence(tmp_path: Path) -> None:
    for place, sentence in (
        (tmp_path, f"`{tmp_path}` has nothing to sweep: no model, no checkpoint and no .onnx file"),
        (tmp_path / "gone", f"there is no collection `{tmp_path / 'gone'}`"),
    ):
        with pytest.raises(DeclarationError) as told:
            read(place)
        assert str(told.value) == sentence
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(DeclarationError, match=r"is no collection: name a \.py, \.yaml or \.onnx file, or a folder"):
        read(tmp_path / "notes.txt")
