"""The provider for SoftLayer: its settings, and what `pulumi-resource-softlayer` starts."""

import sys

from providers.grpc import server
from providers.grpc.servicer import Vendor
from providers.softlayer.account import account_of
from providers.softlayer.guest import Guests
from providers.softlayer.ledger import Ledgers
from providers.softlayer.security_group import Groups
from providers.softlayer.ssh_key import Keys

SOFTLAYER = Vendor(
    (Ledgers(), Keys(), Groups(), Guests()),
    account_of,
    key_file="configFile",
)


def main(arguments: list[str]) -> int:
    """Serve until the engine is gone or says so."""
    return server.main(arguments, SOFTLAYER)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
