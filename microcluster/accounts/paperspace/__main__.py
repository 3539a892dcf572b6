"""The provider for Paperspace: its settings, and what `pulumi-resource-paperspace` starts."""

import sys

from microcluster.accounts.paperspace.account import account_of
from microcluster.accounts.paperspace.ledger import Ledgers
from microcluster.accounts.paperspace.machine import Machines
from microcluster.accounts.paperspace.network_and_drive import Drives, Networks
from microcluster.accounts.shared import plugin_server as server
from microcluster.accounts.shared.plugin_servicer import Vendor

PAPERSPACE = Vendor(
    (Ledgers(), Networks(), Drives(), Machines()),
    account_of,
    key_file="apiKeyFile",
)


def main(arguments: list[str]) -> int:
    """Serve until the engine is gone or says so."""
    return server.main(arguments, PAPERSPACE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
