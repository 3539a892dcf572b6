"""The provider for SoftLayer: its settings, and what `pulumi-resource-softlayer` starts."""

import sys

from microcluster.accounts.shared import plugin_server as server
from microcluster.accounts.shared.plugin_servicer import Vendor
from microcluster.accounts.softlayer.account import account_of
from microcluster.accounts.softlayer.guest import Guests
from microcluster.accounts.softlayer.ledger import Ledgers
from microcluster.accounts.softlayer.security_group import Groups
from microcluster.accounts.softlayer.ssh_key import Keys

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
