"""`anyshape export FOLDER`: which options belong to a checkpoint, and which to a model in a Python file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from anyshape.checkpoints.exported import Exported
    from anyshape.cli.console import Tell
    from anyshape.results.finding import Finding
    from anyshape.results.result import Result
    from anyshape.verbs.dims import ProposedDims


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


_EXPORT_OPTIONS = {
    "opset_version": "opset", "target": "runtime", "narrow": "narrow", "repair": "repair", "unchecked": "unchecked",
    "dtype": "dtype", "metadata": "metadata", "external_data": "external_data", "optimize": "optimize",
}  # fmt: skip
_CHECK_OPTIONS = {name: name for name in ("atol", "rtol", "budget", "quick", "thorough", "seed")}


def _chosen(options: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The library's name of each option -> its value."""
    return {name: options[option] for name, option in names.items()}


def export_target(target: str, output: str, options: Mapping[str, Any], tell: Tell) -> Result:
    tell(f"loading {target}")
    from anyshape.cli.target_calls import call_of
    from anyshape.cli.targets import loaded
    from anyshape.verbs.export import export as export_model

    inputs, seed = options["inputs"], options["seed"]
    names = [one.name for one in inputs]
    with loaded(target, inputs=names, weights=options["weights"], seed=seed) as subject:
        call = call_of(subject, inputs, options["dims"], options["sizes"], seed)
        chosen = _chosen(options, {**_EXPORT_OPTIONS, **_CHECK_OPTIONS})
        chosen["custom_ops"] = subject.custom_ops(options["custom_ops"])
        chosen["where"] = subject.where(options["where"], inputs)
        return export_model(subject.model, f=output, progress=tell, **call.arguments, **chosen)


def check_alone(model: str, options: Mapping[str, Any]) -> Result:
    from anyshape.verbs.check import check as check_file

    chosen = _chosen(options, {**_CHECK_OPTIONS, "at": "at", "where": "where"})
    return check_file(model, sizes=options["sizes"] or None, custom_ops=options["custom_ops"], **chosen)


def check_against(model: str, target: str, options: Mapping[str, Any]) -> Result:
    from anyshape.cli.target_calls import call_of
    from anyshape.cli.targets import loaded
    from anyshape.onnxfile.interface import read_interface
    from anyshape.onnxfile.untrusted import load_checked
    from anyshape.verbs.check import check as check_file

    ports = read_interface(load_checked(model)).inputs
    inputs, seed = options["inputs"], options["seed"]
    names = [one.name for one in inputs] or [port.name for port in ports]
    with loaded(target, inputs=names, weights=options["weights"], seed=seed) as subject:
        call = call_of(subject, inputs, options["dims"], options["sizes"], seed, ports)
        chosen = _chosen(options, {**_CHECK_OPTIONS, "at": "at"})
        chosen["custom_ops"] = subject.custom_ops(options["custom_ops"])
        chosen["where"] = subject.where(options["where"], inputs)
        return check_file(model, subject.model, **call.arguments, **chosen)


def diagnose_target(target: str, options: Mapping[str, Any], tell: Tell) -> list[Finding]:
    tell(f"loading {target}")
    from anyshape.cli.target_calls import call_of
    from anyshape.cli.targets import loaded
    from anyshape.verbs.diagnose import diagnose as diagnose_model

    inputs, seed = options["inputs"], options["seed"]
    names = [one.name for one in inputs]
    with loaded(target, inputs=names, weights=options["weights"], seed=seed) as subject:
        call = call_of(subject, inputs, options["dims"], options["sizes"], seed)
        where = subject.where(options["where"], inputs)
        return diagnose_model(subject.model, progress=tell, seed=seed, where=where, **call.arguments)


def propose_dims(target: str, options: Mapping[str, Any], tell: Tell) -> ProposedDims:
    tell(f"loading {target}")
    from anyshape.cli.target_calls import call_of
    from anyshape.cli.targets import loaded
    from anyshape.verbs.dims import propose_dims as find_dims

    inputs, seed = options["inputs"], options["seed"]
    names = [one.name for one in inputs]
    with loaded(target, inputs=names, weights=options["weights"], seed=seed) as subject:
        call = call_of(subject, inputs, {}, {}, seed)
        tell(f"probing {target}")
        called = {name: call.arguments[name] for name in ("args", "kwargs", "examples", "make_inputs")}
        return find_dims(subject.model, **called)


def free_file(model: str, output: str, options: Mapping[str, Any], tell: Tell) -> Result:
    """Without a model to check against, torch is not imported."""
    from anyshape.verbs.make_dynamic import make_dynamic

    dims = {**{one.name: one.axes for one in options["inputs"]}, **options["dims"]}
    names = {name: name for name in ("budget", "quick", "thorough", "seed", "unchecked")}
    chosen = {**_chosen(options, names), "out": output, "sizes": options["sizes"] or None, "progress": tell}
    if options["target"] is None:
        return make_dynamic(model, dims or None, **chosen)
    from anyshape.cli.target_calls import call_of
    from anyshape.cli.targets import loaded
    from anyshape.onnxfile.interface import read_interface
    from anyshape.onnxfile.untrusted import load_checked

    ports, seed = read_interface(load_checked(model)).inputs, options["seed"]
    inputs = [port.name for port in ports]
    with loaded(options["target"], inputs=inputs, weights=options["weights"], seed=seed) as subject:
        call = call_of(subject, [], {}, {}, seed, ports)
        args, kwargs = call.first
        called = {"args": args, "kwargs": kwargs, "make_inputs": call.make_inputs}
        return make_dynamic(model, dims or None, model=subject.model, **called, **chosen)
