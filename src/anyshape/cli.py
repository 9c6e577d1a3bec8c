"""The command line: arguments in, text and exit code out. Nothing here decides anything about models.

torch is imported by the commands that need it, when they run: `--help` and `inspect` do without.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import click

import anyshape
from anyshape.commands.console import Tell, as_text, flush_c, perform
from anyshape.commands.endings import CHECK_SAYS_NO, DONE, INTERRUPTED, NOTHING_WRITTEN, USAGE, error_document
from anyshape.commands.options import (
    checking_options,
    debug_option,
    declaration_options,
    json_option,
    option,
    output_options,
    pairs,
    sizes_at,
)


def _example(*lines: str) -> str:
    return "\n".join(("\b", "Example:", *(f"  {line}" for line in lines)))


class Program(click.Group):
    """A group whose every ending has one of our exit codes, and a JSON document where one was asked for."""

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any) -> NoReturn:  # type: ignore[override]
        arguments = list(sys.argv[1:] if args is None else args)
        extra["standalone_mode"] = False
        try:
            code = super().main(arguments, prog_name or "anyshape", **extra)
        except click.ClickException as error:
            error.show()
            if "--json" in arguments:
                click.echo(as_text(error_document("usage", error.format_message())))
            code = USAGE
        except click.Abort:
            code = INTERRUPTED
        raise SystemExit(code if isinstance(code, int) else DONE)


@click.group(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=_example(
        "anyshape export model.py:Net -o model.onnx --input 'tokens: int64[batch, seq] < 1000' --size seq=1..512",
        "anyshape check model.onnx model.py:Net",
        "anyshape inspect model.onnx",
    )
    + """

\b
Exit codes: 0 done, 1 check says no, 2 wrong usage, 3 export wrote nothing, 4 a bug in anyshape.
Completion: eval "$(_ANYSHAPE_COMPLETE=bash_source anyshape)"   (or zsh_source, fish_source)""",
)
@click.version_option(anyshape.__version__, prog_name="anyshape", message="%(prog)s %(version)s")
def program() -> None:
    """PyTorch models to ONNX files that serve every size you declare, checked before they are written."""


def _one_tier(options: Mapping[str, Any]) -> None:
    if options["quick"] and options["thorough"]:
        raise click.UsageError("--quick and --thorough exclude each other")


# ---- commands


@program.command(
    epilog=_example(
        "anyshape export model.py:Net -o model.onnx --input 'tokens: int64[batch, seq] < 1000' --size seq=1..512"
    )
)
@click.argument("target", type=click.Path())
@option("-o --output", "The ONNX file to write.", "FILE", required=True, type=click.Path())
@declaration_options
@option("--opset", "The opset to write; by default the newest that the runtime takes.", "N", type=int)
@option("--target runtime", "The oldest runtime to serve, such as onnxruntime==1.18.", "RUNTIME")
@option("--narrow", "Write the widest declaration that is right, where all of it is not.", is_flag=True)
@option("--unchecked", "An operator that the runtime lacks: write the file unchecked.", "DOMAIN::OP", multiple=True)
@option("--dtype", "Convert the model to this type, such as float16.", "DTYPE")
@option("--metadata", "An entry for the file's metadata.", "KEY=VALUE", multiple=True, callback=pairs)
@option("--external-data/--no-external-data", "Weights beside the file; by default where they are large.", default=None)
@checking_options
@output_options
def export(target: str, output: str, *, as_json: bool, debug: bool, quiet: bool, **options: Any) -> int:
    """Convert a model to an ONNX file that is right at every declared size, or write nothing.

    TARGET is FILE.py:NAME or package.module:NAME[.method]: a module, a class, or a function that returns one. A
    function that needs arguments is exported itself. Beside it may stand `inputs` (a call, or a function that makes
    one of any sizes), `dims`, `sizes` and `custom_ops`.
    """
    _one_tier(options)

    def work(tell: Tell) -> tuple[str, dict[str, Any]]:
        return _export(target, output, options, tell)

    return perform(work, refusal=NOTHING_WRITTEN, as_json=as_json, debug=debug, quiet=quiet)


_EXPORT_OPTIONS = {
    "opset_version": "opset", "target": "runtime", "narrow": "narrow", "unchecked": "unchecked", "dtype": "dtype",
    "metadata": "metadata", "external_data": "external_data",
}  # fmt: skip
_CHECK_OPTIONS = {name: name for name in ("atol", "rtol", "budget", "quick", "thorough", "seed")}


def _chosen(options: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The library's name of each option -> its value."""
    return {name: options[option] for name, option in names.items()}


