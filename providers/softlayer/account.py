"""An account: who it is, and its lists by stack and mark, shared by all who wait."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from providers.rental import owner_mark
from providers.rental.http_once import SharedList
from providers.rental.operation import Identity
from providers.rental.receipt import Charge
from providers.softlayer import billing, credentials
from providers.softlayer.calls import READ_ATTEMPTS, Api
from providers.softlayer.errors import AccountError, ApiError, unreadable

LOCAL_ATTEMPTS = 3
NOBODY_LISTENS = "Connection refused"
USER_MASK = "mask[id,username,isMasterUserFlag,hasFullVirtualGuestAccessFlag,permissions[keyName]]"
# primaryRouter tells on which side of the private network a guest already stands.
GUEST_MASK = (
    "mask[id,hostname,domain,notes,createDate,provisionDate,hourlyBillingFlag,primaryIpAddress,primaryBackendIpAddress,"
    "datacenter[name],tagReferences[tag[name]],"
    "activeTransaction[id,elapsedSeconds,transactionGroup[name],transactionStatus[name,friendlyName,averageDuration]],"
    "primaryNetworkComponent[id,maxSpeed,securityGroupBindings[securityGroup[id]]],"
    "primaryBackendNetworkComponent[id,maxSpeed,networkVlan[id,primaryRouter[id]],securityGroupBindings[securityGroup[id]]],"
    "blockDevices[device,diskImage[capacity]],blockDeviceTemplateGroup[id,globalIdentifier],"
    "billingItem[id,cancellationDate,hourlyFlag,hourlyRecurringFee,recurringFee,children[hourlyRecurringFee,recurringFee],"
    "orderItem[id,order[id,status],preset[keyName]]]]"
)
ORDER_MASK = "mask[id,status,createDate,items[hostName,domainName]]"
BILL_MASK = "mask[id,domainName,hostName,cancellationDate,orderItem[order[id]]]"

Row = dict[str, Any]


class Account:
    """One account through one key."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.secrets = (api.credentials.api_key,)
        self.guest_list, self.order_list, self.bill_list = guest_list(api), order_list(api), bill_list(api)
        self.key = key_by_id(api)
        self._identity: Identity | None = None
        self._user: dict[str, Any] | None = None
        self._lock = threading.Lock()

    def identity(self) -> Identity:
        """Ask once who we are; the first proof that the key is valid."""
        with self._lock:
            if self._identity is None:
                self._identity = self._ask_identity()
            return self._identity

    def user(self) -> dict[str, Any]:
        """Ask once what the key's user may do and see."""
        with self._lock:
            if self._user is None:
                self._user = self.api.read("Account", "getCurrentUser", mask=USER_MASK, expect=dict)
            return self._user

    def guest(self, guest_id: str, owner: owner_mark.Owner, max_age_s: float = 0.0) -> dict[str, Any] | None:
        """Read one guest by its id, or above 0 from the list that all waiters share, if that shows it."""
        for guest in self.guest_list.under(owner, max_age_s) if max_age_s else ():
            if str(guest["id"]) == guest_id:
                return guest
        return self.api.find("Virtual_Guest", guest_id, GUEST_MASK)

    def charges(self, owner: owner_mark.Owner, known_guests: Iterable[str] = ()) -> tuple[Charge, ...]:
        """List what was and is billed, as it is at this moment; see ``billing.charges``."""
        return billing.charges(self, owner, known_guests)

    def charges_listed(self, owner: owner_mark.Owner) -> tuple[Charge, ...]:
        """List the same from the lists alone: four calls, and up to two minutes behind."""
        return billing.charges_listed(self, owner)

    def _ask_identity(self) -> Identity:
        key = self.api.credentials
        try:
            found = self._read_identity(LOCAL_ATTEMPTS if key.is_local else READ_ATTEMPTS)
        except ApiError as error:
            raise AccountError(unreadable("opening the account", error, key)) from error
        return Identity(str(found["id"]), str(found.get("companyName") or ""), key.username, key.endpoint)

    def _read_identity(self, attempts: int) -> dict[str, Any]:
        try:
            return self.api.read("Account", "getObject", mask="mask[id,companyName]", attempts=attempts)
        except ApiError as error:
            # Where nobody listens on this computer nobody will, and a person waits for the sentence; else it is worth more.
            if attempts == READ_ATTEMPTS or not error.is_transient or NOBODY_LISTENS in error.text:
                raise
            return self._read_identity(READ_ATTEMPTS)


