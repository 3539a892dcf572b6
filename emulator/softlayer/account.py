"""An emulated SoftLayer account: what every account has, and the catalog."""

from emulator.shared.account import EmulatedAccount
from emulator.softlayer.catalog import Catalog, load_catalog
from emulator.softlayer.records import Records
from emulator.softlayer.settings import Settings

LOWEST_ID, IDS = 200_000, 700_000
USER_ID = 6117


class Account(EmulatedAccount):
    """One emulated SoftLayer account: its records, and the catalog."""

    settings: Settings
    store: Records
    RECORDS = Records

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.catalog: Catalog = load_catalog(settings.price_factor)

    @property
    def id(self) -> int:
        """The account's number; it follows from the state folder, so that a client notices another account."""
        return LOWEST_ID + int(self.settings.account_name.removeprefix("acct-"), 16) % IDS
