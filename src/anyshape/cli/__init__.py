"""The command line: arguments in, text and exit code out. Nothing here decides anything about models.

Each command is a call of a verb: `tasks.py` makes its arguments of the options, `console.py` runs it and prints how it
ended. torch is imported by the commands that need it, when they run: `--help`, `explain` and `inspect` do without.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

import click

import anyshape
from anyshape.cli import options as shared
from anyshape.cli import tasks
from anyshape.cli.console import Tell, as_text, flush_c, perform
from anyshape.cli.debug_report import versions_text
from anyshape.cli.endings import DONE, INTERRUPTED, NOTHING_WRITTEN, SAYS_NO, USAGE, Ending, error_document
from anyshape.cli.leaving import Leaving
from anyshape.cli.options import option
from anyshape.cli.preflight import ask_file
from anyshape.fleet.option_sets import WORKERS


def _example(*lines: str) -> str:
    return "\n".join(("\b", "Example:", *(f"  {line}" for line in lines)))


def _print_versions(context: click.Context, _parameter: click.Parameter, is_wanted: bool) -> None:
    if is_wanted:
        click.echo(versions_text())
        context.exit()


class Program(click.Group):
    """A group whose every ending has one of our exit codes, and a JSON document where one was asked for."""

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any) -> NoReturn:  # type: ignore[override]
        arguments = list(sys.argv[1:] if args is None else args)
        extra["obj"] = arguments  # for a debug report
        extra["standalone_mode"] = False  # else click prints and exits by itself, with a code of its own
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
        "anyshape diagnose model.py:Net --write",
        "anyshape dims model.py:Net",
        "anyshape make-dynamic static.onnx -o dynamic.onnx --input 'x: [batch, 3, 224, 224]'",
        "anyshape inspect model.onnx",
        "anyshape report model.onnx -o report.html",
        "anyshape bench model.onnx model.py:Net --size seq=16,64,256",
        "anyshape sweep zoo.py -o results/",
    )
    + """

