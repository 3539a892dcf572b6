"""The emulated accounts of the integration tests, for tests that run whole commands against them."""

from tests.integration.conftest import (
    _fork_servers,
    _no_settings_of_the_user,
    account_emulator,
    emulator_with,
    onlooker,
)

__all__ = ["_fork_servers", "_no_settings_of_the_user", "account_emulator", "emulator_with", "onlooker"]
