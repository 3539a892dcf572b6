"""The provider for SoftLayer: its settings, and what `pulumi-resource-softlayer` starts."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Mapping
from typing import Any

from providers.grpc import server
from providers.grpc.properties import Problem
from providers.grpc.resource_protocol import Vendor
from providers.rental.errors import ProviderError
from providers.rental.operation import Session
from providers.softlayer import credentials, ledger, security_group, ssh_key, virtual_guest
from providers.softlayer.account import Account
from providers.softlayer.backend import SoftLayer
from providers.softlayer.calls import Api

SETTINGS = ("configFile", "timeScale")
ENGINES_OWN = ("version", "pluginDownloadURL", "__internal")
CREDENTIAL_NAMES = ("apiKey", "username", "password", "api_key", "key")


def problems(given: Mapping[str, Any]) -> list[Problem]:
    """Say which settings are none."""
    return [_problem(key) for key in given if key not in (*SETTINGS, *ENGINES_OWN)]


def time_scale(given: Mapping[str, Any]) -> float:
    """Read the unit of all waits, in seconds; 1 unless it is set.

    Raises:
        ProviderError: it is no number above 0.
    """
    value = given.get("timeScale")
    try:
        scale = float(value if value not in (None, "") else 1)
    except ValueError:
        scale = 0
    if not 0 < scale < math.inf:
        raise ProviderError(f"reading softlayer:timeScale: '{value}' is no number above 0. Correct the stack file.")
    return scale


def _problem(key: str) -> Problem:
    if key in CREDENTIAL_NAMES:
        # The engine prints the value of a property that fails, so that a key is refused without naming its property.
        return Problem(
            "",
            f"softlayer:{key} does not belong into a stack file. Put user and key into a 0600 file and name it "
            "in softlayer:configFile, or export SL_USERNAME and SL_API_KEY.",
        )
    return Problem(key, f"is no setting of this provider; it has {', '.join(SETTINGS)}")


def session(settings: Mapping[str, Any], stop: threading.Event) -> Session:
    """Remember the settings; the first operation that needs the account opens it, so that a preview needs none."""
    scale = time_scale(settings)
    return Session(
        lambda: SoftLayer(Account(Api(credentials.load(settings.get("configFile")), stop, scale))),
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
    problems=problems,
    session=session,
)


def main(arguments: list[str]) -> int:
    """Serve until the engine is gone or says so."""
    return server.main(arguments, SOFTLAYER)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
