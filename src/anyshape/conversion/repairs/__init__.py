"""Shape-agnostic replacements for the time of a trace: what runs at every size in PyTorch should export as it is.

One repair is one small file: what it recognises, what it puts there, and why that is the same.
"""

from __future__ import annotations

from anyshape.conversion.repairs.arithmetic import ARITHMETIC
from anyshape.conversion.repairs.autograd_functions import AUTOGRAD_FUNCTIONS
from anyshape.conversion.repairs.base import Acted, Repair, Used, applied
from anyshape.conversion.repairs.causal_masks import CAUSAL_MASKS
from anyshape.conversion.repairs.comparisons import COMPARISONS
from anyshape.conversion.repairs.cutting import CUTTING
from anyshape.conversion.repairs.divisions import DIVISIONS
from anyshape.conversion.repairs.experts import EXPERTS
from anyshape.conversion.repairs.gradients import GRADIENTS
from anyshape.conversion.repairs.held_numbers import HELD_NUMBERS
from anyshape.conversion.repairs.indexing import INDEXING
from anyshape.conversion.repairs.lengths import LISTED_LENGTHS
from anyshape.conversion.repairs.mapped_bodies import MAPPED_BODIES
from anyshape.conversion.repairs.moved_modules import MOVED_MODULES
from anyshape.conversion.repairs.packed import PACKED_SEQUENCES
from anyshape.conversion.repairs.pooling import POOLING, POOLING_OF_ONE_AXIS
from anyshape.conversion.repairs.ranges import RANGES
from anyshape.conversion.repairs.recurrent import RECURRENT_LAYERS
from anyshape.conversion.repairs.size_keys import SIZE_KEYS
from anyshape.conversion.repairs.spectra import SPECTRA
from anyshape.conversion.repairs.strides import STRIDES
from anyshape.conversion.repairs.tensors_of_sizes import TENSORS_OF_SIZES
from anyshape.conversion.repairs.value_slices import VALUE_SLICES
from anyshape.conversion.repairs.written_places import WRITTEN_PLACES

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