\b
Exit codes: 0 done, 1 check, diagnose or compare says no, 2 wrong usage, 3 nothing was written, 4 a bug in anyshape.
Completion: eval "$(_ANYSHAPE_COMPLETE=bash_source anyshape)"   (or zsh_source, fish_source)""",
)
@click.version_option(anyshape.__version__, prog_name="anyshape", message="%(prog)s %(version)s")
@option(
    "--debug-report",
    "Print versions for a bug report; behind a command, `--debug-report FILE` writes what it did, too.",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_print_versions,
)
def program() -> None:
    """PyTorch models to ONNX files that serve every size you declare, checked before they are written."""


def _command(*examples: str, name: str | None = None) -> Callable[[Callable[..., int]], click.Command]:
    """A command of the program, with examples below its help."""
    return program.command(name=name, epilog=_example(*examples))


def _refuse_two_tiers(options: Mapping[str, Any]) -> None:
    if options["quick"] and options["thorough"]:
        raise click.UsageError("--quick and --thorough exclude each other")


# ---- commands


@_command(
    "anyshape export model.py:Net -o model.onnx --input 'tokens: int64[batch, seq] < 1000' --size seq=1..512",
    "anyshape export ./checkpoint -o onnx/ --dtype float16",
)
@click.argument("target", type=click.Path())
@option(
    "-o --output", "The ONNX file to write; for a checkpoint, the folder.", "FILE", required=True, type=click.Path()
)
@shared.declaration_options
@option("--task", "What a checkpoint is for, where its config does not tell, such as fill-mask.", "TASK")
@option("--layout", "Names and places of a checkpoint's files; optimum's by default.", "optimum|transformers.js")
@option("--trust-remote-code", "Run Python code that a checkpoint brings along.", is_flag=True)
@option("--opset", "The opset to write; 20 by default.", "N", type=int)
@option("--target runtime", "The oldest runtime to serve, such as onnxruntime==1.18; chooses the opset.", "RUNTIME")
@option("--narrow", "Write the widest declaration that is right, where all of it is not.", is_flag=True)
@option("--repair", "With `edits`: convert with the safe edits of findings, in memory alone.", "edits")
@option("--random", "Of a model that draws random numbers: make them inputs, or check shapes alone.", "inputs|shapes")
@option("--unchecked", "An operator that the runtime lacks: write the file unchecked.", "DOMAIN::OP", multiple=True)
@option("--dtype", "Convert the model to this type, such as float16.", "DTYPE")
@option("--optimize/--no-optimize", "Rewrite the graph to run faster.", default=True, show_default=True)
@shared.pairs_option("--metadata", "An entry for the file's metadata.", "KEY=VALUE")
@option("--external-data/--no-external-data", "Weights beside the file; by default where they are large.", default=None)
@shared.checking_options
@shared.report_option
@shared.output_options
def export(target: str, output: str, *, as_json: bool, debug: bool, quiet: bool, **options: Any) -> int:
    """Convert a model to an ONNX file that is right at every declared size, or write nothing.

    TARGET is FILE.py:NAME or package.module:NAME[.method]: a module, a class, or a function that returns one, with
    arguments where it needs some: 'model.py:Net(4, depth=2)', literals alone. A function whose arguments are not
    given is exported itself. Beside it may stand `inputs` (a call, or a function that makes
    one of any sizes), `dims`, `sizes` and `custom_ops`.

    Or the folder of a transformers checkpoint, or of an adapter: every file of its model is written to the folder -o.
    """
    _refuse_two_tiers(options)
    task = tasks.export_folder if tasks.is_folder(target, options) else tasks.export_target
    work = tasks.reported(partial(task, target, output, options), options["report"], trusted=True)
    return perform(work, refusal=NOTHING_WRITTEN, as_json=as_json, debug=debug, quiet=quiet)


@_command(
    "anyshape check model.onnx model.py:Net --weights state.pt",
    "anyshape check model.onnx --size seq=1..512",
    "anyshape check model.onnx model.py:Net --grid --share 0.1",
)
@click.argument("model", type=click.Path())
@click.argument("target", type=click.Path(), required=False)
@shared.declaration_options
@option("--at", "Check at one size only.", "batch=1,seq=1", callback=shared.sizes_at)
@option("--grid", "Check at every declared size, in many processes.", is_flag=True)
@option("--share", "With --grid: at so much of them, such as 0.1.", "SHARE", type=click.FloatRange(0, 1, min_open=True))
@shared.engine_options
@shared.checking_options
@shared.trusted_option
@shared.report_option
@shared.output_options
def check(model: str, target: str | None, *, as_json: bool, debug: bool, quiet: bool, **options: Any) -> int:
    """Verify an existing ONNX file, by whomever, at sizes of our own choosing.

    With TARGET (see `anyshape export --help`) its values are compared with the model's. Without, it is run at many
    sizes and held to the shapes that it declares; that needs no PyTorch.
    """
    _refuse_two_tiers(options)
    if target is None:
        _refuse_without_target(options)
    if options["grid"]:
        return _check_grid(model, target, {**options, "quiet": quiet}, as_json=as_json, debug=debug)
    if options["share"] is not None or options["jobs"] or options["address"] or options["engine"] != "local":
        raise click.UsageError("--share, --engine, --address and --jobs are about --grid: give it, too")
    trusted = options["trusted"] or target is not None
    work = tasks.reported(partial(tasks.check_file, model, target, options), options["report"], trusted=trusted)
    return perform(work, refusal=SAYS_NO, as_json=as_json, debug=debug, quiet=quiet)


def _check_grid(model: str, target: str | None, options: Mapping[str, Any], *, as_json: bool, debug: bool) -> int:
    if options["at"] is not None:
        raise click.UsageError("--at is one size, and --grid is all of them")

    def work(_tell: Tell) -> Any:
        from anyshape.cli.grids import check_grid

        return check_grid(model, target, options)

    def conclude(found: Any) -> Ending:
        return Ending(DONE if found.is_right else SAYS_NO, str(found), found.to_dict())

    return perform(work, conclude=conclude, refusal=SAYS_NO, as_json=as_json, debug=debug, quiet=True)


_ABOUT_THE_MODEL = {"inputs": "--input", "dims": "--dim", "weights": "--weights", "atol": "--atol", "rtol": "--rtol"}


def _refuse_without_target(options: Mapping[str, Any]) -> None:
    for name, written in _ABOUT_THE_MODEL.items():
        if options[name] not in (None, [], {}):
            raise click.UsageError(f"{written} is about the model: give TARGET, too")


@_command(
    "anyshape report model.onnx -o report.html",
    "anyshape report model.onnx model.py:Net -o report.html --size seq=1..512",
)
@click.argument("model", type=click.Path())
@click.argument("target", type=click.Path(), required=False)
@option("-o --output", "The page to write, .html; or its data, .json.", "FILE", required=True, type=click.Path())
@shared.declaration_options
@option("--at", "Check at one size only.", "batch=1,seq=1", callback=shared.sizes_at)
@option("--run/--no-run", "Run the file; without, the page says that no runs are recorded.", default=True)
@option("--times", "What `anyshape bench --json` printed, for the section about time.", "FILE", type=click.Path())
@shared.checking_options
@shared.trusted_option
@shared.output_options
def report(
    model: str, target: str | None, output: str, *, as_json: bool, debug: bool, quiet: bool, **options: Any
) -> int:
    """Write one page to look at: verdict, map of sizes, findings, shapes and costs at any size, graph.

    The file is checked as by `anyshape check`, and the page is written whether it is right or wrong. It is one file
    that needs no network.
    """
    _refuse_two_tiers(options)
    if target is None:
        _refuse_without_target(options)
    work = partial(tasks.report_file, model, target, output, options)
    return perform(work, refusal=SAYS_NO, as_json=as_json, debug=debug, quiet=quiet)


@_command("anyshape diagnose model.py:Net --input 'tokens: int64[batch, seq] < 1000' --write --unsafe")
@click.argument("target", type=click.Path())
@shared.declaration_options
@shared.seed_option
@option("--write", "Write the edits that do not change what the code means into the files.", is_flag=True)
@option("--unsafe", "With --write: also those that may change it.", is_flag=True)
@option("--interactive", "Show each finding, and ask before its edit is written.", is_flag=True)
@option("--concise", "One line per finding.", is_flag=True)
@shared.report_option
@shared.output_options
def diagnose(target: str, *, as_json: bool, debug: bool, quiet: bool, concise: bool, **options: Any) -> int:
    """Name the lines for which declared dims cannot vary, and offer edits that were tried.

    TARGET is as for `anyshape export`. Nothing is exported, and no file is changed unless --write or --interactive
    asks for it.
    """
    from anyshape.cli.diagnoses import EditWishes, conclude

    wishes = EditWishes(options["write"], options["unsafe"], options["interactive"])
    wishes.refuse_what_cannot_be(as_json=as_json)
    if concise and as_json:
        raise click.UsageError("--concise and --json exclude each other")
    work = tasks.reported(partial(tasks.diagnose_target, target, options), options["report"], trusted=True)
    ending = partial(conclude, wishes=wishes, concise=concise)
    return perform(work, conclude=ending, refusal=SAYS_NO, as_json=as_json, debug=debug, quiet=quiet)


@_command("anyshape dims model.py:Net", "anyshape dims model.py:Net --input 'tokens: int64[2, 16] < 1000' --json")
@click.argument("target", type=click.Path())
@shared.example_options
@shared.seed_option
@shared.output_options
def dims(target: str, *, as_json: bool, debug: bool, quiet: bool, **options: Any) -> int:
    """Find the dims that a model lets vary, from one call, and print them ready to paste.

    TARGET is as for `anyshape export`. The model is run in PyTorch at small sizes; nothing is exported. Beside TARGET
    may stand `inputs` or `examples`; a Lightning module's `example_input_array` is a call, too.
    """
    work = partial(tasks.propose_dims, target, options)
    return perform(work, refusal=SAYS_NO, as_json=as_json, debug=debug, quiet=quiet)


@_command(
    "anyshape make-dynamic static.onnx -o dynamic.onnx --input 'x: [batch, 3, 224, 224]'",
    "anyshape make-dynamic bert.onnx -o bert.onnx --dim '*=batch seq' --size seq=1..512",
    name="make-dynamic",
)
@click.argument("model", type=click.Path())
@option("-o --output", "The ONNX file to write; it may be the same file.", "FILE", required=True, type=click.Path())
@shared.freeing_options
@shared.budget_options
@shared.seed_option
@shared.trusted_option
@shared.report_option
@shared.output_options
def make_dynamic(model: str, output: str, *, as_json: bool, debug: bool, quiet: bool, **options: Any) -> int:
    """Make a static ONNX file serve other sizes, checked against the file itself, or write nothing.

    Without --input, the batch on axis 0 is freed. No PyTorch is needed, unless --model gives a model to check against.
    """
    _refuse_two_tiers(options)
    if options["weights"] is not None and options["target"] is None:
        raise click.UsageError("--weights is about the model: give --model, too")
    trusted = options["trusted"] or options["target"] is not None
    work = tasks.reported(partial(tasks.free_file, model, output, options), options["report"], trusted=trusted)
    return perform(work, refusal=NOTHING_WRITTEN, as_json=as_json, debug=debug, quiet=quiet)


@_command(
    "anyshape bench model.onnx --size seq=16,64,256 --threads 1",
    "anyshape bench model.onnx model.py:Net --weights state.pt --against other.onnx -o times.svg",
)
@click.argument("model", type=click.Path())
@click.argument("target", type=click.Path(), required=False)
@option("--against", "Another file for the same inputs, timed beside it.", "FILE", multiple=True, type=click.Path())
@shared.timing_options
@shared.declaration_options
@shared.comparing_options
@option("-o --output", "Write a picture (.svg, .png) or the figures (.json), too.", "FILE", type=click.Path())
@shared.trusted_option
@shared.output_options
def bench(model: str, target: str | None, *, as_json: bool, debug: bool, quiet: bool, **options: Any) -> int:
    """Time an ONNX file over sizes in ONNX Runtime, and measure its memory.

    With TARGET (see `anyshape export --help`) PyTorch runs beside it, in eager and compiled. What gives other numbers
    is told and not timed. --size says which sizes are timed; without, a few inside of the file's contract are.
    """
    if target is None:
        _refuse_without_target({**options, "atol": None, "rtol": None})
    work = partial(tasks.bench_file, model, target, options)
    return perform(work, conclude=tasks.timed, refusal=SAYS_NO, as_json=as_json, debug=debug, quiet=quiet)


@_command("anyshape explain pinned-dim", "anyshape explain")
@click.argument("rule", required=False)
@shared.json_option
@shared.debug_option
def explain(rule: str | None, *, as_json: bool, debug: bool) -> int:
    """Print what a rule such as `pinned-dim` means and what to do; without RULE, list all rules."""

    def work(_tell: Tell) -> Any:
        from anyshape.verbs.explain import explain

        return explain(rule)

    return perform(work, refusal=SAYS_NO, as_json=as_json, debug=debug, quiet=True)


@_command("anyshape inspect model.onnx --json")
@click.argument("model", type=click.Path())
@shared.json_option
@shared.debug_option
def inspect(model: str, *, as_json: bool, debug: bool) -> int:
    """Show what stands in an ONNX file: dims, contract, formulas of the outputs, and what is baked in."""

    def work(_tell: Tell) -> Any:
        ask_file(model)
        return anyshape.inspect(model)

    return perform(work, refusal=SAYS_NO, as_json=as_json, debug=debug, quiet=True)


# ---- many models


class Sweep(click.Group):
    """`sweep COLLECTION` beside `sweep merge` and `sweep compare`: what is no command is a collection."""

    def resolve_command(
        self, context: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = args and args[0] in self.commands
        return super().resolve_command(context, args if known else ["run", *args])

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Options may stand before the collection, as everywhere."""
        wants_help = not args or (args[0] in ("-h", "--help") and len(args) == 1)
        return super().parse_args(context, args if wants_help or args[0] in self.commands else ["run", *args])


