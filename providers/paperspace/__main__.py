"""The provider for Paperspace: its settings, and what `pulumi-resource-paperspace` starts."""

import sys

from providers.grpc import server
from providers.grpc.servicer import Vendor
from providers.paperspace import credentials
from providers.paperspace.account import Paperspace
from providers.paperspace.api import Api
from providers.paperspace.goods import Drives, Networks
from providers.paperspace.ledger import Ledgers
from providers.paperspace.machine import Machines

PAPERSPACE = Vendor(
    "paperspace",
    (Ledgers(), Networks(), Drives(), Machines()),
    lambda key_file, stop, scale: Paperspace(Api(credentials.load(key_file), stop, scale)),
    key_file="apiKeyFile",
    credential_names=("apiKey", "api_key", "key", "token", "password"),
    where_instead="Put the key into a 0600 file and name it in paperspace:apiKeyFile, "
    f"or export {credentials.VARIABLE}.",
)


def main(arguments: list[str]) -> int:
    """Serve until the engine is gone or says so."""
    return server.main(arguments, PAPERSPACE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
