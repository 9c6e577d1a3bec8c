"""What is lost or let in when things go wrong: how often each fault was tried, and how often what is promised held.

Exports are killed at random moments and at every rename, interrupted by signals, meet a full disk (where this user may
mount one) and a limit on the size of files; files are mutated, and made to eat the machine; exports are done in any
order, and beside six busy loops. Held means: the old or the new file is there and whole, a file by others gives a
result or one sentence in less than 5 seconds of work and 1 GB, and bytes are the same. Everything is drawn by a seed.
Linux. Without `--quick`, what was counted is kept in faults.json, of which the table of docs/reliability.md is made.

Run: python benchmarks/faults.py [--quick] [--only REGEX] [--seed N]
"""

from __future__ import annotations

import argparse
import contextlib
import datetime as dt
import functools
import hashlib
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import onnx
import torch
from torch import Tensor, nn

import anyshape
from anyshape.onnxfile import saving

sys.path.insert(0, str(Path(__file__).parent.parent))
from tests.onnxfile import strangers
from tests.onnxfile.kills import kill_at

Held = Iterator[bool]
SECONDS, KILOBYTES = 5, 10**6
KEPT = Path(__file__).with_name("faults.json")


class Net(nn.Module):
    """Weights that lie beside the file where that is asked for."""

    def __init__(self, width: int, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.linear = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        return torch.softmax(self.linear(x), -1) + x.mean(1, keepdim=True)


def export(width: int, seed: int, path: Path, *, beside: bool = False) -> None:
    torch.manual_seed(0)
    x = torch.randn(2, 3, width)
    anyshape.export(Net(width, seed).eval(), x, path, dims={"x": "b n _"}, quick=True, external_data=beside or None)


# ---- in a process of its own


def forked(work: Callable[[], None]) -> int:
    """The process that does this and ends; torch is loaded already."""
    pid = os.fork()
    if pid:
        return pid
    with contextlib.suppress(BaseException):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        work()
        os._exit(0)
    os._exit(1)


def ended_well(pid: int) -> bool:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def computation(path: Path) -> str:
    """What a file holds, its weights included; an error where one of both is gone."""
    model = onnx.load(path)
    for tensor in model.graph.initializer:
        del tensor.external_data[:]
        tensor.ClearField("data_location")
    return hashlib.sha256(model.SerializeToString(deterministic=True)).hexdigest()


def is_whole(path: Path, known: set[str]) -> bool:
    try:
        return computation(path) in known
    except Exception:  # whatever is wrong with it
        return False


class Written:
    """A folder with an old file, and what a new one in its place would hold."""

    def __init__(self, folder: Path, *, beside: bool) -> None:
        self.path, self.beside = folder / "model.onnx", beside
        self.known = set()
        for seed in (2, 1):
            assert ended_well(forked(lambda seed=seed: export(64, seed, self.path, beside=beside)))
            self.known.add(computation(self.path))
        self.kept = folder.with_name(f"{folder.name}_kept")
        shutil.copytree(folder, self.kept)

    def fresh(self) -> None:
        shutil.rmtree(self.path.parent)
        shutil.copytree(self.kept, self.path.parent)

    def replace(self) -> None:
        export(64, 2, self.path, beside=self.beside)

    def holds(self) -> bool:
        return is_whole(self.path, self.known)


@functools.cache
def _warm_up() -> None:
    """An export of this process's own, so that those that are forked from it take a tenth of the time."""
    with tempfile.TemporaryDirectory() as folder:
        export(8, 0, Path(folder) / "model.onnx", beside=True)


def _written(folder: Path, *, beside: bool) -> Written:
    _warm_up()
    (folder / f"{beside}").mkdir()
    return Written(folder / f"{beside}", beside=beside)


# ---- nothing of the user's is lost


def killed(folder: Path, chance: random.Random, count: int, kinds: tuple[int, ...]) -> Held:
    """At random moments of an export, which takes about as long as the first one."""
    for beside in (False, True):
        place = _written(folder, beside=beside)
        start = time.monotonic()
        assert ended_well(forked(place.replace))
        took = time.monotonic() - start
        for _ in range(count // 2):
            place.fresh()
            pid = forked(place.replace)
            time.sleep(chance.random() * took)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, chance.choice(kinds))
            os.waitpid(pid, 0)
            yield place.holds()
        assert ended_well(forked(place.replace))
        strays = [one.name for one in place.path.parent.iterdir() if not one.name.startswith("model.onnx")]
        yield not strays  # the next run has removed what the killed ones left


def stopped_at_renames(folder: Path, _: random.Random, count: int) -> Held:
    for beside in (False, True):
        place = _written(folder, beside=beside)
        for number in range(1, count + 1):
            place.fresh()

            def work(place: Written = place, number: int = number) -> None:
                kill_at(number, "replace", "rename")
                place.replace()

            done = ended_well(forked(work))
            yield place.holds()
            if done:
                break


def limited(folder: Path, _: random.Random, count: int) -> Held:
    """No file may have more than so many bytes: less than a model, and less than its weights."""
    for beside in (False, True):
        place = _written(folder, beside=beside)
        before = computation(place.path)
        for size in [10, 1000, 4000, 15000][:count]:

            def work(size: int = size, place: Written = place) -> None:
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
                resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
                with contextlib.suppress(anyshape.AnyshapeError):
                    place.replace()
                    os._exit(1)

            yield ended_well(forked(work)) and computation(place.path) == before


def full_disk(folder: Path, _: random.Random, count: int) -> Held:
    """So many pages are free; told before anything is written, and met in the middle, when others have filled them."""
    for beside, forewarned in [(False, True), (True, True), (False, False), (True, False)]:
        disk = folder / f"disk_{beside}_{forewarned}"
        disk.mkdir()
        # in a file system of its own: nobody else is to find their disk full
        mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            return
        try:
            place = _written(disk, beside=beside)
            shutil.move(place.kept, folder / f"kept_{beside}_{forewarned}")
            place.kept = folder / f"kept_{beside}_{forewarned}"
            for pages in [0, 1, 2, 3, 4, 5, 6, 8, 10, 12][:count]:
                place.fresh()
                _leave_free(disk, pages)
                yield _told_or_done(place, forewarned=forewarned) and place.holds()
                (disk / "ballast").unlink()
        finally:
            subprocess.run(["umount", str(disk)], check=True)


def _leave_free(disk: Path, pages: int) -> None:
    with (disk / "ballast").open("wb") as file:
        file.write(bytes(shutil.disk_usage(disk).free - pages * resource.getpagesize()))


def _told_or_done(place: Written, *, forewarned: bool) -> bool:
    def work() -> None:
        if not forewarned:
            saving.require_room = lambda *_: None  # type: ignore[assignment]
        with contextlib.suppress(anyshape.AnyshapeError):
            place.replace()

    return ended_well(forked(work))


# ---- nothing is let in


def mutated(folder: Path, chance: random.Random, count: int) -> Held:
    """Bytes flipped, cut out, doubled and exchanged; read by inspect and load, and checked now and then."""
    makers = (
        strangers.text_model("main (float[n, 3] x) => (float[n, 3] y) <float[3] w = {1, 2, 3}> { y = Mul(x, w) }"),
        strangers.deep_functions(3, 2),
        strangers.text_model("main (float[n] x) => (float[m] y) <int64[1] s = {2}> { z = Tile(x, s) y = Relu(z) }"),
    )
    contents = [model.SerializeToString() for model in makers]
    export(4, 1, folder / "own.onnx")
    contents.append((folder / "own.onnx").read_bytes())
    for first in range(0, count, 50):
        files = [folder / f"mutated_{first + index}.onnx" for index in range(min(50, count - first))]
        for path in files:
            path.write_bytes(_mutation(chance.choice(contents), chance))
        report = folder / "report"
        report.write_text("")
        ended_well(forked(lambda files=files, report=report: _read_all(files, report)))
        done = report.read_text().split()
        yield from (word == "held" for word in done)
        yield from [False] * (len(files) - len(done))  # the runtime has taken the process down
        for path in files:
            path.unlink()


def _mutation(content: bytes, chance: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        place, length = chance.randrange(len(changed)), chance.randint(1, 8)
        other = chance.randrange(len(changed))
        match chance.randrange(4):
            case 0:
                changed[place] = chance.randrange(256)
            case 1:
                del changed[place : place + length]
            case 2:
                changed[place:place] = changed[other : other + length]
            case 3:
                changed[place : place + length] = bytes(chance.randrange(256) for _ in range(length))
        changed = changed or bytearray(b"\0")
    return bytes(changed)


def _read_all(files: list[Path], report: Path) -> None:
    for index, path in enumerate(files):
        verbs = [anyshape.inspect, anyshape.load, *([anyshape.check] if index % 25 == 0 else [])]
        word = "held"
        for verb in verbs:
            try:
                str(verb(path))
            except anyshape.AnyshapeError as error:
                word = word if "\n" not in str(error) or isinstance(error, anyshape.ExportError) else "lines"
            except BaseException:  # this is what must not be
                word = "failed"
        with report.open("a") as file:
            file.write(f"{word}\n")


def hostile(folder: Path, _: random.Random, count: int) -> Held:
    """Each with three verbs, on the command line."""
    files = {
        "functions": strangers.deep_functions(10, 20),
        "itself": strangers.calling_itself(3),
        "axes": strangers.many_axes(100_000, "input"),
        "constant": strangers.large_constant("n"),
        "static_constant": strangers.large_constant(2),
        "loop": strangers.endless_loop("n"),
        "static_loop": strangers.endless_loop(2),
        "nodes": strangers.many_nodes(1_000_000),
    }
    for name, model in list(files.items())[:count]:
        path = folder / f"{name}.onnx"
        path.write_bytes(model.SerializeToString())
        for verb in (["inspect"], ["check"], ["make-dynamic", "-o", str(folder / "out.onnx")]):
            yield _ends_soon([sys.executable, "-m", "anyshape", verb[0], str(path), *verb[1:]])


def _ends_soon(command: list[str]) -> bool:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    errors = [line for line in said.splitlines() if line.startswith("error")]
    is_said = process.returncode == 0 or (process.returncode in (1, 2, 3) and len(errors) == 1)
    return is_said and used.ru_utime + used.ru_stime < SECONDS and used.ru_maxrss < KILOBYTES


# ---- the same, whatever is around


def in_any_order(folder: Path, chance: random.Random, count: int) -> Held:
    yield from _same_bytes(folder, [chance.sample(range(4), 4) for _ in range(count)])


def beside_busy_loops(folder: Path, _: random.Random, count: int) -> Held:
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(6)]
    try:
        yield from _same_bytes(folder, [[number] for number in range(count)])
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def _same_bytes(folder: Path, orders: list[list[int]]) -> Held:
    """Models of different widths, one after the other in one process; each in a process of its own is what counts."""

    def write(order: list[int], prefix: str) -> None:
        for number in order:
            export(4 + number, number, folder / f"{prefix}_{number}.onnx")

    for number in sorted({one for order in orders for one in order}):
        _export_elsewhere(4 + number, number, folder / f"alone_{number}.onnx")
    for index, order in enumerate(orders):
        done = ended_well(forked(lambda order=order, index=index: write(order, f"order{index}")))
        for number in order:
            found, wanted = folder / f"order{index}_{number}.onnx", folder / f"alone_{number}.onnx"
            yield done and found.read_bytes() == wanted.read_bytes()


def _export_elsewhere(width: int, seed: int, path: Path) -> None:
    """In a process that has done nothing before."""
    program = (
        "import sys, pathlib, faults; faults.export(int(sys.argv[1]), int(sys.argv[2]), pathlib.Path(sys.argv[3]))"
    )
    paths = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    command = [sys.executable, "-c", program, str(width), str(seed), str(path)]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, check=True, capture_output=True)


