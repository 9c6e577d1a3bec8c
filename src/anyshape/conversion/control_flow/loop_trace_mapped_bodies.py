"""`map(body, xs, y)` of torch's control flow: a loop over the first axis, kept as a loop.

Recognised: `functorch.experimental.control_flow.map`. Torch traces the body into a program within the program, and has
no translation for that. Put there: the marks of a loop, with the body traced once between them, over slices along the
first axis; what it returns is stacked.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from anyshape.conversion.control_flow.loop_trace_mapping import mapped
from anyshape.conversion.operators.repair import Repair, Used


@contextlib.contextmanager
def _apply(used: Used) -> Iterator[None]:
    with mapped(lambda: used("control_flow.map: kept as Scan")):
        yield


MAPPED_BODIES = Repair("mapped bodies", _apply)
