"""Translations of torch operators that torch lacks, or whose own holds at the traced sizes only.

An operator with a translation is not decomposed, so no decomposition can look at its sizes. Each function is written
for torch's table: ONNX values and Python numbers in, ONNX values out. The user's own translations win over these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from anyshape.conversion.control_flow import marks
from anyshape.conversion.operators import (
    attention,
    choice,
    complex_values,
    composites,
    experts,
    index,
    linear_algebra,
    numbers,
    packed_sequences,
    pooling,
    ranges,
    recurrent,
    resize,
    scatter,
    special_functions,
    spectra,
    views,
)

COMPLEX = "complex "
"""Before the name of an operator: the translation for complex values, which are real ones with one more axis of two."""

TABLE: Mapping[str, Callable[..., Any]] = {
    **attention.TRANSLATIONS,
    **choice.TRANSLATIONS,
    **complex_values.TRANSLATIONS,
    **composites.TRANSLATIONS,
    **linear_algebra.CUMULATIVE,
    **linear_algebra.DISTANCES,
    **experts.TRANSLATIONS,
    **ranges.TRANSLATIONS,
    **index.TRANSLATIONS,
    **linear_algebra.TRANSLATIONS,
    **views.TRANSLATIONS,
    **composites.NORMALIZATIONS,
    **numbers.TRANSLATIONS,
    **choice.ORDERINGS,
    **packed_sequences.TRANSLATIONS,
    **pooling.TRANSLATIONS,
    **recurrent.TRANSLATIONS,
    **marks.TRANSLATIONS,
    **resize.TRANSLATIONS,
    **scatter.TRANSLATIONS,
    **special_functions.TRANSLATIONS,
    **spectra.TRANSLATIONS,
    **numbers.SUBTRACTIONS,
    **numbers.WITH_SIZES,
}
"""`namespace::operator[.overload]` or `module::function` -> translation; what this torch does not have is left out."""
