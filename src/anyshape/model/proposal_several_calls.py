"""Dims from several calls, given or watched; `by_example.py` has the steps in order."""

from __future__ import annotations
