"""torch's older exporter: it runs the module on real tensors and writes down what they went through."""

from __future__ import annotations

import tempfile
from pathlib import Path

import onnx_ir as ir
import torch

from anyshape.conversion.candidates import Job
from anyshape.torchkit import capture


def torchscript_model(job: Job, opset: int) -> ir.Model:
    """The job as this exporter writes it; inputs are called `input_<index>`, and unused ones are left out."""
    names = [f"input_{index}" for index in range(len(job.leaves))]
    dynamic_axes = {
        name: {
            axis: f"{name}_{axis}"
            for axis, expression in enumerate(job.spec.axes.get(leaf, ()))
            if expression is not None
        }
        for name, leaf in zip(names, job.names, strict=True)
    }
    arguments = tuple(value for _, value in job.leaves)
    with tempfile.TemporaryDirectory() as folder, capture.quiet(), capture.silent_descriptors():
        path = Path(folder) / "model.onnx"
        # with gradients on, attention layers do not take the fast path that this exporter cannot translate
        with torch.enable_grad():
            torch.onnx.export(
                job.adapter, arguments, str(path), dynamo=False, input_names=names, dynamic_axes=dynamic_axes,
                opset_version=opset, verbose=False,
            )  # fmt: skip
        model = ir.load(path)
        ir.external_data.load_to_model(model)
    return model
