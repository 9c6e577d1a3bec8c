"""`--weights`: a state dict into the target's module; nothing in the file is ever executed."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from anyshape.errors import DeclarationError, first_line


def load_weights(model: Any, path: Path) -> None:
    """Load a file of weights into the module, or into the one that the method belongs to."""
    module = model.__self__ if inspect.ismethod(model) else model
    if not isinstance(module, nn.Module):
        raise DeclarationError(f"--weights fills a module, but the target is a {type(model).__name__}")
    state = _read(path)
    try:
        module.load_state_dict(state)
    except Exception as error:  # torch raises a RuntimeError, a module's own hook anything
        raise DeclarationError(
            f"`{path}` does not fit `{type(module).__name__}`: {_misfit(module, state, error)}"
        ) from error


def _read(path: Path) -> Mapping[str, Any]:
    if not path.is_file():
        raise DeclarationError(f"there is no file `{path}`")
    try:
        found = _read_safetensors(path) if path.suffix == ".safetensors" else _read_torch(path)
    except DeclarationError:
        raise
    except Exception as error:
        raise DeclarationError(f"`{path}` holds no weights that can be read without running code from it") from error
    if isinstance(found, Mapping) and isinstance(found.get("state_dict"), Mapping):
        found = found["state_dict"]  # a checkpoint around the weights
    if not isinstance(found, Mapping) or not all(isinstance(key, str) for key in found):
        raise DeclarationError(f"`{path}` holds a {type(found).__name__}, not a state dict")
    return found


def _read_torch(path: Path) -> Any:
    return torch.load(path, map_location="cpu", weights_only=True)


def _read_safetensors(path: Path) -> Any:
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
        parts.append(f"{_first(missing)} missing")
    if unknown := [key for key in state if key not in own]:
        parts.append(f"{_first(unknown)} not in the model")
    for key in own:
        if key in state and getattr(state[key], "shape", None) != getattr(own[key], "shape", None):
            parts.append(f"`{key}` is {_shape(state[key])} in the file and {_shape(own[key])} in the model")
            break
    return ", ".join(parts) or first_line(error)


def _first(keys: list[str]) -> str:
    return f"`{keys[0]}`" + (f" and {len(keys) - 1} more are" if len(keys) > 1 else " is")


def _shape(value: Any) -> str:
    return str(tuple(getattr(value, "shape", ())))
