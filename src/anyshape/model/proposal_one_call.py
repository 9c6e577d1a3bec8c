"""Dims from one call, by asking the model; `automatic.py` has the steps in order."""

from __future__ import annotations
