"""One seeded sample of everything that `make chaos` plays, for all tests of this folder."""

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest

from tools.chaos.cases import Sweeps, counted, sample
from tools.chaos.workers import Played, played, workers

SEED = 4


@pytest.fixture(scope="session")
def pool() -> Iterator[ProcessPoolExecutor]:
    with workers() as pool:
        yield pool


@pytest.fixture(scope="session")
def sweeps(pool: ProcessPoolExecutor) -> Sweeps:
    return counted(SEED, pool)


@pytest.fixture(scope="session")
def runs(pool: ProcessPoolExecutor, sweeps: Sweeps) -> list[Played]:
    return list(played(pool, sample(sweeps, SEED).items()))
