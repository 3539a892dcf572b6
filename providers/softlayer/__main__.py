"""The provider for SoftLayer: its settings, and what `pulumi-resource-softlayer` starts."""

import sys
import threading
from collections.abc import Mapping
from typing import Any

from providers.grpc import server
from providers.grpc.provider_settings import ProviderSettings
from providers.grpc.resource_protocol import Vendor
from providers.rental.operation import Session
from providers.softlayer import credentials, ledger, security_group, ssh_key, virtual_guest
from providers.softlayer.account import Account
from providers.softlayer.api import Api
from providers.softlayer.backend import SoftLayer

SETTINGS = ProviderSettings(
    "softlayer",
    key_file="configFile",
    credential_names=("apiKey", "username", "password", "api_key", "key"),
    where_instead="Put user and key into a 0600 file and name it in softlayer:configFile, "
    "or export SL_USERNAME and SL_API_KEY.",
)


def session(settings: Mapping[str, Any], stop: threading.Event) -> Session:
    """Remember the settings; the first operation that needs the account opens it, so that a preview needs none."""
    scale = SETTINGS.time_scale(settings)
    return Session(
        lambda: SoftLayer(Account(Api(credentials.load(settings.get(SETTINGS.key_file)), stop, scale))),
        scale,
        stop,
    )


SOFTLAYER = Vendor(
    version="0.1.0",
    resources={
        "softlayer:index:Ledger": ledger,
        "softlayer:index:SshKey": ssh_key,
        "softlayer:index:SecurityGroup": security_group,
        "softlayer:index:VirtualGuest": virtual_guest,
    },
    problems=SETTINGS.problems,
    session=session,
)


def main(arguments: list[str]) -> int:
    """Serve until the engine is gone or says so."""
    return server.main(arguments, SOFTLAYER)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
