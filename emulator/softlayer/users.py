"""Users: what each may do, and which part of the account each sees."""

from __future__ import annotations

from dataclasses import dataclass

from emulator.softlayer.account import Account
from emulator.softlayer.calls import Call, Credentials
from emulator.softlayer.faults import not_found, public
from emulator.softlayer.settings import Settings
from emulator.table import Table

ALL_GUESTS, VIEW, ADD, CANCEL = "ACCESS_ALL_GUEST", "VIRTUAL_GUEST_VIEW", "SERVER_ADD", "SERVER_CANCEL"
BILLING = "ACCOUNT_SUMMARY_VIEW"
PERMISSIONS = frozenset({ALL_GUESTS, VIEW, ADD, CANCEL, BILLING})
CANCELLING = {"deleteObject", "cancelItem", "cancelService", "cancelServiceOnAnniversaryDate"}
CANCELLED = {"SoftLayer_Virtual_Guest", "SoftLayer_Billing_Item"}


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
    needed = ADD if call.is_order else CANCEL if call.method in CANCELLING and call.service in CANCELLED else None
    if needed and needed not in user.permissions:
        raise public("Access Denied. ")
    if call.identifier is not None and call.service == "SoftLayer_Virtual_Guest" and not user.sees_guests:
        raise not_found(call.identifier)


def seen_by(account: Account, user: User) -> Account:
    """The account without what the user is not shown, for reading."""
    hidden = set() if user.sees_guests else {"guests"}
    hidden |= set() if user.sees_bills else {"billing_items"}
    if not hidden:
        return account
    return account.with_tables(account.store.tables | {kind: Table() for kind in hidden})
