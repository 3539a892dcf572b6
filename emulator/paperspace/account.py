"""An emulated Paperspace account: what every account has, the catalog, and the ids that the API shows."""

from typing import Any

from emulator.paperspace.catalog import Catalog, load_catalog
from emulator.paperspace.errors import CAPACITY_CODE, ApiError, not_found, refused
from emulator.paperspace.records import Network, Records
from emulator.paperspace.settings import Settings
from emulator.shared.account import EmulatedAccount, free_address

NAMES = {
    "machines": "Machine",
    "networks": "Private network",
    "drives": "Shared drive",
    "scripts": "Startup script",
    "public_ips": "Public IP",
}
REF_DIGITS = 9


class Account(EmulatedAccount):
    """One emulated Paperspace team: its records, and the catalog."""

    settings: Settings
    store: Records
    RECORDS = Records

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self.catalog: Catalog = load_catalog()

    def own_ref(self, prefix: str) -> str:
        """The id of the team or of one of its users; it follows from the state folder, so that a client notices another account."""
        return prefix + self.settings.account_name.removeprefix("acct-")

    def new_ref(self, prefix: str) -> str:
        """A fresh id, as the API shows it."""
        return prefix + self.token().replace("-", "")[:REF_DIGITS]

    def find(self, table: str, ref: str) -> Any:
        """A record to change, by the id that the API shows; one that the API hides is gone for its owner."""
        for each in self.store.tables[table].read_all():
            if each.ref == ref and not each.is_hidden:
                return self.store.tables[table][each.id]
        raise not_found(NAMES[table], ref)

    def region(self, given: str) -> str:
        """A region's slug, or the refusal of an unknown one."""
        if given not in self.catalog.regions:
            raise refused(f"Region {given} does not exist. Use one of {', '.join(self.catalog.regions)}.")
        return given

    def free_private_ip(self, network: Network) -> str:
        """An address of a network that no machine and no drive has."""
        taken = {each.private_ip for each in self.store.machines.read_all()}
        taken |= {each.address for each in self.store.drives.read_all()}
        address = free_address(network.subnet, taken)
        if address is None:
            raise ApiError(CAPACITY_CODE, f"Private network {network.ref} has no free address.")
        return address

    def free_public_ip(self) -> str:
        """An address that nobody has and that was not the last one to be given: a dynamic one changes."""
        taken = {each.public_ip for each in self.store.machines.read_all()}
        taken |= {each.ref for each in self.store.public_ips.read_all()}
        address = free_address(self.settings.public_subnet, taken | {self.store.facts.get("last_public_ip")})
        if address is None:
            raise ApiError(CAPACITY_CODE, "There is no free public address (setting public_subnet).")
        self.store.facts["last_public_ip"] = address
        return address
