"""What every export imports on its way, torch's exporter above all: at once, and without searches for garbage.

torch itself imports it piece by piece, some at the first run of a model, the rest while it traces and translates.
"""

from __future__ import annotations

from anyshape.conversion.translation import torchs_table
from anyshape.garbage import uncollected
from anyshape.runtime.releases import choose_opset
from anyshape.torchkit.capture import newest_translated_opset, quiet
from anyshape.torchkit.private_names import lookup

_TRACE = "torch.export._trace._fakify_params_buffers"


def prepare(opset: int | None = None) -> None:
    """Ready to trace, and to translate to this opset or to the default one; done once, the next time costs nothing."""
    with uncollected(), quiet():
        lookup(_TRACE)
        torchs_table(opset or choose_opset(None, None, newest_translated_opset()))
