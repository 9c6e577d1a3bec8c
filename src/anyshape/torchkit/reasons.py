"""Why torch failed, in one line without its symbols. Decided by the type of the exception, never by its text."""

from __future__ import annotations

import re
import traceback

import torch

from anyshape.errors import named_line
from anyshape.sizes import budgets
from anyshape.source.spans import Span, span_of_error, span_of_recorded_stack

_KNOWN = {
    "GuardOnDataDependentSymNode": "a decision depends on values, which a trace cannot follow",
    "UserErrorType.CONSTRAINT_VIOLATION": "the trace turned a declared dim into a number",
    "UserErrorType.DYNAMIC_CONTROL_FLOW": "a decision depends on values, which a trace cannot follow",
    "ConstraintViolationError": "the trace turned a declared dim into a number",
}
_OPERATOR = re.compile(r"<OpOverload\(op='([^']+)', overload='[^']+'\)>(?:\. Failure message.*)?")
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_SYMBOL = re.compile(r"\b[su]\d+\b|L\[")


def reason_of(error: BaseException) -> str:
    """The known meaning of an exception, or the first line of its root."""
    for kind in _kinds(error):
        if kind in _KNOWN:
            return _KNOWN[kind]
    root = chain_of(error)[-1]
    lines = [_ADDRESS.sub("", _OPERATOR.sub(r"\1", line.strip())) for line in str(root).splitlines() if line.strip()]
    name = type(root).__name__
    if not lines or _SYMBOL.search(lines[0]):
        return name
    text = lines[0] if len(lines[0]) <= budgets.LONGEST_REASON else lines[0][: budgets.LONGEST_REASON - 3] + "..."
    return f"{name}: {text}"


def said_with_place(error: BaseException) -> str:
    """What the user's own code raised and where; in our words where a device is asked for that is not here."""
    span, device = span_of_error(error), _missing_device(error)
    place = "" if span is None else f"{span.path}:{span.line}"
    if device is not None:
        stays = "which is not here: let the model stay on the device of its inputs"
        return f"{place or 'the model'} asks for {device}, {stays}"
    return named_line(error) + (f" ({place})" if place and not isinstance(error, SyntaxError) else "")


def _missing_device(error: BaseException) -> str | None:
    """`CUDA`, where torch's module of a device raised and has no device."""
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    package, _, name = ("" if step is None else str(step.tb_frame.f_globals.get("__name__"))).rpartition(".")
    is_available = getattr(getattr(torch, name, None), "is_available", None) if package == "torch" else None
    return None if is_available is None or is_available() else name.upper()


def place_of_translation(error: BaseException) -> Span | None:
    """The user's line of the node that torch could not translate, which the frames of its exporter hold."""
    for link in reversed(chain_of(error)):
        for frame, _ in traceback.walk_tb(link.__traceback__):
            node = frame.f_locals.get("node")
            if isinstance(node, torch.fx.Node) and (stack := node.meta.get("stack_trace")):
                return span_of_recorded_stack(stack)
    return None


def asks_for_missing_device(error: BaseException) -> bool:
    return _missing_device(error) is not None


def is_known(error: BaseException) -> bool:
    """Whether the trace could not follow a decision, which has a meaning of its own."""
    return any(kind in _KNOWN for kind in _kinds(error))


_OF_VALUES = ("GuardOnDataDependentSymNode", "UserErrorType.DYNAMIC_CONTROL_FLOW")


def depends_on_values(error: BaseException) -> bool:
    """Whether the trace needed to know what only values tell."""
    return any(kind in _OF_VALUES for kind in _kinds(error))


def _kinds(error: BaseException) -> list[str]:
    """What an exception and its causes are: torch's own kind of error, and the type."""
    return [kind for link in chain_of(error) for kind in (str(getattr(link, "error_type", "")), type(link).__name__)]


def chain_of(error: BaseException) -> list[BaseException]:
    """An exception and its causes."""
    chain = [error]
    while (cause := chain[-1].__cause__) is not None and cause not in chain:
        chain.append(cause)
    return chain
