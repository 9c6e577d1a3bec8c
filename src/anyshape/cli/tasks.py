"""What each command asks the library for: options become the arguments of one verb.

torch is imported here when a command runs, after the user has been told that something happens.
"""

from __future__ import annotations

import contextlib
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from anyshape.cli import preflight
from anyshape.cli.endings import DONE, SAYS_NO, Ending
from anyshape.cli.target_texts import mode_of
from anyshape.garbage import imported_for_good
from anyshape.results.result import ExportError

if TYPE_CHECKING:
    from anyshape.checkpoints.export_parts import Exported
    from anyshape.cli.console import Tell
    from anyshape.cli.target_calls import TargetCall
    from anyshape.cli.target_texts import TargetText
    from anyshape.cli.targets import LoadedTarget
    from anyshape.onnxfile.interface import Port
    from anyshape.results.finding import Finding
    from anyshape.results.result import Result
    from anyshape.results.times import Times
    from anyshape.verbs.dims import ProposedDims
    from anyshape.verbs.report import Report

_Examined = TypeVar("_Examined")

# ---- the library's name of an argument -> the option that gives it

EXPORT_OPTIONS = {
    "opset_version": "opset", "target": "runtime", "narrow": "narrow", "repair": "repair", "random": "random",
    "unchecked": "unchecked", "dtype": "dtype", "metadata": "metadata", "external_data": "external_data",
    "optimize": "optimize",
}  # fmt: skip
CHECK_OPTIONS = {name: name for name in ("atol", "rtol", "budget", "quick", "thorough", "seed")}
_BENCH_OPTIONS = {name: name for name in ("atol", "rtol", "seed", "threads", "session_options", "rounds", "compiled")}
FREE_OPTIONS = {name: name for name in ("budget", "quick", "thorough", "seed", "unchecked", "constants")}
_CHECKPOINT_OPTIONS = {name: name for name in ("task", "trust_remote_code", "sizes", "custom_ops")}


def _arguments_from(options: Mapping[str, Any], *tables: Mapping[str, str]) -> dict[str, Any]:
    found = {name: options[option] for table in tables for name, option in table.items()}
    return {**found, "seed": found["seed"] or 0} if "seed" in found else found


# ---- export


_OF_A_CHECKPOINT = {"layout": "--layout", "task": "--task", "trust_remote_code": "--trust-remote-code"}
_OF_A_MODEL = {
    "inputs": "--input", "dims": "--dim", "where": "--where", "weights": "--weights", "report": "--report",
}  # fmt: skip


def is_folder(target: str, options: Mapping[str, Any]) -> bool:
    """Whether a checkpoint is meant; an option of the other kind of target is wrong usage."""
    meant = stat.S_ISDIR(mode_of(target))
    of_the_other = _OF_A_MODEL if meant else _OF_A_CHECKPOINT
    given = [written for name, written in of_the_other.items() if options.get(name)]
    if given and meant:
        raise click.UsageError(f"{given[0]} is about a model in a Python file, but `{target}` is a checkpoint's folder")
    if given:
        raise click.UsageError(f"{given[0]} is about a checkpoint's folder, which `{target}` is not")
    return meant


def export_folder(target: str, output: str, options: Mapping[str, Any], tell: Tell) -> Exported:
    preflight.ask_declaration(options)
    preflight.ask_dtype(options["dtype"])
    preflight.ask_folder(output)
    with imported_for_good():
        from anyshape.checkpoints import export_checkpoint

    chosen = _arguments_from(options, _CHECKPOINT_OPTIONS, EXPORT_OPTIONS, CHECK_OPTIONS)
    return export_checkpoint(target, output, layout=options["layout"] or "optimum", progress=tell, **chosen)


def export_target(target: str, output: str, options: Mapping[str, Any], tell: Tell) -> Result:
    named = preflight.ask_target(target, options)
    preflight.ask_dtype(options["dtype"])
    place = preflight.ask_output(output, named.place, options["weights"])
    tell(f"loading {target}")
    with imported_for_good():
        from anyshape.conversion.preparation import prepare
        from anyshape.verbs.export import export as export_model

        prepare()
    with loaded_call(named, options) as (loaded, call):
        chosen = _arguments_from(options, EXPORT_OPTIONS, CHECK_OPTIONS) | said_twice(loaded, options)
        result = export_model(loaded.model, f=place, progress=tell, **call.arguments, **chosen)
    return replace(result, notes=(*_notes_on_weights(loaded, options), *result.notes))


