"""The provider for Paperspace: its settings, and what `pulumi-resource-paperspace` starts."""

import sys
import threading
from collections.abc import Mapping
from typing import Any

from providers.grpc import server
from providers.grpc.provider_settings import ProviderSettings
from providers.grpc.resource_protocol import Vendor
from providers.paperspace import credentials, ledger, machine, private_network, shared_drive
from providers.paperspace.account import Account
from providers.paperspace.api import Api
from providers.paperspace.backend import Paperspace
from providers.rental.operation import Session

SETTINGS = ProviderSettings(
    "paperspace",
    key_file="apiKeyFile",
    credential_names=("apiKey", "api_key", "key", "token", "password"),
    where_instead="Put the key into a 0600 file and name it in paperspace:apiKeyFile, "
    f"or export {credentials.VARIABLE}.",
)


def session(settings: Mapping[str, Any], stop: threading.Event) -> Session:
    """Remember the settings; the first operation that needs the account opens it, so that a preview needs none."""
    time_scale = SETTINGS.time_scale(settings)
    key_file = settings.get(SETTINGS.key_file)
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
    problems=SETTINGS.problems,
    session=session,
)


def main(arguments: list[str]) -> int:
    """Serve until the engine is gone or says so."""
    return server.main(arguments, PAPERSPACE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