@program.group(
    cls=Sweep,
    epilog=_example(
        "anyshape sweep zoo.py -o results/ --by anyshape --by torch",
        "anyshape sweep zoo.yaml -o results/ --resume --shard 3/8",
        "anyshape sweep merge shards/* -o all/",
        "anyshape sweep compare yesterday/ today/",
    ),
)
def sweep() -> None:
    """Many models, each in a process of its own: what exports, what is wrong, what has become slower.

    COLLECTION is a Python file whose `models()` yields entries, a folder of checkpoints or of .onnx files, or a YAML
    list of these. `anyshape sweep run --help` tells its options; `run` may be left out.
    """


@sweep.command(name="run", epilog=_example("anyshape sweep zoo.py -o results/ --column half=dtype=float16"))
@click.argument("collection", type=click.Path())
@option("-o --output", "The folder of results.", "DIR", required=True, type=click.Path())
@option("--by", "A column: an exporter, or what is done with .onnx files.", multiple=True, type=click.Choice(WORKERS))
@shared.pairs_option(
    "--column columns", "A column with options: half=dtype=float16,opset_version=18; by=torch chooses.", "NAME=OPTIONS"
)
@option("--resume", "Go on with the results that are there.", is_flag=True)
@option("--again", "With --resume: run again what ended so, such as timeout.", "OUTCOME", multiple=True)
@option("--only", "Run what this regular expression finds in a name or a tag.", "PATTERN")
@option("--shard", "One part of N, by the names of entries.", "i/N")
@option("--keep", "Keep the exported files, too.", is_flag=True)
@shared.engine_options
@shared.limit_options
@shared.output_options
def sweep_run(collection: str, output: str, *, as_json: bool, debug: bool, **options: Any) -> int:
    """Run every entry of COLLECTION in every column, and write a line for each as it ends."""

    def work(_tell: Tell) -> Any:
        from anyshape.cli.sweeps import sweep_collection

        return sweep_collection(collection, output, options)

    return perform(work, refusal=NOTHING_WRITTEN, as_json=as_json, debug=debug, quiet=True)


