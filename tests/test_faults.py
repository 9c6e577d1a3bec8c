"""The short form of `benchmarks/faults.py`: a few faults of each kind, and all of them held."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parent.parent / "benchmarks/faults.py"


def _counts(only: str) -> dict[str, tuple[int, int]]:
    command = [sys.executable, str(PROGRAM), "--quick", "--only", only]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {name: (int(tried), int(held)) for name, tried, held in re.findall(r"(.*): (\d+) tried, (\d+) held", told)}


@pytest.mark.skipif(sys.platform != "linux", reason="faults are made by means of Linux")
@pytest.mark.parametrize(
    ("fault", "least"),
    [
        ("mutated files", 100),
        pytest.param("hostile files, three verbs", 21, marks=pytest.mark.slow),
        pytest.param("killed at a rename", 5, marks=pytest.mark.slow),
        pytest.param("killed at a random moment", 6, marks=pytest.mark.slow),
        pytest.param("interrupted by a signal", 6, marks=pytest.mark.slow),
        pytest.param("full disk", 0, marks=pytest.mark.slow),  # none where nothing can be mounted
        pytest.param("files of limited size", 4, marks=pytest.mark.slow),
        pytest.param("exports in another order", 4, marks=pytest.mark.slow),
        pytest.param("six busy loops beside", 1, marks=pytest.mark.slow),
    ],
)
def test_what_is_promised_holds(fault: str, least: int) -> None:
    ((name, (tried, held)),) = _counts(f"^{re.escape(fault)}$").items()
    assert (name, held) == (fault, tried)
    assert tried >= least
