"""The provider for SoftLayer: its settings, and what `pulumi-resource-softlayer` starts."""

import sys

from providers.grpc import server
from providers.grpc.servicer import Vendor
from providers.softlayer import credentials
from providers.softlayer.account import SoftLayer
from providers.softlayer.api import Api
from providers.softlayer.guest import Guests
from providers.softlayer.ledger import Ledgers
from providers.softlayer.security_group import Groups
from providers.softlayer.ssh_key import Keys

SOFTLAYER = Vendor(
    "softlayer",
    (Ledgers(), Keys(), Groups(), Guests()),
    lambda key_file, stop, scale: SoftLayer(Api(credentials.load(key_file), stop, scale)),
    key_file="configFile",
    credential_names=("apiKey", "username", "password", "api_key", "key"),
    where_instead="Put user and key into a 0600 file and name it in softlayer:configFile, "
    "or export SL_USERNAME and SL_API_KEY.",
)


def main(arguments: list[str]) -> int:
    """Serve until the engine is gone or says so."""
    return server.main(arguments, SOFTLAYER)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
