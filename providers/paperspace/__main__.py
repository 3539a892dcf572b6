"""The provider for Paperspace: its settings, and what `pulumi-resource-paperspace` starts."""

import sys

from providers.grpc import server
from providers.grpc.servicer import Vendor
from providers.paperspace.account import account_of
from providers.paperspace.ledger import Ledgers
from providers.paperspace.machine import Machines
from providers.paperspace.network_and_drive import Drives, Networks

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
