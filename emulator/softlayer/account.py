"""An emulated SoftLayer account: what every account has, and the catalog."""

from emulator.account import EmulatedAccount
from emulator.softlayer.catalog import Catalog, Datacenter, Flavor, load_catalog
from emulator.softlayer.records import Guest, Records
from emulator.softlayer.settings import Settings

LOWEST_ID, IDS = 200_000, 700_000
USER_ID = 6117


class Account(EmulatedAccount):
    """Everything that one SoftLayer account holds."""

    settings: Settings
    store: Records
    RECORDS = Records

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.catalog: Catalog = load_catalog()

    @property
    def id(self) -> int:
        """The account's number; it follows from the state folder, so that a client notices another account."""
        return LOWEST_ID + int(self.settings.account_name.removeprefix("acct-"), 16) % IDS

    def flavor_of(self, guest: Guest) -> Flavor:
        """The flavor of a guest."""
        flavor = self.catalog.flavor(guest.flavor)
        if flavor is None:
            raise LookupError(f"guest {guest.id}: flavor {guest.flavor} is not in the catalog any more")
        return flavor

    def datacenter_of(self, guest: Guest) -> Datacenter:
        """The datacenter of a guest."""
        datacenter = self.catalog.datacenter(guest.datacenter)
        if datacenter is None:
            raise LookupError(f"guest {guest.id}: datacenter {guest.datacenter} is not in the catalog any more")
        return datacenter
