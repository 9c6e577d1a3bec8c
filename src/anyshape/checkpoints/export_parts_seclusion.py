"""transformers left alone with a folder: nothing is looked up on the hub, and nothing is printed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import huggingface_hub.constants
from transformers.utils import logging

_messages: Any = logging


@contextlib.contextmanager
def secluded() -> Iterator[None]:
    """Inside, transformers works offline, whatever a config refers to, and keeps its reports to itself."""
    settings, level = vars(huggingface_hub.constants), _messages.get_verbosity()
    was_offline, had_bars = settings["HF_HUB_OFFLINE"], _messages.is_progress_bar_enabled()
    settings["HF_HUB_OFFLINE"] = True
    _messages.set_verbosity(_messages.CRITICAL)
    _messages.disable_progress_bar()
    try:
        yield
    finally:
        settings["HF_HUB_OFFLINE"] = was_offline
        _messages.set_verbosity(level)
        if had_bars:
            _messages.enable_progress_bar()