def _notes_on_weights(loaded: LoadedTarget, options: Mapping[str, Any]) -> list[str]:
    """Random weights are a file's last use: nobody gets them without having been told, or having asked for them."""
    is_meant = options["weights"] is not None or options["seed"] is not None
    advice = "give --weights FILE, or --weights random where that is meant"
    return [f"RANDOM WEIGHTS: `{loaded.text}` loads none; {advice}"] if loaded.is_random and not is_meant else []


# ---- check


def check_file(model: str, target: str | None, options: Mapping[str, Any], tell: Tell) -> Result:
    named = preflight.ask_comparison(model, target, options)
    tell(f"checking {model}")
    from anyshape.verbs.check import check

    return _examine(check, model, named, options)


def report_file(model: str, target: str | None, output: str, options: Mapping[str, Any], tell: Tell) -> Report:
    named = preflight.ask_comparison(model, target, options)
    place, times = preflight.ask_report(output), preflight.ask_times(options["times"])
    tell(f"checking {model}")
    from anyshape.verbs.report import report

    return _examine(partial(report, out=place, run=options["run"], times=times), model, named, options)


def _examine(
    verb: Callable[..., _Examined], model: str, named: TargetText | None, options: Mapping[str, Any]
) -> _Examined:
    """A verb that compares a file with a model, or with itself; without a model, torch is not imported."""
    chosen = {**_arguments_from(options, CHECK_OPTIONS), "at": options["at"]}
    if named is None:
        said = {"sizes": options["sizes"] or None, "where": options["where"], "custom_ops": options["custom_ops"]}
        return verb(model, trusted=options["trusted"], **said, **chosen)
    path = Path(model).absolute()  # the target's code may change the current folder
    with loaded_call(named, options, ports_of(model)) as (loaded, call):
        said = {**call.arguments, **chosen, **said_twice(loaded, options)}
        try:
            return verb(path, model=loaded.model, **said)
        except ExportError as error:
            notes = (*_notes_on_weights(loaded, options), *error.result.notes)
            raise ExportError(replace(error.result, notes=notes)) from error


# ---- a page beside a result


def reported(work: Callable[[Tell], _Examined], page: str | None, *, trusted: bool) -> Callable[[Tell], _Examined]:
    """The same work, after which its result is written as a page, too; that of a refusal as well."""
    if page is None:
        return work

    def work_with_page(tell: Tell) -> _Examined:
        place = preflight.ask_report(page)
        try:
            found = work(tell)
        except ExportError as error:
            _write_page(error.result, place, tell, trusted=trusted)
            raise
        result: Any = getattr(found, "result", found)  # findings know theirs
        _write_page(result, place, tell, trusted=trusted)
        return found

    return work_with_page


def _write_page(result: Result, place: Path, tell: Tell, *, trusted: bool) -> None:
    from anyshape.results.report.assembly import assemble
    from anyshape.results.report.writing import write_report

    write_report(assemble(result, trusted=trusted), place)
    tell(f"wrote {place.name}")


# ---- bench


def bench_file(model: str, target: str | None, options: Mapping[str, Any], tell: Tell) -> Times:
    """Without a model, torch is not imported."""
    for file in (model, *options["against"]):
        preflight.ask_file(file)
    preflight.ask_declaration(options)
    named = None if target is None else preflight.ask_target(target, options)
    from anyshape.results.times import check_picture
    from anyshape.verbs.bench import bench

    output = None if options["output"] is None else check_picture(options["output"]).absolute()
    chosen = _arguments_from(options, _BENCH_OPTIONS) | {"sizes": options["sizes"] or None, "progress": tell}
    chosen["against"] = [Path(one).absolute() for one in options["against"]]
    chosen["providers"] = list(options["providers"]) or None
    if named is None:
        said = {"where": options["where"], "custom_ops": options["custom_ops"], "trusted": options["trusted"]}
        times = bench(model, **said, **chosen)
    else:
        path = Path(model).absolute()  # the target's code may change the current folder
        tell(f"loading {target}")
        with loaded_call(named, {**options, "sizes": {}}, ports_of(model)) as (loaded, call):
            where = loaded.where(options["where"], options["inputs"])
            called = {name: one for name, one in call.arguments.items() if name != "sizes"}
            times = bench(path, loaded.model, **called, **chosen, where=where, custom_ops=options["custom_ops"])
            times = replace(times, notes=(*_notes_on_weights(loaded, options), *times.notes))
    if output is not None:
        times.save(output)
    return times


