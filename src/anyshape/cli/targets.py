"""TARGET, loaded: from `model.py:Net(4)` or `package.module:build.encode` to what is exported, with its `--weights`.

The user's code runs once, with its own folder importable; what goes wrong in it becomes one sentence with its place.
Nothing in a file of weights is ever executed.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from anyshape.cli.endings import PACKAGES, Terminated
from anyshape.cli.target_texts import Step, TargetText
from anyshape.declaration.targets import resolve_target
from anyshape.errors import AnyshapeError, DeclarationError, first_line
from anyshape.results.progress import without_line
from anyshape.sizes.notation import did_you_mean
from anyshape.torchkit.patches import heard, patched
from anyshape.torchkit.reasons import said_with_place


@dataclass(frozen=True)
class LoadedTarget:
    """What TARGET names, and what its file says about calling it."""

    model: Any
    text: str
    namespace: Mapping[str, Any]
    is_random: bool = False
    """Whether the model has weights which were drawn, and none were loaded."""

    def mapping(self, name: str) -> dict[str, Any] | None:
        """`dims` or `sizes` of the file."""
        value = self.namespace.get(name)
        if value is not None and not isinstance(value, Mapping):
            raise DeclarationError(f"`{name}` of `{self.text}` is a {type(value).__name__}, not a dict")
        return None if value is None else dict(value)

    def where(self, given: Sequence[str], inputs: Sequence[Any]) -> list[str]:
        """The relations of the command line, and `where` of the file unless --input replaces what the file says."""
        own = self.namespace.get("where", ())
        if inputs or callable(own):  # torch.where and its like are no relations
            return list(given)
        if isinstance(own, str) or not isinstance(own, Sequence):
            raise DeclarationError(f"`where` of `{self.text}` is a {type(own).__name__}, not a list")
        return [*own, *given]

    def custom_ops(self, libraries: Sequence[str]) -> list[Any]:
        """The libraries of the command line, and `custom_ops` of the file; a module of that name is another thing."""
        own = self.namespace.get("custom_ops", ())
        return [*libraries, *([own] if isinstance(own, Mapping) else own if isinstance(own, (list, tuple)) else ())]


@contextlib.contextmanager
def loaded_target(
    target: TargetText, *, inputs: Sequence[str] = (), weights: str | None = None, seed: int = 0
) -> Iterator[LoadedTarget]:
    """What TARGET names; afterwards sys.path is as before.

    `inputs` are the names given with --input: a function with such parameters is the thing to export, not a factory.
    Random weights follow the seed, so that `check` meets the same model as `export` did.
    """
    place = None if weights is None else Path(weights).absolute()  # the file's code may change the current folder
    with contextlib.ExitStack() as stack:
        with _watched_draws(seed) as origin, without_line():
            module = _archive(target) if target.is_archive else stack.enter_context(module_at(target))
            with users_code(f"`{target.text}` cannot be loaded"):
                model = _value_of(module, target, inputs)
            if weights is not None and place is not None:
                load_weights(model, Path(weights) if Path(weights).absolute() == place else place)
            _leave_training(model)
        namespace = {} if target.is_archive else vars(module)
        yield LoadedTarget(model, target.text, namespace, origin.leaves_random(model))


# ---- the file


@contextlib.contextmanager
def module_at(target: TargetText) -> Iterator[ModuleType]:
    is_file, path = target.is_file, Path(target.place).resolve()
    name, folder = _name_in_package(path) if is_file else (target.place, Path.cwd())
    with contextlib.ExitStack() as afterwards:
        afterwards.callback(sys.path.__setitem__, slice(None), list(sys.path))
        sys.path.insert(0, str(folder))
        with users_code(f"`{target.text}` cannot be loaded"):
            module = _module_of_file(path) if is_file and "." not in name else _module_named(name)
        if is_file and "." not in name:
            afterwards.callback(sys.modules.pop, module.__name__, None)
        yield module  # a model may import more when it runs, so its folder stays importable until the end


def _archive(target: TargetText) -> nn.Module:
    """A scripted or traced module, as torch.jit.save wrote it: loading it runs TorchScript code that it holds."""
    with users_code(f"`{target.text}` cannot be loaded"):
        return torch.jit.load(target.place, map_location="cpu")  # type: ignore[no-any-return,no-untyped-call]


def _name_in_package(path: Path) -> tuple[str, Path]:
    """The dotted name of a file and the folder it is imported from: a file of a package may use relative imports."""
    folder, parts = path.parent, [path.stem]
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    return ".".join(parts), folder


def _module_of_file(path: Path) -> ModuleType:
    name = path.stem if path.stem not in sys.modules else f"{path.stem}_"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # so that what it imports may import it without running it again
    spec.loader.exec_module(module)
    return module


def _module_named(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise DeclarationError(f"there is no module `{error.name}`") from None
        raise


@contextlib.contextmanager
def users_code(what: str) -> Iterator[None]:
    """What goes wrong inside becomes one sentence with the user's own line."""
    try:
        yield
    except (AnyshapeError, Terminated):
        raise  # said in one sentence already, or sent by the system and not by the user's code
    except (Exception, SystemExit) as error:
        if isinstance(error, ModuleNotFoundError) and error.name in PACKAGES:
            raise
        raise DeclarationError(f"{what}: {said_with_place(error)}") from error


