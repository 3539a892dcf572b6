"""Users: what each may do, and which part of the account each sees."""

from dataclasses import dataclass

from emulator.softlayer.account import Account
from emulator.softlayer.calls import Call, Credentials
from emulator.softlayer.faults import not_found, public
from emulator.softlayer.settings import Settings
from emulator.store import Table

ALL_GUESTS, VIEW, ADD, CANCEL = "ACCESS_ALL_GUEST", "VIRTUAL_GUEST_VIEW", "SERVER_ADD", "SERVER_CANCEL"
BILLING = "ACCOUNT_SUMMARY_VIEW"
INSTANCES, PUBLIC_PORT = "INSTANCE_UPGRADE", "PUBLIC_NETWORK_COMPUTE"
KEYS, GROUPS, PORTS = "CUSTOMER_SSH_KEY_MANAGEMENT", "MANAGE_SECURITY_GROUPS", "PORT_CONTROL"
NAMES_OF_DEVICES, POWER = "HOSTNAME_EDIT", "REMOTE_MANAGEMENT"
PERMISSIONS = frozenset(
    {ALL_GUESTS, VIEW, ADD, CANCEL, BILLING, INSTANCES, PUBLIC_PORT, KEYS, GROUPS, PORTS, NAMES_OF_DEVICES, POWER}
)
OF_SERVICES = {"Security_Ssh_Key": KEYS, "Network_SecurityGroup": GROUPS}
"""Whatever changes one of these needs the permission; by the descriptions in the vendor's list of permissions, as the official
client has it (softlayer-python, SoftLayer/fixtures/SoftLayer_User_Permission_Department.py), and so for all that follows."""
OF_METHODS = {
    "Virtual_Guest::deleteObject": CANCEL,
    "Billing_Item::cancelItem": CANCEL,
    "Billing_Item::cancelService": CANCEL,
    "Billing_Item::cancelServiceOnAnniversaryDate": CANCEL,
    "Virtual_Guest::editObject": NAMES_OF_DEVICES,
    "Virtual_Guest::setPublicNetworkInterfaceSpeed": PORTS,
    "Virtual_Guest::setPrivateNetworkInterfaceSpeed": PORTS,
    "Virtual_Guest::rebootDefault": POWER,
    "Virtual_Guest::rebootHard": POWER,
    "Virtual_Guest::rebootSoft": POWER,
    "Virtual_Guest::powerOn": POWER,
    "Virtual_Guest::powerOff": POWER,
    "Virtual_Guest::powerOffSoft": POWER,
}


@dataclass(frozen=True)
class User:
    """A user of the account with the key names of what is permitted."""

    name: str
    permissions: frozenset[str]

    @property
    def sees_guests(self) -> bool:
        """Whether guests are shown, new ones too; that needs two permissions."""
        return {ALL_GUESTS, VIEW} <= self.permissions

    @property
    def sees_bills(self) -> bool:
        """Whether billing items are shown."""
        return BILLING in self.permissions


def of(settings: Settings, credentials: Credentials | None) -> User:
    """The user of a call; all but the restricted one may do everything."""
    name = credentials.username if credentials else settings.username
    if settings.restricted_user and name == settings.restricted_user:
        return User(name, frozenset(settings.restricted_permissions))
    return User(settings.username, PERMISSIONS)


def check(user: User, call: Call) -> None:
    """Refuse what the user may not do; a guest that is not shown is "not found", as in reality."""
    if not needed(call) <= user.permissions:
        raise public("Access Denied. ")
    if call.identifier is not None and call.service == "SoftLayer_Virtual_Guest" and not user.sees_guests:
        raise not_found(call.identifier)


def needed(call: Call) -> set[str]:
    """The permissions of a call; to see what it is about is asked for elsewhere."""
    if call.is_read:
        return set()
    if not call.is_order:
        service, _, _ = call.name.partition("::")
        return {each for each in (OF_SERVICES.get(service), OF_METHODS.get(call.name)) if each}
    if call.name == "Product_Order::placeOrder":
        kind = str((call.argument(0) or {}).get("complexType"))
        return {ADD, INSTANCES} if kind.endswith("Virtual_Guest") else {ADD}
    return {ADD, INSTANCES, PUBLIC_PORT}


def seen_by(account: Account, user: User) -> Account:
    """The account without what the user is not shown, for reading."""
    hidden = set() if user.sees_guests else {"guests"}
    hidden |= set() if user.sees_bills else {"billing_items"}
    if not hidden:
        return account
    return account.with_tables(account.store.tables | {kind: Table() for kind in hidden})
