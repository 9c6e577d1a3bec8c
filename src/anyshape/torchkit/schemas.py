"""What an operator's schema says of memory: whether it writes to what it is given, or gives a view of it."""

from __future__ import annotations

from typing import Any


def schema_of(target: Any) -> Any:
    """None for what is no operator: a Python function, `torch.cond` and its like."""
    return getattr(target, "_schema", None)


def writes(target: Any) -> bool:
    """Whether an operator writes to one of its arguments."""
    schema = schema_of(target)
    return schema is not None and bool(schema.is_mutable)


def gives_alias(target: Any) -> bool:
    """Whether a result may share its memory with an argument: of views, and of operators that write in place."""
    schema = schema_of(target)
    return schema is not None and any(result.alias_info is not None for result in schema.returns)


def is_view(target: Any) -> bool:
    """Whether an operator gives its argument back, cut or laid out in another way."""
    return gives_alias(target) and not writes(target)
