"""The tables of docs/performance.md, made of what the benchmarks keep, each with its day, versions and commit.

Run: python benchmarks/performance_tables.py   (figures that are older than the code as it stands)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import exp, log
from statistics import mean

from figures import FOLDER, Row, code_of, read
from goals import GOALS, span

EXPORTS = "export_time"


def _table(heads: Sequence[str], rows: Iterable[Iterable[str]], told: str) -> str:
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|", *(f"| {' | '.join(row)} |" for row in rows)]
    return "\n".join([*lines, "", told]) + "\n"


# ---- goals


def goals() -> str:
    """What is met, and by what the others are missed."""
    rows = []
    for goal in GOALS:
        found = goal.found
        rows.append((goal.text, f"{goal.most:.2f}", span(found), goal.verdict(found)))
    return _table(("goal", "at most", "found", ""), rows, "Computed from the figures of the tables below.")


# ---- exports


def in_short() -> str:
    """One table of the others: some models, and the time of their files beside that of torch's."""
    kept, files = read(EXPORTS), read("inference").table("1 thread")
    subjects = {"linear": "", "encoder 12": "encoder ", "encoder 48": "", "residual 24": "", "resnet18": "resnet18 ",
                "bert 4": "bert ", "llama 2": "llama "}  # fmt: skip
    rows = []
    for name, model in subjects.items():
        if row := kept.table("exports").get(name):
            ratios = [one["ratios"]["anyshape"] / one["ratios"]["dynamo"] for key, one in files.items()
                      if model and key.startswith(model) and not key.startswith(f"{model}cache")]  # fmt: skip
            shares = (row["whole"] - row["check"]) / row["torch"], row["whole"] / row["torch"]
            file = span({str(index): one for index, one in enumerate(ratios)})
            rows.append((name, f"{shares[0]:.2f}", f"{shares[1]:.2f}", str(row["sizes"]), file))
    heads = ("model", "convert / torch", "with the check / torch", "sizes checked", "file / torch's file")
    return _table(heads, rows, "From the tables below, where it stands when they were measured.")


def exports() -> str:
    kept, rows = read(EXPORTS), []
    for name, row in kept.table("exports").items():
        convert = row["whole"] - row["check"]
        seconds = [f"{one:.2f} s" for one in (row["trace"], row["torch"], convert, row["check"])]
        shares = [f"{one:.2f}" for one in (convert / row["trace"], convert / row["torch"], row["whole"] / row["torch"])]
        rows.append((f"{name}{' (taken apart)' if row['forced_by'] else ''}", *seconds, *shares, str(row["sizes"])))
    heads = ("model", "trace", "torch", "convert", "check", "convert / trace", "convert / torch", "whole / torch",
             "sizes run")  # fmt: skip
    return _table(heads, rows, kept.measured("exports"))


def new_processes() -> str:
    """What a process does first, and whole processes."""
    parts = []
    for benchmark, table, head in (
        (EXPORTS, "new processes", "after the import of torch"), ("first_export", "programs", "whole process"),
    ):  # fmt: skip
        kept = read(benchmark)
        if found := kept.table(table):
            rows = [(name, f"{row['seconds']:.2f} s") for name, row in found.items()]
            parts.append(_table((head, "CPU time"), rows, kept.measured(table)))
    return "\n".join(parts)


def growth() -> str:
    kept = read("scaling")
    ours, theirs, rows = kept.table("anyshape"), kept.table("torch"), []
    for key, row in ours.items():
        cells = [f"{row['nodes']:,}", f"{row['convert']:.2f} s", f"{row['check']:.2f} s", f"{row['memory']:.0f} MiB"]
        peer = theirs.get(key)
        shown = ["", "", ""] if peer is None else [
            f"{peer['convert']:.2f} s", f"{peer['memory']:.0f} MiB", f"{peer['convert'] / row['convert']:.1f}"
        ]  # fmt: skip
        rows.append([*cells, *shown])
    (first, last) = list(ours.values())[-2:]
    power = log(last["convert"] / first["convert"]) / log(last["nodes"] / first["nodes"])
    told = (
        f"{kept.measured('anyshape')} Conversion grows with nodes<sup>{power:.2f}</sup> from {first['nodes']:,} to "
        f"{last['nodes']:,}."
    )
    return _table(("nodes", "convert", "check", "memory", "torch", "its memory", "torch / convert"), rows, told)


# ---- files

