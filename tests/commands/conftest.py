"""The emulated accounts of the integration tests, for tests that run whole commands against them."""

from pathlib import Path

import pytest

from tests.commands.rented_project import KEY, RentedProject, install
from tests.integration.conftest import (
    AccountEmulator,
    _no_settings_of_the_user,
    account_emulator,
    emulator_with,
    onlooker,
)

__all__ = ["_no_settings_of_the_user", "account_emulator", "emulator_with", "onlooker"]


@pytest.fixture
def home(tmp_path: Path, account_emulator: AccountEmulator) -> Path:  # noqa: F811 - the fixture
    """A home whose local stack is the emulated account of these tests."""
    home = tmp_path / "home"
    (home / "keys" / "local").mkdir(parents=True)
    (home / "keys" / "local" / "id_ed25519.pub").write_text(KEY + " stack local\n")
    (home / "emulator").symlink_to(account_emulator.state)
    return home


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory, account: AccountEmulator) -> RentedProject:
    """A clone with a home of its own, whose local stack is the account of its module."""
    return install(tmp_path_factory.mktemp("clone"), account)
