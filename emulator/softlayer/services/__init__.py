"""The services of the API: one table of methods for each; what is in none is not emulated."""

from collections.abc import Callable
from typing import Any

from emulator.softlayer.account import Account
from emulator.softlayer.calls import Call
from emulator.softlayer.services import account, guests, security

Method = Callable[[Account, Call], Any]

SERVICES: dict[str, dict[str, Method]] = {**account.SERVICES, **guests.SERVICES, **security.SERVICES}
