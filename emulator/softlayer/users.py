"""Users: what each may do, and which part of the account each sees."""

from dataclasses import dataclass

from emulator.softlayer.account import Account
from emulator.softlayer.calls import Call, Credentials
from emulator.softlayer.faults import not_found, public, unauthorized
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
NEEDED = {
    "Virtual_Guest::createObject": {ADD, INSTANCES, PUBLIC_PORT},
    "Product_Order::placeOrder": {ADD, INSTANCES},
    "Virtual_Guest::deleteObject": {CANCEL},
    "Billing_Item::cancelItem": {CANCEL},
    "Billing_Item::cancelService": {CANCEL},
    "Virtual_Guest::editObject": {NAMES_OF_DEVICES},
    "Virtual_Guest::setPublicNetworkInterfaceSpeed": {PORTS},
    "Virtual_Guest::setPrivateNetworkInterfaceSpeed": {PORTS},
    "Virtual_Guest::rebootDefault": {POWER},
    "Security_Ssh_Key": {KEYS},
    "Network_SecurityGroup": {GROUPS},
}
"""What a method needs, or whatever changes something of a service; by the descriptions in the vendor's list of permissions, as the
official client has it (softlayer-python, SoftLayer/fixtures/SoftLayer_User_Permission_Department.py), and so for all that follows."""


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


def of(settings: Settings, credentials: Credentials) -> User:
    """The user whose credentials these are; all but the restricted one may do everything."""
    permitted = {settings.username: PERMISSIONS}
    if settings.restricted_user:
        permitted[settings.restricted_user] = frozenset(settings.restricted_permissions)
    if credentials.api_key != settings.api_key or credentials.username not in permitted:
        raise unauthorized()
    return User(credentials.username, permitted[credentials.username])


def check(user: User, call: Call) -> None:
    """Refuse what the user may not do; a guest that is not shown is "not found", as in reality."""
    if not needed(call) <= user.permissions:
        raise public("Access Denied. ")
    if call.identifier is not None and call.service == "SoftLayer_Virtual_Guest" and not user.sees_guests:
        raise not_found(call.identifier)


def needed(call: Call) -> set[str]:
    """The permissions of a call; to see what it is about is asked for elsewhere."""
    service, _, _ = call.name.partition("::")
    return set() if call.is_read else NEEDED.get(call.name) or NEEDED.get(service, set())


def seen_by(account: Account, user: User) -> Account:
    """The account without what the user is not shown, for reading."""
    hidden = set() if user.sees_guests else {"guests"}
    hidden |= set() if user.sees_bills else {"billing_items"}
    if not hidden:
        return account
    return account.with_tables(account.store.tables | {kind: Table() for kind in hidden})
