"""The end of a command's process: what others have left to do is done, and nothing is freed one by one.

To free the half million objects of torch, which the system takes back anyway, is a tenth of the CPU time of a small
export.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import io
import os
from collections.abc import Callable

from anyshape.cli.console import flush_c

_BUFFERED = (io.TextIOWrapper, io.BufferedWriter, io.BufferedRandom)


class Leaving:
    """Registered before anybody else, so that it comes last: after all threads, and after what a model registers."""

    def __init__(self, end: Callable[[int], object] = os._exit) -> None:
        self.code: object = None
        self._end = end
        registered = getattr(atexit, "_ncallbacks", None)
        if registered is not None and registered() == 0:  # who is there already, such as coverage, would be left out
            atexit.register(self._leave)

    def _leave(self) -> None:
        if not isinstance(self.code, int):  # ended otherwise: Python tells how
            return
        for each in gc.get_objects():  # a file that nobody has closed is written when it is freed, which it will not be
            if issubclass(type(each), _BUFFERED):
                with contextlib.suppress(
                    Exception
                ):  # closed, or its disk is full: nobody would hear of it otherwise either
                    each.flush()
        flush_c()
        self._end(self.code)