@sweep.command(epilog=_example("anyshape sweep merge shards/* -o all/"))
@click.argument("results", nargs=-1, required=True, type=click.Path())
@option("-o --output", "The folder of all results.", "DIR", required=True, type=click.Path())
@shared.json_option
@shared.debug_option
def merge(results: tuple[str, ...], output: str, *, as_json: bool, debug: bool) -> int:
    """Put the results of several folders or files into one; of two for one entry the later one counts."""

    def work(_tell: Tell) -> Any:
        from anyshape.cli.sweeps import merge_results

        return merge_results(results, output)

    return perform(work, refusal=NOTHING_WRITTEN, as_json=as_json, debug=debug, quiet=True)


@sweep.command(epilog=_example("anyshape sweep compare yesterday/ today/"))
@click.argument("old", type=click.Path())
@click.argument("new", type=click.Path())
@shared.json_option
@shared.debug_option
def compare(old: str, new: str, *, as_json: bool, debug: bool) -> int:
    """What is better, worse, slower or gone in NEW; exit code 1 on a regression."""

    def work(_tell: Tell) -> Any:
        from anyshape.cli.sweeps import compare_results

        return compare_results(old, new)

    def conclude(found: Any) -> Ending:
        return Ending(SAYS_NO if found.is_regression else DONE, str(found), found.to_dict())

    return perform(work, conclude=conclude, refusal=SAYS_NO, as_json=as_json, debug=debug, quiet=True)


def _open_what_is_closed() -> None:
    """A stream that was closed before we began is no stream at all, and its number would be the next file's."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    for name, number in (("stdout", 1), ("stderr", 2)):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w", errors="backslashreplace", closefd=False))


def main() -> NoReturn:
    """The console script; whatever is printed after the result goes to stderr."""
    _open_what_is_closed()
    with contextlib.suppress(AttributeError, ValueError):
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    leaving = Leaving()
    try:
        program.main()
    except SystemExit as end:
        leaving.code = end.code
        raise
    finally:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            flush_c()
            os.dup2(2, 1)  # what a model has registered with atexit still prints, and the result is to be alone
