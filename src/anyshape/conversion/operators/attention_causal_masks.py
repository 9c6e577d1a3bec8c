"""nn.TransformerEncoder, nn.TransformerDecoder and nn.Transformer compare a mask with a causal one, value by value.

Recognised: the comparison, which a trace cannot follow. Put there: "not causal". That is the same: a mask that is not
called causal is applied as it is, while `is_causal` only lets attention make the same mask by itself. Where the caller
says `is_causal=True`, torch does not compare, and nothing is put there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from anyshape.conversion.operators.attention_causality import unseen_masks
from anyshape.conversion.operators.repair import Repair, Used


@contextlib.contextmanager
def _apply(used: Used) -> Iterator[None]:
    with unseen_masks(lambda: used("nn.Transformer: the mask is applied as it is, without a look at its values")):
        yield


# without it no such model is ever traced, and no other model has the comparison
CAUSAL_MASKS = Repair("causal masks", _apply, always=True)
