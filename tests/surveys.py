"""A survey of a small model, as `export` takes it before the first strategy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from anyshape.model.request import understand
from anyshape.model.survey import ExportOptions, Survey, take_survey
from anyshape.runtime.custom_ops import CustomOps
from anyshape.testbench.judgement import Tolerance
from anyshape.testbench.plan import choose_tier


def survey_of(model: nn.Module, args: tuple[Any, ...], dims: Mapping[str, str], **changes: Any) -> Survey:
    request = understand(model.eval(), args, None, dims=dims)
    options = {
        "destination": None, "opset": 20, "opset_is_fixed": False, "external_data": None, "metadata": {},
        "narrow": False, "unchecked": (), "tolerance": Tolerance(), "seconds": None,
        "tier": choose_tier(quick=True, thorough=False), "seed": 0, "providers": None, "custom_ops": CustomOps(),
        "extra": {}, "notes": (), "tell": lambda _: None,
    }  # fmt: skip
    return take_survey(request, ExportOptions(**{**options, **changes}))
