"""One thread for every test: workers share the cores, and timings do not matter here."""

from __future__ import annotations

import random
import zlib

import pytest
import torch
from hypothesis import HealthCheck, settings

from anyshape.runtime import confinement

torch.set_num_threads(1)
# the files of the tests are ours: a process for each would double the time; `strangers` asks for it
confinement.CONFINES = False
# how fast a machine makes examples is not what is tested
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")


@pytest.fixture
def strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are run in a process of their own, as users' are."""
    monkeypatch.setattr(confinement, "CONFINES", True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--third", type=int, choices=(0, 1, 2), help="only the tests whose names fall into this third")
    parser.addoption("--shuffled", type=int, metavar="SEED", help="all tests in random order")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    third, seed = config.getoption("third"), config.getoption("shuffled")
    if third is not None:
        thirds = {item: zlib.crc32(item.nodeid.encode()) % 3 for item in items}
        config.hook.pytest_deselected(items=[item for item in items if thirds[item] != third])
        items[:] = [item for item in items if thirds[item] == third]
    if seed is not None:
        random.Random(seed).shuffle(items)