_SHOWN = {
    "anyshape": "anyshape", "anyshape+sizes": "sizes", "dynamo": "dynamo", "script": "TorchScript",
    "dynamo+slim": "dynamo + onnxslim", "script+slim": "TorchScript + onnxslim",
    "dynamo+transformers": "dynamo + ORT transformers", "dynamo+for_ort": "dynamo + optimize_for_ort",
    "eager": "eager", "compile": "compile",
}  # fmt: skip
"""A file of the benchmark, and its column."""


def files(threads: str) -> str:
    kept, rows = read("inference"), []
    names = [name for name in _SHOWN if any(name in row["ratios"] for row in kept.table(threads).values())]
    for key, row in kept.table(threads).items():
        cells = [f"{row['ratios'][name]:.2f}" if name in row["ratios"] else "-" for name in names]
        rows.append((key, f"{row['static']:.3f}", f"**{cells[0]}**", *cells[1:], f"{row['best']:.2f}"))
    heads = ("model, sizes", "static ms", *(_SHOWN[name] for name in names), "ours / best")
    return _table(heads, rows, kept.measured(threads))


def means() -> str:
    """Ours in units of others over all sizes, as geometric means."""
    kept = read("inference")
    peers = {
        "the static file": "static",
        "torch's dynamic file": "dynamo",
        "eager": "eager",
        "`torch.compile`": "compile",
    }
    rows = [
        (text, *(f"{_mean(kept.table(threads), peer):.2f}" for threads in ("1 thread", "2 threads")))
        for text, peer in peers.items()
    ]
    return _table(("ours in units of", "one thread", "two threads"), rows, "Of the two tables above.")


def _mean(rows: Mapping[str, Row], peer: str) -> float:
    shares = [row["ratios"]["anyshape"] / row["ratios"].get(peer, 1.0 if peer == "static" else 0.0)
              for row in rows.values() if peer == "static" or peer in row["ratios"]]  # fmt: skip
    return exp(mean(map(log, shares)))


def nodes() -> str:
    kept, rows = read("inference"), []
    names = ["static", *(name for name in _SHOWN if any(name in row for row in kept.table("nodes").values()))]
    for model, row in kept.table("nodes").items():
        dynamic = [row[name] for name in names[1:] if name in row]
        fewest = min(dynamic) if min(dynamic) < max(dynamic) else None
        cells = ["-" if name not in row else str(row[name]) for name in names]
        rows.append(
            [model, *(f"**{one}**" if one == str(fewest) and index else one for index, one in enumerate(cells))]
        )
    heads = ("nodes", "static", *(_SHOWN[name] for name in names[1:]))
    return _table(heads, rows, kept.measured("nodes"))


def default_form() -> str:
    kept = read("forms")
    rows = [
        (
            key,
            f"{row['newest']:.3f}",
            f"{row['default']:.2f}",
            f"{row['again']:.2f}",
            " / ".join(map(str, row["nodes"])),
        )
        for key, row in kept.table("forms").items()
    ]
    heads = ("model, sizes", "newest ms", "default", "again", "nodes: default / newest")
    return _table(heads, rows, kept.measured("forms"))


def resizing() -> str:
    kept = read("resizing")
    found = kept.table("operators")
    sizes = [name for name in next(iter(found.values())) if name != "run"]
    rows = [(operator, *(f"{row[size]:.2f}" for size in sizes)) for operator, row in found.items()]
    return _table(("operator", *sizes), rows, kept.measured("operators"))


def memory() -> str:
    kept, rows = read("memory"), []
    for row in kept.table("memory").values():
        checks = ["-" if row.get(stage) is None else f"{row[stage]:.3f}" for stage in ("check", "default")]
        shares = [f"{row[part]:.1f}" for part in ("mapped", "written", "file")]
        rows.append(
            [row["subject"], f"{row['gigabytes']:g} GB", row["tool"], f"{row['convert']:.3f}", *checks, *shares]
        )
    heads = ("weights", "", "tool", "convert", "check", "default", "mapped", "written", "file")
    return _table(heads, rows, kept.measured("memory"))


def main() -> None:
    code = code_of()
    for path in sorted(FOLDER.glob("*.json")):
        if path.stem in {goal.benchmark for goal in GOALS} | {"scaling", "forms", "resizing"}:
            older = read(path).outdated(code)
            print(
                f"{path.name}: {len(older)} rows are older than the code"
                if older
                else f"{path.name}: as the code stands"
            )


if __name__ == "__main__":
    main()
