"""Users: what each may do, and which part of the account each sees."""

import hmac
from dataclasses import dataclass

from emulator.shared.store import Table
from emulator.softlayer.account import USER_ID, Account
from emulator.softlayer.calls import Call, Credentials
from emulator.softlayer.faults import not_found, public, unauthorized

ALL_GUESTS, VIEW, BILLING = "ACCESS_ALL_GUEST", "VIRTUAL_GUEST_VIEW", "ACCOUNT_SUMMARY_VIEW"
NEEDED = {
    "Virtual_Guest::createObject": {"SERVER_ADD", "INSTANCE_UPGRADE", "PUBLIC_NETWORK_COMPUTE"},
    "Product_Order::placeOrder": {"SERVER_ADD", "INSTANCE_UPGRADE"},
    "Virtual_Guest::deleteObject": {"SERVER_CANCEL"},
    "Billing_Item::cancelItem": {"SERVER_CANCEL"},
    "Billing_Item::cancelService": {"SERVER_CANCEL"},
    "Virtual_Guest::editObject": {"HOSTNAME_EDIT"},
    "Virtual_Guest::setPublicNetworkInterfaceSpeed": {"PORT_CONTROL"},
    "Virtual_Guest::setPrivateNetworkInterfaceSpeed": {"PORT_CONTROL"},
    "Virtual_Guest::rebootDefault": {"REMOTE_MANAGEMENT"},
    "User_Customer": {"USER_MANAGE"},
    "Security_Ssh_Key": {"CUSTOMER_SSH_KEY_MANAGEMENT"},
    "Network_SecurityGroup": {"MANAGE_SECURITY_GROUPS"},
}
"""Permissions that a method needs, or every change of a service.

Source of these and of all below: the descriptions in the vendor's list of permissions, as the official client has it
(softlayer-python, SoftLayer/fixtures/SoftLayer_User_Permission_Department.py).
"""
GRANTED = "granted_to_"
PERMISSIONS = frozenset({ALL_GUESTS, VIEW, BILLING}.union(*NEEDED.values()))


@dataclass(frozen=True)
class User:
    """A user of the account with the key names of what is permitted."""

    id: int
    name: str
    permissions: frozenset[str]

    @property
    def sees_guests(self) -> bool:
        """Whether guests are shown, new ones too; that needs two permissions."""
        return {ALL_GUESTS, VIEW} <= self.permissions


def every(account: Account) -> dict[str, User]:
    """The users by name; all but the restricted one may do everything."""
    settings, facts = account.settings, account.store.facts
    permitted = {settings.username: PERMISSIONS}
    if settings.restricted_user:
        permitted[settings.restricted_user] = frozenset(settings.restricted_permissions)
    return {
        name: User(number, name, permitted[name].union(facts.get(f"{GRANTED}{number}", "").split()))
        for number, name in enumerate(permitted, USER_ID)
    }


def of(account: Account, credentials: Credentials) -> User:
    """The user whose credentials these are."""
    user = every(account).get(credentials.username)
    if user is None or not hmac.compare_digest(credentials.api_key.encode(), account.settings.api_key.encode()):
        raise unauthorized()
    return user


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
    shown = {"guests": user.sees_guests, "billing_items": BILLING in user.permissions}
    hidden = {kind: Table() for kind, is_shown in shown.items() if not is_shown}
    return account.with_tables(account.store.tables | hidden) if hidden else account