def open_account(config_file: str | None = None, exported: Mapping[str, str] = os.environ) -> Account:
    """Open the account that the key belongs to, and prove that it answers.

    Args:
        exported: where SL_USERNAME and SL_API_KEY are looked for when no file is named.

    Raises:
        AccountError: with a sentence for the person.
    """
    try:
        account = Account(Api(credentials.load(config_file, exported), threading.Event()))
    except credentials.CredentialsError as error:
        raise AccountError(str(error)) from error
    account.identity()
    return account


def claim_notes(owner: owner_mark.Owner, journal: str) -> str:
    """Write the notes of the stack's key: whose it is, and which journal orders with it."""
    return f"{owner_mark.notes(str(owner))} ordered from journal {journal}"


def stack_key(account: Account, owner: owner_mark.Owner, key_ids: Sequence[str], max_age_s: float = 0.0) -> Row | None:
    """Find the stack's key; the oldest of several, so that all computers look at the same."""
    found = _ours(account, owner, key_ids, max_age_s)
    if not found:
        listed = account.api.read_all("Account", "getSshKeys", mask="mask[id,notes]")
        ids = [str(each["id"]) for each in listed if owner_mark.notes_are(each.get("notes"), owner)]
        found = _ours(account, owner, ids, max_age_s)
    return min(found, key=lambda each: int(each["id"]), default=None)


def _ours(account: Account, owner: owner_mark.Owner, key_ids: Sequence[str], max_age_s: float) -> list[Row]:
    """Read keys by their ids, as a list may show their notes late."""
    rows = [row for each in key_ids for row in account.key.under(each, max_age_s)]
    return [row for row in rows if owner_mark.notes_are(row.get("notes"), owner)]


def guest_list(api: Api) -> SharedList:
    """The guests whose domain carries stack and mark."""

    def fetch(owner: owner_mark.Owner) -> list[Row]:
        rooted = {"virtualGuests": {"domain": _ending(owner)}}
        found = api.read_all("Account", "getVirtualGuests", mask=GUEST_MASK, filter=rooted)
        return [guest for guest in found if owner_mark.guest_is(guest, owner)]

    return SharedList(fetch)


def order_list(api: Api) -> SharedList:
    """The orders with an item whose domain carries stack and mark."""

    def fetch(owner: owner_mark.Owner) -> list[Row]:
        rooted = {"orders": {"items": {"domainName": _ending(owner)}}}
        found = api.read_all("Account", "getOrders", mask=ORDER_MASK, filter=rooted)
        return [order for order in found if any(_is_under(item, owner) for item in order.get("items") or [])]

    return SharedList(fetch)


def bill_list(api: Api) -> SharedList:
    """The top-level billing items of guests whose domain carries stack and mark, closed ones included."""

    def fetch(owner: owner_mark.Owner) -> list[Row]:
        rooted = {"allTopLevelBillingItems": {"domainName": _ending(owner)}}
        found = api.read_all("Account", "getAllTopLevelBillingItems", mask=BILL_MASK, filter=rooted)
        return [item for item in found if _is_under(item, owner)]

    return SharedList(fetch)


def key_by_id(api: Api) -> SharedList:
    """One ssh key by its id, or none."""

    def fetch(key_id: str) -> list[Row]:
        found = api.find("Security_Ssh_Key", key_id, "mask[id,notes]")
        return [found] if found else []

    return SharedList(fetch)


def _ending(owner: owner_mark.Owner) -> dict[str, str]:
    return {"operation": f"$= {owner}.{owner_mark.ZONE}"}


def _is_under(item: Row, owner: owner_mark.Owner) -> bool:
    return owner_mark.owner_in_domain(item.get("domainName")) == owner
