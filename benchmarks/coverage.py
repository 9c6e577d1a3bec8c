"""Coverage: how many real models with all natural dims dynamic does an exporter get right?

Three exporters, one table: anyshape, `torch.onnx.export(dynamo=True)` and `torch.onnx.export(dynamo=False)`. Every file
is judged in ONNX Runtime against PyTorch at sizes that no exporter chose. Random weights, nothing is downloaded.

Run: python benchmarks/coverage.py [--only PATTERN] [--source nn|db|hf|timm] [--exporter NAME] [--jobs N] [--fresh]
Results are kept in benchmarks/coverage.json after each entry; a second run goes on where the first stopped.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from coverage_models import SOURCES, load
from coverage_models.pool import Limits, Pool, Task
from coverage_models.results import Results, versions
from coverage_models.tables import show_shortfalls, show_totals

EXPORTERS = ("anyshape", "dynamo", "torchscript")
KEPT = Path(__file__).with_name("coverage.json")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", metavar="PATTERN", default="", help="entries whose name holds this regular expression"
    )
    parser.add_argument("--source", action="append", choices=list(SOURCES), help="may be given several times")
    parser.add_argument("--exporter", action="append", choices=[*EXPORTERS, "eager"],
                        help="may be given several times; `eager` only runs the entries in PyTorch")  # fmt: skip
    parser.add_argument("--outcome", action="append", help="run again what ended so, for instance refused or wrong")
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    parser.add_argument("--seconds", type=float, default=300.0, help="for one export")
    parser.add_argument("--gigabytes", type=int, default=12, help="for one worker")
    parser.add_argument("--fresh", action="store_true", help="forget earlier results of what is run")
    parser.add_argument("--results", type=Path, default=KEPT, metavar="FILE")
    parser.add_argument("--show", action="store_true", help="run nothing, show what is kept")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    sources = options.source or list(SOURCES)
    exporters = options.exporter or list(EXPORTERS)
    names = {name: s for s in sources for name in load(s) if re.search(options.only, name)}
    tasks = [Task(source, name, exporter) for name, source in names.items() for exporter in exporters]
    results = Results(options.results, keep="eager" not in exporters)
    if options.fresh:
        results.forget((task.name, task.exporter) for task in tasks)
    if not options.show:
        outcomes = ("defect", *(options.outcome or ()))
        todo = [task for task in tasks if results.outcome(task.name, task.exporter) in (None, *outcomes)]
        run(todo, results, options)
    console = Console()
    chosen = {name: results.entry(name) for name in names}
    show_totals(console, chosen, exporters)
    show_shortfalls(console, chosen, exporters)
    console.print(versions(), style="dim")


def run(tasks: list[Task], results: Results, options: argparse.Namespace) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task("starting", total=len(tasks))
        pool = Pool(options.jobs, Limits(options.seconds, options.gigabytes))
        for task, record in pool.run(tasks):
            results.put(task.name, task.exporter, record)
            progress.update(bar, advance=1, description=f"{task.name} by {task.exporter}: {record['outcome']}")


if __name__ == "__main__":
    main()
