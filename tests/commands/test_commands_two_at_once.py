"""The same stack from two clones with one home: who comes second is refused with the holder's name."""

import os
import signal
import time
from collections.abc import Iterator

import pytest

from microcluster.lifecycle.locks import alone_on
from tests.commands.rented_project import UP, UP_LIMIT_S, install
from tests.integration.conftest import AccountEmulator
from tests.integration.provider_cluster import Onlooker
from tests.integration.until import until

pytestmark = pytest.mark.timeout(240)


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccountEmulator]:
    with AccountEmulator(tmp_path_factory.mktemp("account"), reclaim_s=60.0) as emulator:
        yield emulator


def paced(account: AccountEmulator, clock_rate: float) -> None:
    """Let the account's clock go at another rate."""
    account.stop()
    account.clock_rate = clock_rate
    account.start()


def billed(account: AccountEmulator) -> int:
    """Count the machines that the account bills."""
    return len(Onlooker(account.config_file).billed())


def test_a_second_clone_with_the_same_home_is_refused_naming_the_holder(clone, account, tmp_path) -> None:
    second = install(tmp_path, account, clone.home)
    with alone_on("local", "make up", clone.home):
        began = time.monotonic()
        refused = second.make("down")
        assert refused.returncode == 1 and f"process {os.getpid()} is doing `make up` on it in" in refused.stderr
        assert time.monotonic() - began < 90, "five seconds on a machine that does nothing else"
    paced(account, 5)  # A minute to build a guest, so that the first `up` is met in the middle.
    first = clone.start(*UP)
    until(lambda: first.poll() is not None or billed(account) == 2, UP_LIMIT_S)
    for command in (("fab", "recover", "--yes"), ("fab", "down")):
        refused = second.run(*command)
        assert refused.returncode == 1 and f"process {first.pid} of" in refused.stderr, refused.stderr
    busy = second.run(*UP)
    assert busy.returncode != 0 and str(first.pid) in busy.stdout + busy.stderr
    assert first.poll() is None, "the first one is not disturbed"
    first.send_signal(signal.SIGINT)
    first.wait(240)
    paced(account, 600)
    assert second.run(*UP).returncode == 0, "the other clone goes on where the first one stopped"
    assert billed(account) == 2
    gone = clone.run("pulumi", "destroy", "--yes", "--skip-preview", "-s", "local")
    assert gone.returncode == 0 and not billed(account)