def timed(times: Times) -> Ending:
    """A file that was timed nowhere, since it fails or is wrong, is told as `check` does."""
    code = DONE if any(point is not None for point in times.series[0].points) else SAYS_NO
    return Ending(code, str(times), times.to_dict())


# ---- diagnose, make-dynamic


def diagnose_target(target: str, options: Mapping[str, Any], tell: Tell) -> list[Finding]:
    named = preflight.ask_target(target, options)
    tell(f"loading {target}")
    with imported_for_good():
        from anyshape.conversion.preparation import prepare
        from anyshape.verbs.diagnose import diagnose as diagnose_model

        prepare()
    with loaded_call(named, options) as (loaded, call):
        where = loaded.where(options["where"], options["inputs"])
        return diagnose_model(loaded.model, progress=tell, seed=options["seed"] or 0, where=where, **call.arguments)


def free_file(model: str, output: str, options: Mapping[str, Any], tell: Tell) -> Result:
    """Without a model to check against, torch is not imported."""
    preflight.ask_file(model)
    place = preflight.ask_output(output)
    preflight.ask_declaration({"sizes": options["sizes"], "dims": options["dims"]})
    # these options are about the file, not about the model
    silent = {**options, "inputs": [], "dims": {}, "sizes": {}}
    named = None if options["target"] is None else preflight.ask_target(options["target"], silent)
    from anyshape.verbs.make_dynamic import make_dynamic

    dims = {**{one.name: one.axes for one in options["inputs"]}, **options["dims"]} or None
    chosen: dict[str, Any] = {"out": place, "sizes": options["sizes"] or None, "progress": tell}
    chosen |= _arguments_from(options, FREE_OPTIONS)
    if named is None:
        return make_dynamic(model, dims, trusted=options["trusted"], **chosen)
    path = Path(model).absolute()
    with loaded_call(named, silent, ports_of(model)) as (loaded, call):
        args, kwargs = call.first
        called = {"args": args, "kwargs": kwargs, "make_inputs": call.make_inputs}
        return make_dynamic(path, dims, model=loaded.model, **called, **chosen)


# ---- dims


def propose_dims(target: str, options: Mapping[str, Any], tell: Tell) -> ProposedDims:
    named = preflight.ask_target(target, options)
    tell(f"loading {target}")
    from anyshape.verbs.dims import propose_dims as find_dims

    with loaded_call(named, {**options, "dims": {}, "sizes": {}}) as (loaded, call):
        tell(f"probing {target}")
        called = {name: call.arguments[name] for name in ("args", "kwargs", "examples", "make_inputs")}
        return find_dims(loaded.model, **called)


# ---- the model and its call


@contextlib.contextmanager
def loaded_call(
    target: TargetText, options: Mapping[str, Any], ports: Sequence[Port] = ()
) -> Iterator[tuple[LoadedTarget, TargetCall]]:
    """What TARGET names, and the call that options, its file or the inputs of an ONNX file speak of."""
    with imported_for_good():
        from anyshape.cli.target_calls import call_of
        from anyshape.cli.targets import loaded_target

    inputs, seed = options["inputs"], options["seed"] or 0
    names = [one.name for one in inputs or ports]
    weights = None if options["weights"] == preflight.RANDOM else options["weights"]
    with loaded_target(target, inputs=names, weights=weights, seed=seed) as loaded:
        yield loaded, call_of(loaded, inputs, options["dims"], options["sizes"], seed, ports)


def said_twice(loaded: LoadedTarget, options: Mapping[str, Any]) -> dict[str, Any]:
    """What both the command line and the target's file may say, and what then adds up."""
    return {
        "custom_ops": loaded.custom_ops(options["custom_ops"]),
        "where": loaded.where(options["where"], options["inputs"]),
    }


def ports_of(model: str) -> Sequence[Port]:
    from anyshape.onnxfile.contract import read_contract
    from anyshape.onnxfile.interface import read_interface
    from anyshape.onnxfile.untrusted import load_checked

    proto = load_checked(model)
    contract = read_contract(proto)
    draws = contract.draws if contract is not None else {}  # of which a call knows nothing
    return [port for port in read_interface(proto).inputs if port.name not in draws]
