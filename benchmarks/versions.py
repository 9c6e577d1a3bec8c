"""Versions: the tests in each environment of benchmarks/versions.toml, one after the other.

An environment is a folder with the packages that differ from the pinned ones, laid over these: nothing is installed
twice, and the pinned environment stays as it is. What passes and what does not is kept in benchmarks/versions.json,
from which docs/compatibility.md is made.

Run: python benchmarks/versions.py [--only NAME] [--sample] [-- FURTHER ARGUMENTS OF PYTEST]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PINS = ROOT / "benchmarks/versions.toml"
KEPT = ROOT / "benchmarks/versions.json"
PLACE = Path(os.environ.get("VERSIONS_FOLDER", ROOT / ".versions"))
SHOWN = ("torch", "onnx", "onnx-ir", "onnxscript", "onnxruntime", "numpy", "transformers")
WHOLE = ("-m", "not slow")
SAMPLE = ("tests/test_cases.py", "tests/test_cli.py", "-m", "not slow", "--third", "0")


def build(name: str, settings: Mapping[str, Any], cuda: list[str]) -> list[Path]:
    """The folders that are laid over the pinned environment, filled where they are not yet."""
    found = []
    for folder, packages in ((name, settings["packages"]), ("cuda", cuda if settings.get("cuda") else [])):
        place = PLACE / folder
        stamp = place / "packages.json"
        if packages and (not stamp.exists() or json.loads(stamp.read_text(encoding="utf-8")) != packages):
            command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", "--target"]
            flags = os.environ.get("PIP_FLAGS", "").split()
            subprocess.run([*command, str(place), *flags, *packages], check=True)
            stamp.write_text(json.dumps(packages), encoding="utf-8")
        if packages:
            found.append(place)
    return found


def versions(environment: Mapping[str, str]) -> dict[str, str]:
    program = f"import json, importlib.metadata as m; print(json.dumps({{n: m.version(n) for n in {SHOWN}}}))"
    done = subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def test(name: str, folders: list[Path], chosen: list[str]) -> dict[str, Any]:
    """How the tests end there; their last lines are shown."""
    path = os.pathsep.join([*map(str, folders), str(ROOT / "src")])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    found = versions(environment)
    print(f"{name}: {', '.join(f'{package} {version}' for package, version in found.items())}", flush=True)
    started = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--show-capture=no", "--tb=short"]
    done = subprocess.run([*command, *chosen], cwd=ROOT, env=environment, check=False, capture_output=True, text=True)
    print("\n".join(done.stdout.splitlines()[-60:]), done.stderr[-2000:], flush=True)
    counts = {word: int(count) for count, word in re.findall(r"(\d+) (passed|failed|error)", done.stdout[-300:])}
    failing = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return {
        "python": sys.version.split()[0], "versions": found, "ran": " ".join(chosen), **counts, "failing": failing,
        "seconds": round(time.monotonic() - started),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="PATTERN", default="", help="environments whose name holds this expression")
    parser.add_argument("--sample", action="store_true", help="a third of the cases and of the command line's tests")
    parser.add_argument("further", nargs="*", help="for pytest, instead of the not-slow tests")
    chosen = parser.parse_args()
    pins = tomllib.loads(PINS.read_text(encoding="utf-8"))
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    for name, settings in pins["environments"].items():
        if not re.search(chosen.only, name):
            continue
        folders = build(name, settings, pins["cuda"]["packages"])
        kept[name] = test(name, folders, chosen.further or list(SAMPLE if chosen.sample else WHOLE))
        ordered = {known: kept[known] for known in pins["environments"] if known in kept}
        KEPT.write_text(json.dumps(ordered, indent=1) + "\n", encoding="utf-8")
    if any(row.get("failed") or row.get("error") or not row.get("passed") for row in kept.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
