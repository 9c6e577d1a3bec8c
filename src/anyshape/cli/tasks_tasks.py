"""What each command asks the library for. torch is imported here, when a command runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anyshape.cli.console import Tell
    from anyshape.cli.tasks_proposals import Proposed
    from anyshape.results.finding import Finding
    from anyshape.results.result import Result


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


def propose_dims(target: str, options: Mapping[str, Any], tell: Tell) -> Proposed:
    tell(f"loading {target}")
    from anyshape.cli.target_calls import call_of
    from anyshape.cli.targets import loaded
    from anyshape.cli.tasks_proposals import proposed

    inputs, seed = options["inputs"], options["seed"]
    names = [one.name for one in inputs]
    with loaded(target, inputs=names, weights=options["weights"], seed=seed) as subject:
        call = call_of(subject, inputs, {}, {}, seed)
        tell(f"probing {target}")
        return proposed(subject.model, call)


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
