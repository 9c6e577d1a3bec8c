"""Translations of torch operators that torch lacks, or whose own holds at the traced sizes only.

An operator with a translation is not decomposed, so no decomposition can look at its sizes. Each function is written
for torch's table: ONNX values and Python numbers in, ONNX values out. The user's own translations win over these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from anyshape.conversion.control_flow import marks_regions
from anyshape.conversion.operators import (
    attention,
    choice,
    choice_ordering,
    complex_values,
    composites,
    composites_normalization,
    experts_experts,
    index_indexing,
    linear_algebra,
    linear_algebra_cumulative,
    linear_algebra_distances,
    numbers_numbers,
    numbers_subtraction,
    numbers_with_sizes,
    packed_sequences_packed,
    pooling_pooling,
    ranges_grids,
    recurrent_recurrent_x,
    resize,
    scatter,
    special_functions,
    spectra_spectra,
    views_moving,
)

COMPLEX = "complex "
"""Before the name of an operator: the translation for complex values, which are real ones with one more axis of two."""

TABLE: Mapping[str, Callable[..., Any]] = {
    **attention.TRANSLATIONS,
    **choice.TRANSLATIONS,
    **complex_values.TRANSLATIONS,
    **composites.TRANSLATIONS,
    **linear_algebra_cumulative.TRANSLATIONS,
    **linear_algebra_distances.TRANSLATIONS,
    **experts_experts.TRANSLATIONS,
    **ranges_grids.TRANSLATIONS,
    **index_indexing.TRANSLATIONS,
    **linear_algebra.TRANSLATIONS,
    **views_moving.TRANSLATIONS,
    **composites_normalization.TRANSLATIONS,
    **numbers_numbers.TRANSLATIONS,
    **choice_ordering.TRANSLATIONS,
    **packed_sequences_packed.TRANSLATIONS,
    **pooling_pooling.TRANSLATIONS,
    **recurrent_recurrent_x.TRANSLATIONS,
    **marks_regions.TRANSLATIONS,
    **resize.TRANSLATIONS,
    **scatter.TRANSLATIONS,
    **special_functions.TRANSLATIONS,
    **spectra_spectra.TRANSLATIONS,
    **numbers_subtraction.TRANSLATIONS,
    **numbers_with_sizes.TRANSLATIONS,
}
"""`namespace::operator[.overload]` or `module::function` -> translation; what this torch does not have is left out."""
