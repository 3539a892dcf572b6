"""The provider for Paperspace: what `pulumi-resource-paperspace` starts."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from typing import Any

from providers.grpc import server
from providers.grpc.resource_protocol import Vendor
from providers.paperspace import credentials, ledger, machine, private_network, provider_config, shared_drive
from providers.paperspace.account import Account
from providers.paperspace.api import Api
from providers.paperspace.backend import Paperspace
from providers.rental.operation import Session


def session(settings: Mapping[str, Any], stop: threading.Event) -> Session:
    """Remember the settings; the first operation that needs the account opens it, so that a preview needs none."""
    time_scale = provider_config.time_scale(settings)
    key_file = settings.get(provider_config.KEY_FILE)
    return Session(
        lambda: Paperspace(Account(Api(credentials.load(key_file), stop, time_scale))),
        time_scale,
        stop,
    )


PAPERSPACE = Vendor(
    version="0.1.0",
    resources={
        "paperspace:index:Ledger": ledger,
        "paperspace:index:PrivateNetwork": private_network.PrivateNetwork(),
        "paperspace:index:SharedDrive": shared_drive.SharedDrive(),
        "paperspace:index:Machine": machine,
    },
    problems=provider_config.problems,
    session=session,
)


def main(arguments: list[str]) -> int:
    """Serve until the engine is gone or says so."""
    return server.main(arguments, PAPERSPACE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
