"""The contract between the emulator's commands and a vendor's emulated account."""

from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.routing import Route

from emulator.shared.account import EmulatedAccount
from emulator.shared.machine_reconciler import MachineSource
from emulator.shared.settings import Settings
from emulator.shared.status import Holdings


@dataclass(frozen=True)
class Command:
    """One word of the command line; the docstring of ``run`` is its help."""

    run: Callable[[Any, Namespace], int]
    arguments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Vendor:
    """Everything that the commands need of a vendor."""

    settings: type[Settings]
    folder: str  # of the account, in the user's folder, when no other one is named
    account: Callable[[Any], EmulatedAccount]  # of the settings
    routes: Callable[[Any], list[Route]]  # of an account: its API
    machine_source: Callable[[Any], MachineSource]
    holdings: Holdings
    client_file: str  # in the state folder: what the vendor's client reads to find the account
    write_client_file: Callable[[Any], Path]
    commands: Mapping[str, Command]  # the vendor's own, by name
    machines_end_with_server: bool = (
        False  # they are nobody's rental, so that nothing of theirs runs on without the server
    )
