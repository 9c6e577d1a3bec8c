"""Private names of torch and onnxscript stand in one registry, and an export does without each of them."""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnxscript
import pytest
import torch
from torch import nn

import anyshape
from anyshape.torchkit import private_names
from anyshape.torchkit.private_names import NAMES
from tests.torchkit import small_models
from tests.torchkit.hiding import hide

ROOT = Path(anyshape.__file__).parent
LIBRARIES = ("torch", "onnxscript")
ATTRIBUTES = {entry.attribute for entry in NAMES.values()}


# ---- nobody else writes such a name down


def _private(dotted: str) -> bool:
    parts = dotted.split(".")
    return parts[0] in LIBRARIES and any(part.startswith("_") and not part.startswith("__") for part in parts)


def _without_types(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes but those of imports for types alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            for other in node.orelse:
                yield from (other, *_without_types(other))
            continue
        yield node
        yield from _without_types(node)


def _aliases(nodes: list[ast.AST]) -> dict[str, str]:
    """What names of a file stand for: `fx` -> `torch.fx`."""
    found = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                found[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return {name: place for name, place in found.items() if place.split(".")[0] in LIBRARIES}


def _dotted(node: ast.AST, aliases: dict[str, str]) -> str | None:
    if isinstance(node, ast.Attribute):
        base = _dotted(node.value, aliases)
        return None if base is None else f"{base}.{node.attr}"
    return aliases.get(node.id) if isinstance(node, ast.Name) else None


@functools.cache
def _own_names() -> set[str]:
    """Every private name that the package itself defines, and those of named tuples."""
    found = {"_make", "_fields", "_asdict", "_replace", "_getframe"}
    for path in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                found.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and _is_self(node.value):
                found.add(node.attr)
    return found - ATTRIBUTES


def _is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


_BY_NAME = {"getattr", "hasattr", "setattr", "delattr", "patched"}


def _unregistered(path: Path) -> Iterator[str]:
    """Private names of the libraries that a file writes down by itself."""
    nodes = list(_without_types(ast.parse(path.read_text(encoding="utf-8"))))
    aliases = _aliases(nodes)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if _private(alias.name))
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (name for a in node.names if _private(name := f"{node.module}.{a.name}"))
        elif isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            dotted = _dotted(node, aliases)
            if dotted is not None:
                yield dotted
            elif node.attr not in ATTRIBUTES | _own_names():
                yield f"?.{node.attr}"
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in _BY_NAME and len(node.args) > 1:
            name = node.args[1]
            text = str(name.value) if isinstance(name, ast.Constant) else ""
            if text.startswith("_") and not text.startswith("__") and text not in ATTRIBUTES | _own_names():
                yield f"?.{text}"


_OF_OTHERS = {"?._print", "?._filename_map", "?._hf_hook", "?._exit", "?._ncallbacks"}
"""Of sympy's printers; of `os`; of IPython's compiler, accelerate's modules and `atexit`: absence is an answer."""
FILES = [path for path in sorted(ROOT.rglob("*.py")) if path.name != "private_names.py"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_file_writes_a_private_name_down_by_itself(path: Path) -> None:
    assert set(_unregistered(path)) - _OF_OTHERS == set()


def test_the_walk_finds_what_it_looks_for(tmp_path: Path) -> None:
    path = tmp_path / "file.py"
    path.write_text(
        "import torch\nfrom torch import fx\nfrom torch._dynamo import config\n"
        "torch._C._first()\nfx._second\nsomething._third_of_torch\ngetattr(fx, '_fourth_of_torch')\n"
    )
    assert set(_unregistered(path)) == {
        "torch._dynamo.config", "torch._C._first", "torch._C", "torch.fx._second", "?._third_of_torch",
        "?._fourth_of_torch",
    }  # fmt: skip


# ---- the registry is true


def _holders() -> dict[str, Any]:
    """Objects that have what their class does not."""
    program = torch.export.export(nn.ReLU(), (torch.ones(2),))
    rule = onnxscript.rewriter.pattern.RewriteRule(lambda op, x: op.Relu(x), lambda op, x: op.Identity(x))
    return {
        "torch.nn.RNNBase": nn.LSTM(1, 1),
        "torch._subclasses.fake_tensor.FakeTensor": next(iter(program.graph.nodes)).meta["val"],
        "torch._ops.OpOverload": torch.ops.aten.relu.default,
        "torch._library.custom_ops.CustomOpDef": small_models.twice,
        "torch.export.ExportedProgram": program,
        "torch.jit.ScriptModule": torch.jit.script(nn.ReLU()),
        "onnxscript.rewriter._rewrite_rule.RewriteRule": rule,
    }


_SET_BY_TORCH = {
    "onnxscript.OnnxFunction._pt_onnx_signature",
    "torch.fx.experimental.sym_node.SymNode._hint",
    "torch.fx.experimental.sym_node.SymNode._expr",
    "torch.fx.experimental.proxy_tensor._ModuleStackTracer.module_stack",
    "torch.fx.experimental.proxy_tensor._ModuleStackTracer.enable_attr_proxy",
}
"""On objects that live during a trace or a translation alone."""


def test_every_name_is_where_the_registry_says() -> None:
    holders = _holders()
    for name, entry in NAMES.items():
        owner = name.rpartition(".")[0]
        there = private_names._is_there(entry) or hasattr(holders.get(owner), entry.attribute)
        assert there or name in _SET_BY_TORCH, name


def test_every_name_is_used_and_says_what_for() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in FILES)
    for name, entry in NAMES.items():
        assert entry.purpose, name
        assert entry.without, name
        assert entry.attribute.removeprefix("_sym_").lstrip("_") in text, name


# ---- an export without one of them

_USERS: tuple[tuple[str, str], ...] = (
    ("torch.nn.Module._call_impl", "branch"),
    ("torch._subclasses.fake_tensor.FakeTensor.constant", "number in a buffer"),
    ("torch._subclasses.fake_tensor", "packed sequence"),
    ("torch._subclasses.functional_tensor", "packed sequence"),
    ("torch._subclasses", "convolution and norm"),
    ("torch._prims_common", "convolution and norm"),
    ("torch.ops.aten._native", "convolution and norm"),
    ("torch.ops.aten._embedding", "bags"),
    ("torch.utils._python_dispatch._disable", "bags"),
    ("torch.fx.experimental.symbolic_shapes.ShapeEnv._log_guard", "pinned"),
    ("torch.fx.experimental.symbolic_shapes.ShapeEnv._set_replacement", "pinned"),
    ("torch.fx.experimental.symbolic_shapes.ShapeEnv.create_symbol", "pinned"),
    ("torch.fx.traceback", "pinned"),
    ("torch.fx.experimental.symbolic_shapes", "branch"),
    ("torch.fx.experimental.sym_node", "branch"),
    ("torch.fx.experimental.proxy_tensor.get_proxy_mode", "loop"),
    ("torch.fx.experimental.proxy_tensor._ModuleStackTracer.module_stack", "branch"),
    ("torch.fx.experimental.proxy_tensor", "blocks alike"),
    ("torch._dynamo", "blocks alike"),
    ("torch._guards", "loop"),
    ("torch.UntypedStorage", "loop"),
    ("torch._check", "loop"),
    ("torch._VF", "lstm"),
    ("torch._C._VariableFunctions", "lstm"),
    ("torch.nn.RNNBase", "packed sequence"),
    ("torch._sym_", "root of a size"),
    ("torch._C._set_grad_enabled", "gradients"),
    ("torch._C._len_torch_function_stack", "number in a buffer"),
    ("torch.overrides", "number in a buffer"),
    ("torch.export._trace", "number in a buffer"),
    ("torch.nn.modules.transformer", "causal transformer"),
    ("torch._C._dispatch_has_kernel", "writes"),
    ("torch.export.ExportedProgram", "writes"),
    ("torch.onnx._internal.exporter._fx_passes._decomp", "no translation"),
    ("torch._dispatch.python", "no translation"),
    ("torch.onnx._internal.fx.passes", "other types"),
    ("torch.onnx._internal.exporter._core", "root of a size"),
    ("torch.onnx._internal.exporter._registration", "root of a size"),
    ("onnxscript.OnnxFunction", "operator with a translation"),
    ("torch._library.custom_ops", "operator in Python"),
    ("torch._library", "operator of a library"),
    ("torch.library", "operator of a library"),
    ("torch._C", "operator of a library"),
    ("torch._ops.OpOverload._", "operator of a library"),
    ("torch._decomp", "operator of a library"),
)


def _user_of(name: str) -> str:
    """A kind of model that needs the name."""
    return next((model for start, model in _USERS if name.startswith(start)), "mlp")


def _faults_of_ours(attempts: Any) -> list[BaseException]:
    """Errors that arose in our own code, and are no message."""
    found = []
    for attempt in attempts:
        step = attempt.error.__traceback__ if attempt.error is not None else None
        while step is not None and step.tb_next is not None:
            step = step.tb_next
        is_ours = step is not None and step.tb_frame.f_code.co_filename.startswith(str(ROOT))
        if is_ours and isinstance(attempt.error, (TypeError, AttributeError, NameError, AssertionError, KeyError)):
            found.append(attempt.error)
    return found


def _check_refused_or_right(model: str, path: Path) -> None:
    try:
        result, said = small_models.export(model, path), ""
    except anyshape.ExportError as error:
        result, said = error.result, str(error)
    assert _faults_of_ours(result.attempts) == []
    assert "Traceback" not in said
    assert path.exists() != bool(said)
    assert said or small_models.is_right_elsewhere(model, path)


ESSENTIAL = [name for name, entry in NAMES.items() if entry.is_essential]
OTHERS = [name for name in NAMES if name not in ESSENTIAL]
GROUPS = [model for model, count in Counter(map(_user_of, OTHERS)).items() if count > 1]


@pytest.mark.parametrize("name", ESSENTIAL)
def test_without_an_essential_name_one_sentence_says_so(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    hide(monkeypatch, name)
    with pytest.raises(anyshape.AnyshapeError) as caught:
        small_models.export("mlp", Path("never.onnx"))
    short = ".".join(name.split(".")[-2:])
    assert str(caught.value) == f"this torch, {torch.__version__}, has no {short}: anyshape does not know it yet"


@pytest.mark.parametrize("model", GROUPS)
def test_without_all_that_a_model_needs_it_is_right_or_refused(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide(monkeypatch, *(name for name in OTHERS if _user_of(name) == model))
    _check_refused_or_right(model, tmp_path / "model.onnx")


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_without_one_name_a_model_that_needs_it_is_right_or_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hide(monkeypatch, name)
    _check_refused_or_right(_user_of(name), tmp_path / "model.onnx")


def test_what_is_missing_is_named_with_its_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["torch.nn.Module._call_impl", "torch._check"]
    assert private_names.missing(names) == []
    hide(monkeypatch, *names)
    assert private_names.missing(names) == ["Module._call_impl", "torch._check"]
    assert private_names.place_of(names[0]) is None
    assert private_names.lookup(names[1]) is None
    assert private_names.attribute(nn.ReLU(), names[0], "another") == "another"


def test_one_note_says_what_is_lost_and_only_where_it_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert small_models.export("branch", tmp_path / "before.onnx").notes == ()
    hide(monkeypatch, "torch.nn.Module._call_impl", "torch._check", "onnxscript.OnnxFunction._pt_onnx_signature")
    with pytest.raises(anyshape.ExportError) as caught:
        small_models.export("branch", tmp_path / "without.onnx")
    notes = [note for note in caught.value.result.notes if "has no" in note]
    assert notes == [
        f"torch {torch.__version__} has no `torch._check`: branches, loops and some recurrent layers are refused; "
        f"torch {torch.__version__} has no `Module._call_impl`: branches and loops are not kept as such"
    ]
    assert notes[0] in str(caught.value)
    monkeypatch.undo()
    assert small_models.export("branch", tmp_path / "after.onnx").notes == ()


def test_a_function_with_its_modules_name_is_found() -> None:
    assert callable(private_names.lookup("torch._higher_order_ops.map.map"))
