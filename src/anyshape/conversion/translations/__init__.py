"""Translations of torch operators that torch lacks, or whose own holds at the traced sizes only.

An operator with a translation is not decomposed, so no decomposition can look at its sizes. Each function is written
for torch's table: ONNX values and Python numbers in, ONNX values out. The user's own translations win over these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from anyshape.conversion.translations import (
    attention,
    choosing,
    complex_values,
    composites,
    cumulative,
    distances,
    experts,
    grids,
    indexing,
    linear_algebra,
    moving,
    normalization,
    numbers,
    ordering,
    packed,
    pooling,
    recurrent,
    regions,
    resizing,
    scattering,
    special_functions,
    spectra,
    subtraction,
    with_sizes,
)

COMPLEX = "complex "
"""Before the name of an operator: the translation for complex values, which are real ones with one more axis of two."""

TABLE: Mapping[str, Callable[..., Any]] = {
    **attention.TRANSLATIONS,
    **choosing.TRANSLATIONS,
    **complex_values.TRANSLATIONS,
    **composites.TRANSLATIONS,
    **cumulative.TRANSLATIONS,
    **distances.TRANSLATIONS,
    **experts.TRANSLATIONS,
    **grids.TRANSLATIONS,
    **indexing.TRANSLATIONS,
    **linear_algebra.TRANSLATIONS,
    **moving.TRANSLATIONS,
    **normalization.TRANSLATIONS,
    **numbers.TRANSLATIONS,
    **ordering.TRANSLATIONS,
    **packed.TRANSLATIONS,
    **pooling.TRANSLATIONS,
    **recurrent.TRANSLATIONS,
    **regions.TRANSLATIONS,
    **resizing.TRANSLATIONS,
    **scattering.TRANSLATIONS,
    **special_functions.TRANSLATIONS,
    **spectra.TRANSLATIONS,
    **subtraction.TRANSLATIONS,
    **with_sizes.TRANSLATIONS,
}
"""`namespace::operator[.overload]` or `module::function` -> translation; what this torch does not have is left out."""