Fault = tuple[str, Callable[[Path, random.Random, int], Held], int, int]
FAULTS: tuple[Fault, ...] = (
    ("killed at a random moment", lambda f, c, n: killed(f, c, n, (signal.SIGKILL,)), 200, 4),
    ("interrupted by a signal", lambda f, c, n: killed(f, c, n, (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)), 60, 4),
    ("killed at a rename", stopped_at_renames, 40, 40),
    ("full disk", full_disk, 10, 2),
    ("files of limited size", limited, 4, 2),
    ("mutated files", mutated, 2000, 100),
    ("hostile files, three verbs", hostile, 8, 7),
    ("exports in another order", in_any_order, 6, 1),
    ("six busy loops beside", beside_busy_loops, 4, 1),
)
"""What is done, how, and how often: in full and with --quick."""


def tried_and_held(names: list[str], *, quick: bool, seed: int) -> dict[str, list[int]]:
    found = {}
    for name, fault, full, few in FAULTS:
        if name in names:
            with tempfile.TemporaryDirectory() as folder:
                held = list(fault(Path(folder), random.Random(seed), few if quick else full))
            found[name] = [len(held), sum(held)]
    return found


def keep(found: dict[str, list[int]], seed: int) -> None:
    """Beside what was kept of others before."""
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    today = dt.datetime.now(tz=dt.UTC).date().isoformat()
    fresh = {name: {"tried": tried, "held": held, "seed": seed, "day": today} for name, (tried, held) in found.items()}
    rows = {name: {**kept, **fresh}[name] for name, *_ in FAULTS if name in kept or name in fresh}
    KEPT.write_text(json.dumps(rows, indent=1) + "\n")


def table() -> str:
    """For docs/reliability.md."""
    rows = json.loads(KEPT.read_text())
    lines = [f"| {name} | {row['tried']:,} | {row['held']:,} |" for name, row in rows.items() if row["tried"]]
    days, seeds = (sorted({str(row[key]) for row in rows.values()}) for key in ("day", "seed"))
    measured = f"Measured on {' and '.join(days)} in full, seed {' and '.join(seeds)}."
    return "\n".join(["| fault | tried | held |", "|---|---|---|", *lines, "", measured, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few of each, and nothing is kept")
    parser.add_argument("--only", default="", help="what to try, as a regular expression")
    parser.add_argument("--seed", type=int, default=0)
    wishes = parser.parse_args()
    torch.set_num_threads(1)
    for name, *_ in FAULTS:
        if re.search(wishes.only, name):
            found = tried_and_held([name], quick=wishes.quick, seed=wishes.seed)
            sys.stdout.write(f"{name}: {found[name][0]} tried, {found[name][1]} held\n")
            sys.stdout.flush()
            if not wishes.quick:
                keep(found, wishes.seed)


if __name__ == "__main__":
    main()
