"""The strategy: a candidate out of exports by torch.export, or by TorchScript where those cannot be lifted."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import onnx_ir as ir
import torch

from anyshape.conversion.candidates import Candidate, Job
from anyshape.conversion.lifting.alignment import DifferentError, align, lift, share_weights
from anyshape.conversion.lifting.constants import ShortTableError, UnexplainedError
from anyshape.conversion.lifting.static_exports import StaticExport, calls, free_axes, largest_call, observe
from anyshape.conversion.operators.table import REPAIRS
from anyshape.conversion.torch_export import by_export, cause_of, torchscript_model
from anyshape.results.attempt import Attempt
from anyshape.sizes import budgets
from anyshape.torchkit import capture

_TORCH_EXPORT = "torch.export"
_REFUSALS = (DifferentError, UnexplainedError)


class UnobservedError(Exception):
    """There are no observations: the module cannot be exported at all, or at too few sizes, or not in time."""


@dataclass(frozen=True)
class _Way:
    """A static exporter."""

    name: str
    opset: int
    export: Callable[[Job], ir.Model]
    """A model of the job; of torch.export a static one, while TorchScript keeps what it knows of sizes."""


def lifted(job: Job, name: str) -> tuple[Candidate | None, Attempt]:
    """An attempt under this name; skipped where the module has no static export either: that was told before."""
    start = time.monotonic()
    reasons = []
    for way in _ways(job):
        try:
            candidate = _candidate_by(way, job, start + budgets.SECONDS_FOR_STATIC_EXPORTS)
        except UnobservedError:
            continue
        except _REFUSALS as refusal:
            reasons.append(f"{way.name}: {refusal}")
        except Exception as error:  # noqa: BLE001  an attempt: the next way may do better
            reasons.append(f"{way.name}: {cause_of(error)}")
        else:
            return candidate, Attempt(name, "converted", "", time.monotonic() - start)
    outcome, seconds = ("failed" if reasons else "skipped"), time.monotonic() - start
    return None, Attempt(name, outcome, "; ".join(reasons) or "there are no static exports", seconds)


def _ways(job: Job) -> list[_Way]:
    if not free_axes(job) or any(not isinstance(value, torch.Tensor) for _, value in job.leaves):
        return []
    older = min(job.opset, capture.newest_torchscript_opset())
    return [
        _Way(_TORCH_EXPORT, job.opset, _by_torch_export),
        _Way("TorchScript", older, lambda one: torchscript_model(one, older)),
    ]


def _by_torch_export(job: Job) -> ir.Model:
    repairs = tuple(repair for repair in REPAIRS if repair.always)
    static = replace(job.spec, axes={}, scalars={})
    plain = replace(job, spec=static, rewrites=False, extra={**job.extra, "optimize": False})
    candidate, attempt, _ = by_export(plain, _TORCH_EXPORT, repairs)
    if candidate is None:
        raise UnobservedError(attempt.reason)
    return candidate.model


def _candidate_by(way: _Way, job: Job, deadline: float) -> Candidate:
    observations = _static_exports(way, job, deadline)
    try:
        lifted_model = lift(job, observations)
    except ShortTableError:
        largest = largest_call(job)
        if largest is None:
            raise
        observations.append(observe(job, *largest, way.export))
        share_weights(observations)
        lifted_model = lift(job, observations)
    places = "; ".join(", ".join(f"{dim} {n}" for dim, n in one.sizes.items()) for one in observations)
    count = "1 constant" if lifted_model.count == 1 else f"{lifted_model.count} constants"
    sentence = f"{count} computed from the sizes, found by static exports ({way.name}) at {places}"
    return Candidate(lifted_model.model, way.opset, records_guards=False, repairs=(sentence,))


def _static_exports(way: _Way, job: Job, deadline: float) -> list[StaticExport]:
    found: list[StaticExport] = []
    for sizes, values in calls(job):
        begun = time.monotonic()
        try:
            found.append(observe(job, sizes, values, way.export))
        except Exception as error:
            raise UnobservedError(str(error)) from error
        share_weights(found)
        align([found[0].model, found[-1].model])  # refused at once, not after all exports
        left = budgets.STATIC_EXPORTS - len(found)
        if not left:
            return found
        if time.monotonic() + left * (time.monotonic() - begun) > deadline:
            raise UnobservedError("there is no time for several exports")
    if len(found) < budgets.FEWEST_STATIC_EXPORTS:
        raise UnobservedError("the module takes too few sizes")
    return found
