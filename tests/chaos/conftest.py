"""One seeded sample of everything that `make chaos` plays, for all tests of this folder."""

import pytest

from tools.chaos.campaign import Played, played
from tools.chaos.sweep import Sweep, counted

SEED = 4


@pytest.fixture(scope="session")
def everything() -> Sweep:
    return counted(SEED)


@pytest.fixture(scope="session")
def runs(everything: Sweep) -> list[Played]:
    return list(played(everything.sample().items()))
