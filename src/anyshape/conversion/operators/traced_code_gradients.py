"""A part of a forward that switches gradients on is traced without them.

Recognised: `torch.enable_grad()` and `torch.set_grad_enabled(True)` while a model is traced. Put there: nothing, so
that the trace goes on without gradients. The same, because a result does not depend on whether it could be
differentiated; a forward that takes a gradient itself fails then, and is left to others. torch keeps such a part as an
inner program, which its translation cannot write.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from anyshape.conversion.operators.repair import Repair, Used
from anyshape.torchkit.patches import gradients_kept_off


@contextlib.contextmanager
def _traced_without(used: Used) -> Iterator[None]:
    with gradients_kept_off(lambda: used("torch.enable_grad: traced without gradients")):
        yield


GRADIENTS = Repair("gradients", _traced_without)
