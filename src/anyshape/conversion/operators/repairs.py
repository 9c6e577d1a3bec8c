"""Shape-agnostic replacements for the time of a trace: what runs at every size in PyTorch should export as it is.

One repair is one small file: what it recognises, what it puts there, and why that is the same.
"""

from __future__ import annotations

from anyshape.conversion.control_flow.loop_trace import MAPPED_BODIES
from anyshape.conversion.operators.arithmetic import ARITHMETIC, DIVISIONS, TENSORS_OF_SIZES
from anyshape.conversion.operators.attention import CAUSAL_MASKS
from anyshape.conversion.operators.choice import COMPARISONS
from anyshape.conversion.operators.experts import EXPERTS
from anyshape.conversion.operators.held_numbers import HELD_NUMBERS
from anyshape.conversion.operators.index import INDEXING, VALUE_SLICES, WRITTEN_PLACES
from anyshape.conversion.operators.packed_sequences import LISTED_LENGTHS, PACKED_SEQUENCES
from anyshape.conversion.operators.pooling import POOLING, POOLING_OF_ONE_AXIS
from anyshape.conversion.operators.ranges import RANGES
from anyshape.conversion.operators.recurrent import RECURRENT_LAYERS
from anyshape.conversion.operators.repair import Acted, Repair, Used, applied
from anyshape.conversion.operators.shadows import SIZE_KEYS
from anyshape.conversion.operators.spectra import SPECTRA
from anyshape.conversion.operators.traced_code import AUTOGRAD_FUNCTIONS, GRADIENTS, MOVED_MODULES
from anyshape.conversion.operators.views import CUTTING, STRIDES

REPAIRS: tuple[Repair, ...] = (
    CAUSAL_MASKS,
    MOVED_MODULES,
    SIZE_KEYS,
    WRITTEN_PLACES,
    RECURRENT_LAYERS,
    PACKED_SEQUENCES,
    LISTED_LENGTHS,
    ARITHMETIC,
    RANGES,
    AUTOGRAD_FUNCTIONS,
    GRADIENTS,
    COMPARISONS,
    CUTTING,
    DIVISIONS,
    STRIDES,
    EXPERTS,
    INDEXING,
    TENSORS_OF_SIZES,
    VALUE_SLICES,
    MAPPED_BODIES,
    POOLING_OF_ONE_AXIS,
    POOLING,
    SPECTRA,
    HELD_NUMBERS,
)
"""In the order in which they are put on; the last one sees a call first."""

__all__ = ["REPAIRS", "Acted", "Repair", "Used", "applied"]
