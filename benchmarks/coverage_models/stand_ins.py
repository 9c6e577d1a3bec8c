"""Stand-ins for torchvision and Pillow where they are missing: timm imports names from them that no entry calls."""

from __future__ import annotations

import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any


class _StandIn(ModuleType):
    """A module in which every name is a class that can be subclassed but does nothing."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = _Anything(name, (), {"__module__": self.__name__})
        setattr(self, name, made)
        return made


class _Anything(type):
    """A class whose attributes are classes of the same kind: `Image.Resampling.BICUBIC`."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Anything(name, (), {"__module__": cls.__module__})


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, packages: set[str]) -> None:
        self.packages = packages

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname.split(".", maxsplit=1)[0] not in self.packages:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        module.__version__ = "0.0.0"  # type: ignore[attr-defined]


@contextlib.contextmanager
def stand_ins(*packages: str) -> Iterator[None]:
    """What is missing is there for a while; afterwards nobody can take it for the real thing."""
    missing = {package for package in packages if importlib.util.find_spec(package) is None}
    finder = _Finder(missing)
    sys.meta_path.append(finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name.split(".")[0] in missing]:
            del sys.modules[name]