# ---- the name in it


def _value_of(module: ModuleType | nn.Module, target: TargetText, inputs: Sequence[str]) -> Any:
    value: Any = module
    for step, following in zip(target.steps, [*target.steps[1:], None], strict=False):
        found = _attribute(value, step.name, target.text)
        if step.arguments is not None:
            value = _product_of_call(found, step)
        else:
            value = instance_or_product(found, step.name, following.name if following else None, inputs)
    return value


def _product_of_call(value: Any, step: Step) -> Any:
    """A class or a function with the arguments that are written behind its name."""
    if not isinstance(value, type) and not _is_function(value):
        raise DeclarationError(f"`{step.name}` is a {type(value).__name__}, which is not made: leave its brackets out")
    args, kwargs = step.arguments or ((), {})
    return _product(value(*args, **kwargs), step.name)


def _attribute(owner: Any, name: str, text: str) -> Any:
    try:
        return getattr(owner, name)
    except AttributeError:
        known = [n for n in dir(owner) if not n.startswith("_")]
        where = f"`{text.rpartition(':')[0]}`" if isinstance(owner, ModuleType) else f"`{type(owner).__name__}`"
        raise DeclarationError(f"{where} has no `{name}`{did_you_mean(name, known)}") from None


def instance_or_product(value: Any, name: str, following: str | None, inputs: Sequence[str]) -> Any:
    """A class becomes its instance, a factory what it returns; everything else is what it is."""
    if isinstance(value, type):
        static = inspect.getattr_static(value, following or "", None)
        return value if isinstance(static, classmethod | staticmethod) else _new_instance(value, name)
    is_method = inspect.ismethod(value) and isinstance(value.__self__, nn.Module)
    if is_method or not _is_function(value) or not _is_factory(value, inputs):
        return value
    return _product(value(), name)


def _is_function(value: Any) -> bool:
    return inspect.isroutine(value) or isinstance(value, functools.partial)


def _product(made: Any, name: str) -> Any:
    if not callable(made) and not hasattr(made, "graph_module"):  # an ExportedProgram is not callable
        raise DeclarationError(f"`{name}()` gives a {type(made).__name__}, not a module")
    return made


def _new_instance(kind: type, name: str) -> Any:
    if needed := required_parameters(kind):
        listed = ", ".join(f"`{parameter}`" for parameter in needed)
        written = ", ".join(f"{parameter}=..." for parameter in needed)
        raise DeclarationError(
            f"`{name}` needs {listed}: write `{name}({written})` with literals, or name an instance, or a function "
            "that returns one"
        )
    return kind()


