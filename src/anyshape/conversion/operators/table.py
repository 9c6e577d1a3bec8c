"""All families of operators in one table: the repairs of a trace, in their order, and the translations to ONNX.

A family is one file beside this one: what is recognised in torch, what stands in for it while tracing, its shapes, and
its ONNX. The translations are of operators that torch lacks, or whose own hold at the traced sizes only: an operator
with a translation is not decomposed, so no decomposition can look at its sizes. Each function is written for torch's
table: ONNX values and Python numbers in, ONNX values out. The user's own translations win over these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from anyshape.conversion.control_flow import marks
from anyshape.conversion.control_flow.loop_trace import MAPPED_BODIES
from anyshape.conversion.operators import (
    arithmetic,
    attention,
    choice,
    complex_values,
    composites,
    elementwise,
    index,
    linear_algebra,
    numbers,
    packed_sequences,
    pooling,
    recurrent,
    resize,
    special_functions,
    spelled_out,
    views,
)
from anyshape.conversion.operators.held_numbers import HELD_NUMBERS
from anyshape.conversion.operators.repair import Repair
from anyshape.conversion.operators.traced_code import AUTOGRAD_FUNCTIONS, GRADIENTS, MOVED_MODULES, SIZE_KEYS

# not family by family: two that answer one function, or that call what another answers, must keep their order
REPAIRS: tuple[Repair, ...] = (
    attention.CAUSAL_MASKS,
    MOVED_MODULES,
    SIZE_KEYS,
    index.WRITTEN_PLACES,
    recurrent.RECURRENT_LAYERS,
    packed_sequences.PACKED_SEQUENCES,
    packed_sequences.LISTED_LENGTHS,
    arithmetic.ARITHMETIC,
    arithmetic.RANGES,
    AUTOGRAD_FUNCTIONS,
    GRADIENTS,
    choice.COMPARISONS,
    views.CUTTING,
    views.REPEATS,
    arithmetic.DIVISIONS,
    views.STRIDES,
    linear_algebra.EXPERTS,
    index.INDEXING,
    arithmetic.TENSORS_OF_SIZES,
    index.VALUE_SLICES,
    MAPPED_BODIES,
    pooling.POOLING_OF_ONE_AXIS,
    pooling.POOLING,
    complex_values.SPECTRA,
    spelled_out.SPELLED_OUT,
    HELD_NUMBERS,
)
"""In the order in which they are put on; the last one sees a call first."""

TRANSLATIONS: Mapping[str, Callable[..., Any]] = {
    **arithmetic.TRANSLATIONS,
    **attention.TRANSLATIONS,
    **choice.TRANSLATIONS,
    **complex_values.TRANSLATIONS,
    **composites.TRANSLATIONS,
    **elementwise.TRANSLATIONS,
    **index.TRANSLATIONS,
    **linear_algebra.TRANSLATIONS,
    **marks.TRANSLATIONS,
    **numbers.TRANSLATIONS,
    **packed_sequences.TRANSLATIONS,
    **pooling.TRANSLATIONS,
    **recurrent.TRANSLATIONS,
    **resize.TRANSLATIONS,
    **special_functions.TRANSLATIONS,
    **spelled_out.TRANSLATIONS,
    **views.TRANSLATIONS,
}
"""`namespace::operator[.overload]` or `module::function` -> translation; what this torch does not have is left out.

No operator is in two families.
"""