def _export(target: str, output: str, options: Mapping[str, Any], tell: Tell) -> tuple[str, dict[str, Any]]:
    tell(f"loading {target}")
    from anyshape.commands.calls import call_of
    from anyshape.commands.targets import loaded
    from anyshape.pipeline import export as export_model

    inputs, seed = options["inputs"], options["seed"]
    names = [one.name for one in inputs]
    with loaded(target, inputs=names, weights=options["weights"], seed=seed) as subject:
        call = call_of(subject, inputs, options["dims"], options["sizes"], seed)
        chosen = _chosen(options, {**_EXPORT_OPTIONS, **_CHECK_OPTIONS})
        chosen["custom_ops"] = subject.custom_ops(options["custom_ops"])
        result = export_model(subject.model, f=output, progress=tell, **call.arguments, **chosen)
        return str(result), result.to_dict()


@program.command(
    epilog=_example(
        "anyshape check model.onnx model.py:Net --weights state.pt", "anyshape check model.onnx --size seq=1..512"
    )
)
@click.argument("model", type=click.Path())
@click.argument("target", type=click.Path(), required=False)
@declaration_options
@option("--at", "Check at one size only.", "batch=1,seq=1", callback=sizes_at)
@checking_options
@output_options
def check(model: str, target: str | None, *, as_json: bool, debug: bool, quiet: bool, **options: Any) -> int:
    """Verify an existing ONNX file, by whomever, at sizes of our own choosing.

    With TARGET (see `anyshape export --help`) its values are compared with the model's. Without, it is run at many
    sizes and held to the shapes that it declares; that needs no PyTorch.
    """
    _one_tier(options)
    if target is None:
        _refuse_without_target(options)

    def work(tell: Tell) -> tuple[str, dict[str, Any]]:
        tell(f"checking {model}")
        return _check_alone(model, options) if target is None else _check_against(model, target, options)

    return perform(work, refusal=CHECK_SAYS_NO, as_json=as_json, debug=debug, quiet=quiet)


_ABOUT_THE_MODEL = {"inputs": "--input", "dims": "--dim", "weights": "--weights", "atol": "--atol", "rtol": "--rtol"}


def _refuse_without_target(options: Mapping[str, Any]) -> None:
    for name, written in _ABOUT_THE_MODEL.items():
        if options[name] not in (None, [], {}):
            raise click.UsageError(f"{written} is about the model: give TARGET, too")


def _check_alone(model: str, options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    from anyshape.existing import check as check_file

    chosen = _chosen(options, {**_CHECK_OPTIONS, "at": "at"})
    result = check_file(model, sizes=options["sizes"] or None, custom_ops=options["custom_ops"], **chosen)
    return str(result), result.to_dict()


def _check_against(model: str, target: str, options: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    from anyshape.commands.calls import call_of
    from anyshape.commands.targets import loaded
    from anyshape.existing import check as check_file
    from anyshape.onnxfile.interface import read_interface
    from anyshape.onnxfile.loading import load_checked

    ports = read_interface(load_checked(model)).inputs
    inputs, seed = options["inputs"], options["seed"]
    names = [one.name for one in inputs] or [port.name for port in ports]
    with loaded(target, inputs=names, weights=options["weights"], seed=seed) as subject:
        call = call_of(subject, inputs, options["dims"], options["sizes"], seed, ports)
        chosen = _chosen(options, {**_CHECK_OPTIONS, "at": "at"})
        chosen["custom_ops"] = subject.custom_ops(options["custom_ops"])
        result = check_file(model, subject.model, **call.arguments, **chosen)
        return str(result), result.to_dict()


@program.command(epilog=_example("anyshape inspect model.onnx --json"))
@click.argument("model", type=click.Path())
@json_option
@debug_option
def inspect(model: str, *, as_json: bool, debug: bool) -> int:
    """Show what stands in an ONNX file: dims, contract, formulas of the outputs, and what is baked in."""

    def work(_tell: Tell) -> tuple[str, dict[str, Any]]:
        found = anyshape.inspect(model)
        return str(found), found.to_dict()

    return perform(work, refusal=CHECK_SAYS_NO, as_json=as_json, debug=debug, quiet=True)


def main() -> NoReturn:
    """The console script; whatever is printed after the result goes to stderr."""
    with contextlib.suppress(AttributeError, ValueError):
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        program.main()
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            flush_c()
            os.dup2(2, 1)
