"""`diagnose`: what stops a declared dim, at the exact expression, with an edit that was tried. Nothing is written."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from anyshape.declaration.options import TORCH_ARGUMENTS
from anyshape.errors import DeclarationError
from anyshape.model.survey import Progress
from anyshape.results.finding import Findings
from anyshape.results.result import ExportError
from anyshape.sizes.notation import did_you_mean
from anyshape.verbs.export import export


def diagnose(
    model: Any,
    args: Any = (),
    *,
    kwargs: Mapping[str, Any] | None = None,
    examples: Any = None,
    dims: Mapping[str, Any] | None = None,
    sizes: Mapping[str, Any] | None = None,
    where: Sequence[str] = (),
    make_inputs: Callable[..., Any] | None = None,
    seed: int = 0,
    progress: bool | Progress | None = None,
    **others: Any,
) -> Findings:
    """Every finding about a model and what is declared of it; empty where all is well.

    - `model`, `args`, `kwargs`, `examples`, `dims`, `sizes`, `where`, `make_inputs`, `seed`, `progress` and `others`:
      as in `export`

    The model is converted and run at a few sizes, and left as it is.

    >>> def halves(x):
    ...     return x.view(2, 3)
    >>> [finding.headline for finding in anyshape.diagnose(halves, torch.randn(2, 3), dims={"x": "batch 3"})]
    ['error[pinned-dim]: `batch` cannot vary']
    """
    _refuse_unknown(others)
    try:
        result = export(
            model, args, kwargs=kwargs, examples=examples, dims=dims, sizes=sizes, where=where,
            make_inputs=make_inputs, seed=seed, progress=progress, **{"quick": True, **others},
        )  # fmt: skip
    except ExportError as error:
        result = error.result
    findings = Findings(result.findings)
    findings.result = result
    return findings


_TO_WRITE = ("f", "write")


def _refuse_unknown(names: Iterable[str]) -> None:
    """One sentence for what is no argument here, though a file may be one of `export`'s."""
    known = [*inspect.signature(diagnose).parameters, *inspect.signature(export).parameters, *TORCH_ARGUMENTS]
    for name in names:
        if name in _TO_WRITE:
            raise DeclarationError(f"diagnose() has no argument `{name}`: it writes nothing")
        if name not in known:
            raise DeclarationError(f"diagnose() has no argument `{name}`{did_you_mean(name, known)}")
