"""`check`: a file, by whomever, against its model at sizes of our own choosing; or, without a model, against itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from anyshape.bench.plan import choose_tier
from anyshape.declaration.options import check_options
from anyshape.errors import DeclarationError, ExportError
from anyshape.onnxfile.untrusted import load_checked
from anyshape.results.result import Result
from anyshape.runtime.custom_ops import understand_custom_ops


def check(
    f: str | os.PathLike[str],
    model: Any = None,
    args: Any = (),
    *,
    kwargs: Mapping[str, Any] | None = None,
    examples: Any = None,
    dims: Mapping[str, Any] | None = None,
    sizes: Mapping[str, Any] | None = None,
    where: Sequence[str] = (),
    make_inputs: Callable[..., Any] | None = None,
    atol: float | None = None,
    rtol: float | None = None,
    budget: float | None = None,
    quick: bool = False,
    thorough: bool = False,
    at: Mapping[str, int] | None = None,
    seed: int = 0,
    providers: Sequence[str] | None = None,
    custom_ops: Sequence[Any] | Mapping[str, Callable[..., Any]] = (),
) -> Result:
    """Verify a file; ExportError with the finding where it is wrong, so that a test can simply call this.

    Without `dims`, the file's own names say what varies. Without `model`, the file is run at many sizes and held to the
    shapes that it declares itself. `at` runs one size only.
    """
    check_options(
        atol=atol,
        rtol=rtol,
        budget=budget,
        seed=seed,
        make_inputs=make_inputs,
        providers=providers,
    )
    computed_by = understand_custom_ops(custom_ops)
    if not isinstance(f, (str, os.PathLike)):
        raise DeclarationError(f"`f` is a {type(f).__name__}: pass the path of an ONNX file")
    path = Path(f)
    proto = load_checked(path)
    tier = choose_tier(quick=quick, thorough=thorough)
    if model is None:
        from anyshape.verification.file_alone_checking import check_alone

        _refuse_what_needs_a_model(
            dims=dims, make_inputs=make_inputs, examples=examples, atol=atol, rtol=rtol, kwargs=kwargs
        )
        result = check_alone(
            path, proto, sizes=sizes, where=where, budget=budget, at=at, seed=seed, providers=providers, tier=tier,
            custom_ops=computed_by,
        )  # fmt: skip
    else:
        from anyshape.bench.judgement import Tolerance
        from anyshape.verbs.check_against import CheckWishes, check_against, request_for

        request = request_for(proto, model, args, kwargs, dims, sizes, where, make_inputs, examples)
        wishes = CheckWishes(Tolerance(atol, rtol), budget, tier, at, seed, providers, computed_by)
        result = check_against(path, proto, request, wishes)
    if result.verdict == "refused":
        raise ExportError(result)
    return result


def _refuse_what_needs_a_model(**arguments: Any) -> None:
    given = [name for name, value in arguments.items() if value is not None]
    if given:
        raise DeclarationError(f"{given[0]}= is about the model, but no model is given: pass it as the second argument")
