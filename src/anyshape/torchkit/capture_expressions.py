"""Sizes of a trace as expressions in torch's symbols."""

from __future__ import annotations

from typing import Any

import sympy
import torch


def expression_of(number: Any) -> sympy.Basic:
    """What a number is in torch's symbols."""
    symbolic = isinstance(number, (torch.SymInt, torch.SymFloat, torch.SymBool))
    return number.node.expr if symbolic else sympy.sympify(number)


def is_same_number(left: Any, right: Any) -> bool:
    return bool(expression_of(left) == expression_of(right))
