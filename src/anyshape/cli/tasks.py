"""`anyshape export FOLDER`: which options belong to a checkpoint, and which to a model in a Python file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from anyshape.checkpoints.exported import Exported
    from anyshape.cli.console import Tell


_OF_A_CHECKPOINT = {"layout": "--layout", "task": "--task", "trust_remote_code": "--trust-remote-code"}
_OF_A_MODEL = {"inputs": "--input", "dims": "--dim", "where": "--where", "weights": "--weights"}
_PASSED_ON = (
    "narrow", "repair", "unchecked", "metadata", "external_data", "optimize", "atol", "rtol", "budget", "quick",
    "thorough", "custom_ops",
)  # fmt: skip


def is_folder(target: str, options: Mapping[str, Any]) -> bool:
    """Whether a checkpoint is meant; an option of the other kind of target is wrong usage."""
    meant = Path(target).is_dir()
    of_the_other = _OF_A_MODEL if meant else _OF_A_CHECKPOINT
    given = [written for name, written in of_the_other.items() if options.get(name)]
    if given and meant:
        raise click.UsageError(f"{given[0]} is about a model in a Python file, but `{target}` is a checkpoint's folder")
    if given:
        raise click.UsageError(f"{given[0]} is about a checkpoint's folder, which `{target}` is not")
    return meant


def export_folder(target: str, output: str, options: Mapping[str, Any], tell: Tell) -> Exported:
    from anyshape.checkpoints import export_checkpoint

    return export_checkpoint(
        target, output, layout=options["layout"] or "optimum", task=options["task"], dtype=options["dtype"],
        trust_remote_code=options["trust_remote_code"], sizes=options["sizes"], seed=options["seed"], progress=tell,
        opset_version=options["opset"], target=options["runtime"], **{name: options[name] for name in _PASSED_ON},
    )  # fmt: skip