def _is_factory(function: Callable[..., Any], inputs: Sequence[str]) -> bool:
    """A function that can be called without arguments, unless --input gives it some."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
    return not required_parameters(function) and not any(name.split(".")[0] in parameters for name in inputs)


def required_parameters(function: Callable[..., Any]) -> list[str]:
    parameters = inspect.signature(function).parameters.values()
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in parameters if p.default is p.empty and p.kind not in variadic]


def _leave_training(model: Any) -> None:
    """What was made a moment ago is in training mode because nobody has said otherwise, which is worth no note."""
    module = model.__self__ if inspect.ismethod(model) else model
    if isinstance(module, nn.Module):
        module.eval()


# ---- weights


@dataclass
class _Origin:
    """Where weights came from while a target was made."""

    is_drawn: bool = False
    is_read: bool = False
    """Whether a file of weights was read, wherever they went."""
    filled: list[nn.Module] = field(default_factory=list)
    """The modules that were given a state dict."""

    def leaves_random(self, model: Any) -> bool:
        """Whether the weights are as they were drawn; a file may load those of another module than the one named."""
        if not self.is_drawn:
            return False
        module = resolve_target(model).module
        # a library loads by itself, as `from_pretrained` does
        is_pretrained = any(getattr(part, "name_or_path", "") for part in module.modules())
        drawn = next(filter(_varies, module.parameters()), None)
        if is_pretrained or drawn is None:
            return False
        if not self.filled:
            return not self.is_read
        shared = any({*module.modules()}.intersection(one.modules()) for one in self.filled)
        return not shared and not any(_is_copied(drawn, one) for one in self.filled)


def _is_copied(weight: torch.Tensor, module: nn.Module) -> bool:
    return any(weight.shape == other.shape and torch.equal(weight, other) for other in module.parameters())


def _varies(weight: torch.Tensor) -> bool:
    """Ones and zeros were not drawn."""
    is_here = weight.numel() > 1 and weight.device.type != "meta"
    return is_here and not bool((weight == weight.flatten()[0]).all())


@contextlib.contextmanager
def _watched_draws(seed: int) -> Iterator[_Origin]:
    """Inside, random numbers follow the seed; what is yielded knows afterwards what was drawn and loaded."""
    torch.manual_seed(seed)
    before, origin, known = torch.get_rng_state(), _Origin(), set(sys.modules)

    def note_filled(module: nn.Module, *_: Any, **__: Any) -> None:
        origin.filled.append(module)

    def note_read(*_: Any, **__: Any) -> None:
        origin.is_read = True

    with (
        patched(nn.Module, "load_state_dict", heard(nn.Module.load_state_dict, note_filled)),
        patched(torch, "load", heard(torch.load, note_read)),
    ):
        yield origin
    origin.is_drawn = not torch.equal(before, torch.get_rng_state())
    if "safetensors" in {*sys.modules} - known and "transformers" not in sys.modules:  # which loads it for any model
        origin.is_read = True


def load_weights(model: Any, path: Path) -> None:
    """Load a file of weights into the module, or into the one that the method belongs to."""
    module = model.__self__ if inspect.ismethod(model) else model
    if not isinstance(module, nn.Module):
        raise DeclarationError(f"--weights fills a module, but the target is a {type(model).__name__}")
    state = _state_dict_in(path)
    try:
        module.load_state_dict(state)
    except Exception as error:  # torch raises a RuntimeError, a module's own hook anything
        raise DeclarationError(
            f"`{path}` does not fit `{type(module).__name__}`: {_misfit(module, state, error)}"
        ) from error


def _state_dict_in(path: Path) -> Mapping[str, Any]:
    try:
        is_safe = path.suffix == ".safetensors"
        found = _safetensors_file(path) if is_safe else torch.load(path, map_location="cpu", weights_only=True)
    except DeclarationError:
        raise
    except Exception as error:
        way = "write them with `torch.save(model.state_dict(), FILE)`"
        told = f"`{path}` holds no weights that can be read without running code from it: {way}"
        raise DeclarationError(told) from error
    if isinstance(found, Mapping) and isinstance(found.get("state_dict"), Mapping):
        found = found["state_dict"]  # a checkpoint around the weights
    if not isinstance(found, Mapping) or not all(isinstance(key, str) for key in found):
        raise DeclarationError(f"`{path}` holds a {type(found).__name__}, not a state dict")
    return found


def _safetensors_file(path: Path) -> Any:
    try:
        from safetensors.torch import load_file
    except ImportError:
        raise DeclarationError(f"`{path}` needs the package safetensors: pip install safetensors") from None
    return load_file(path)


def _misfit(module: nn.Module, state: Mapping[str, Any], error: Exception) -> str:
    """What the two disagree on, from their own keys and shapes."""
    own = module.state_dict()
    parts = []
    if missing := [key for key in own if key not in state]:
        parts.append(f"{_first_of(missing)} missing")
    if unknown := [key for key in state if key not in own]:
        parts.append(f"{_first_of(unknown)} not in the model")
    for key in own:
        if key in state and getattr(state[key], "shape", None) != getattr(own[key], "shape", None):
            parts.append(f"`{key}` is {_shape_text(state[key])} in the file and {_shape_text(own[key])} in the model")
            break
    return ", ".join(parts) or first_line(error)


def _first_of(keys: list[str]) -> str:
    return f"`{keys[0]}`" + (f" and {len(keys) - 1} more are" if len(keys) > 1 else " is")


def _shape_text(value: Any) -> str:
    return str(tuple(getattr(value, "shape", ())))
