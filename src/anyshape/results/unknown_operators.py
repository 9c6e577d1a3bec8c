"""Findings about operators that ONNX Runtime does not have. No torch: a file may be checked without its model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from anyshape.results.finding import Finding
from anyshape.runtime import custom_ops as ops
from anyshape.runtime.session import runtime_version, unrunnable_type
from anyshape.sizes.spelling import spelled

if TYPE_CHECKING:
    import onnx

    from anyshape.results.result import Verb
    from anyshape.runtime.session import RuntimeFailureError
    from anyshape.source.spans import Span


def unknown_operators(operators: Sequence[ops.UnknownOperator], home: Span, what: Verb = "export") -> list[Finding]:
    """Operators of a domain of the user's that the runtime does not have, each at the line that it came from."""
    return [_unknown_operator(one, home, what) for one in operators]


def _unknown_operator(operator: ops.UnknownOperator, home: Span, what: Verb) -> Finding:
    if operator.dtype:
        message = f"{runtime_version()} has no `{operator.name}` in {operator.dtype}"
        wider = f"export a copy of the model in float32: {spelled('dtype=torch.float32', '--dtype float32')}"
        return Finding("unsupported-op", message, operator.span or home, helps=(wider,))
    function = operator.name.partition("::")[2].lower()
    lines = (
        f"def {function}({', '.join(operator.arguments)}):",
        "    return ...  # numpy arrays and attributes in, an array (or a tuple of them) out",
        "",
        spelled("custom_ops=", "custom_ops = ") + f"{{{operator.name!r}: {function}}}",
    )
    helps = [
        "\n".join((f"give what computes it in Python{spelled('', ', beside the model')}:", *lines)),
        f"or the library that implements it for ONNX Runtime: {spelled('custom_ops=[path]', '--custom-ops LIBRARY')}",
    ]
    if what == "export":
        helps.append(
            "or write the file without a check: "
            + spelled(f"unchecked=[{operator.name!r}]", f"--unchecked {operator.name}")
        )
    message = f"ONNX Runtime has no `{operator.name}`"
    return Finding("unsupported-op", message, operator.span or home, helps=tuple(helps))


def not_loaded(
    failure: RuntimeFailureError, model: onnx.ModelProto, custom_ops: ops.CustomOps, home: Span
) -> tuple[Finding, ...]:
    """Why the runtime does not load an existing file: its own operators, or what the runtime says.

    Raised where it is a type that the runtime does not run: then the file may be right.
    """
    if unknown := ops.unknown_operators(model, custom_ops):
        return tuple(unknown_operators(unknown, home, "check"))
    if (of_type := unrunnable_type(model, failure)) is not None:
        raise of_type
    return (Finding("runtime-error", f"ONNX Runtime does not load the file: {failure}", home),)
