"""The first export of a process: CPU seconds of whole new processes, from their start to their end.

Each round runs every program once, in turn, so that a load on the machine weighs on all alike; the fastest of each
counts. The floor is what torch needs before there is anything to translate: its import, and one trace of the model.
Run: python benchmarks/first_export.py [--rounds N] [--only REGEX] [--json [FILE]]
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from figures import add_json_option, keep, this_run
from goals import report

MODEL = """
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(16, 32), torch.nn.Linear(32, 4)

    def forward(self, x):
        return self.second(torch.relu(self.first(x))).softmax(-1)
"""
_CALL = "import torch, model\nnet, x = model.Net().eval(), torch.randn(3, 16)\n"
_COMMAND_LINE = (
    "import sys; sys.argv = ['anyshape', 'export', 'model.py:Net', '-o', 'ours.onnx', '--weights', 'random',\n"
    "    '--input', 'x: float32[batch, 16]']\n"
    "import anyshape.cli; anyshape.cli.main()"
)
PROGRAMS = {
    "import torch": "import torch",
    "import torch.export": "import torch, torch.export",
    "floor": _CALL + "torch.export.export(net, (x,), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},), strict=False)",
    "command line": _COMMAND_LINE,
    "python": _CALL + "import anyshape; anyshape.export(net, x, 'ours.onnx', dims={'x': 'batch 16'})",
    "torch": _CALL + "torch.onnx.export(net, (x,), 'torchs.onnx', dynamo=True, dynamic_shapes=({0: 'batch'},))",
}
"""What each process runs: none of torch's checks anything."""


def cpu_seconds(code: str, folder: str) -> float:
    """User and system time of a new process and of what it starts."""
    # with the bytecode of all sides kept, as it is of installed packages: pip has compiled torch already
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    before = os.times()
    command = [sys.executable, "-W", "ignore", "-c", code]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder, env=kept)
    after = os.times()
    if ran.returncode:
        raise SystemExit(ran.stdout + ran.stderr)
    return after.children_user + after.children_system - before.children_user - before.children_system


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="programs whose names this finds")
    add_json_option(parser, "first_export")
    given = parser.parse_args()
    chosen = {name: code for name, code in PROGRAMS.items() if re.search(given.only, name)}
    seconds: dict[str, list[float]] = {name: [] for name in chosen}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "model.py").write_text(MODEL)
        for code in chosen.values():
            cpu_seconds(code, folder)  # the first writes bytecode, and brings files into memory
        for _ in range(given.rounds):
            for name, code in chosen.items():
                seconds[name].append(cpu_seconds(code, folder))
    best = {name: min(each) for name, each in seconds.items()}
    print(f"CPU seconds of whole processes, the best of {given.rounds} rounds (the worst)")
    for name, each in best.items():
        ratios = (f"{each / best[other]:.2f} x {other}" for other in ("floor", "torch") if other in best)
        print(f"{name:<20} {each:>6.2f} ({max(seconds[name]):.2f})   {'   '.join(ratios)}")
    tables = {"programs": {name: {"seconds": round(each, 3)} for name, each in best.items()}}
    print(f"\n{report('first_export', tables)}")
    if given.json:
        run = this_run()
        keep(given.json, tables, {**run, "machine": f"{run['machine']}, best of {given.rounds}"})


if __name__ == "__main__":
    main()
