"""Convert a PyTorch model with any number of dynamic inputs to an ONNX file that serves every size you declare."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anyshape.conversion.user_translations import translation
    from anyshape.diagnosing import diagnose
    from anyshape.diagnosis.findings import Finding
    from anyshape.errors import AnyshapeError, DeclarationError, ExportError
    from anyshape.existing import check
    from anyshape.loading import load
    from anyshape.making_dynamic import make_dynamic
    from anyshape.onnxfile.inspection import inspect
    from anyshape.pipeline import export
    from anyshape.proposing.several_calls.watching import watch
    from anyshape.result import Result

__version__ = "0.1.0"
__all__ = [
    "AnyshapeError", "DeclarationError", "ExportError", "Finding", "Result", "check", "diagnose", "export", "inspect",
    "load", "make_dynamic", "translation", "watch",
]  # fmt: skip

_HOMES = {
    "AnyshapeError": "anyshape.errors",
    "DeclarationError": "anyshape.errors",
    "ExportError": "anyshape.errors",
    "Finding": "anyshape.diagnosis.findings",
    "Result": "anyshape.result",
    "check": "anyshape.existing",
    "diagnose": "anyshape.diagnosing",
    "export": "anyshape.pipeline",
    "inspect": "anyshape.onnxfile.inspection",
    "load": "anyshape.loading",
    "make_dynamic": "anyshape.making_dynamic",
    "translation": "anyshape.conversion.user_translations",
    "watch": "anyshape.proposing.several_calls.watching",
}


def __getattr__(name: str) -> Any:
    """Import on first use: `import anyshape` and `anyshape --help` do without torch."""
    if name not in _HOMES:
        raise AttributeError(f"module 'anyshape' has no attribute {name!r}")
    import importlib

    from anyshape.uncollected import uncollected

    try:
        with uncollected():
            return getattr(importlib.import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "onnxscript", "onnxruntime"):
            raise
        from anyshape.errors import AnyshapeError

        raise AnyshapeError(f"anyshape.{name} needs {error.name}: pip install 'anyshape[cpu]'") from None


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
