"""Convert a PyTorch model with any number of dynamic inputs to an ONNX file that serves every size you declare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anyshape import checkpoints
    from anyshape.conversion.translation import translation
    from anyshape.errors import AnyshapeError, DeclarationError
    from anyshape.results.finding import Finding
    from anyshape.results.result import ExportError, Result
    from anyshape.verbs.check import check
    from anyshape.verbs.diagnose import diagnose
    from anyshape.verbs.export import export
    from anyshape.verbs.inspect import inspect
    from anyshape.verbs.load import load
    from anyshape.verbs.make_dynamic import make_dynamic
    from anyshape.verbs.report import report
    from anyshape.verbs.watch import watch


__version__ = "0.1.0"
__all__ = [
    "AnyshapeError", "DeclarationError", "ExportError", "Finding", "Result", "check", "checkpoints", "diagnose",
    "export", "inspect", "load", "make_dynamic", "report", "translation", "watch",
]  # fmt: skip

_HOMES = {
    "AnyshapeError": "anyshape.errors",
    "DeclarationError": "anyshape.errors",
    "ExportError": "anyshape.results.result",
    "Finding": "anyshape.results.finding",
    "Result": "anyshape.results.result",
    "check": "anyshape.verbs.check",
    "checkpoints": "anyshape.checkpoints",
    "diagnose": "anyshape.verbs.diagnose",
    "export": "anyshape.verbs.export",
    "inspect": "anyshape.verbs.inspect",
    "load": "anyshape.verbs.load",
    "make_dynamic": "anyshape.verbs.make_dynamic",
    "report": "anyshape.verbs.report",
    "translation": "anyshape.conversion.translation",
    "watch": "anyshape.verbs.watch",
}


def __getattr__(name: str) -> Any:
    """Import on first use: `import anyshape` and `anyshape --help` do without torch."""
    if name not in _HOMES:
        raise AttributeError(f"module 'anyshape' has no attribute {name!r}")
    import importlib

    from anyshape.garbage import uncollected

    try:
        with uncollected():
            home = importlib.import_module(_HOMES[name])
        return home if home.__name__ == f"anyshape.{name}" else getattr(home, name)
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "onnxscript", "onnxruntime"):
            raise
        from anyshape.errors import AnyshapeError

        raise AnyshapeError(f"anyshape.{name} needs {error.name}: pip install 'anyshape[cpu]'") from None


def __dir__() -> list[str]:
    return sorted([*__all__, *(name for name in globals() if name.startswith("__"))])
