"""An account: who it is, what the key's user may do and see, and its lists by stack and mark, shared by all who wait."""

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from providers.rental import owner_mark
from providers.rental.errors import AccountError, ProviderError
from providers.rental.operation import Identity
from providers.rental.wire import READ_ATTEMPTS, SharedList
from providers.softlayer import credentials
from providers.softlayer.api import Api
from providers.softlayer.errors import ApiError, unreadable

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
    "billingItem[id,cancellationDate,hourlyFlag,hourlyRecurringFee,recurringFee,"
    "children[id,hourlyRecurringFee,recurringFee],"
    "activeAssociatedGuestDiskBillingItems[id,hourlyRecurringFee,recurringFee],"
    "orderItem[id,order[id,status],preset[keyName]]]]"
)
ORDER_MASK = "mask[id,status,createDate,items[hostName,domainName]]"
BILL_MASK = "mask[id,domainName,hostName,cancellationDate,orderItem[order[id]]]"
# Where the domain stands that carries stack and mark, for the filters of these lists.
GUEST_DOMAIN = ("virtualGuests", "domain")
ORDER_DOMAIN = ("orders", "items", "domainName")
BILL_DOMAIN = ("allTopLevelBillingItems", "domainName")
ALL_DEVICES = "ACCESS_ALL_GUEST"
VIEW = "VIRTUAL_GUEST_VIEW"
BILLS = "ACCOUNT_SUMMARY_VIEW"
RIGHTS = {
    "SERVER_ADD": "Add Server",
    "INSTANCE_UPGRADE": "Add/Upgrade Cloud Instances",
    "PUBLIC_NETWORK_COMPUTE": "Add Compute with Public Network Port",
    "SERVER_CANCEL": "Cancel Server",
    "CUSTOMER_SSH_KEY_MANAGEMENT": "Manage SSH Keys",
    "MANAGE_SECURITY_GROUPS": "Manage Security Groups",
    "PORT_CONTROL": "Manage Port Control",
    "HOSTNAME_EDIT": "Edit Hostname/Domain",
    "REMOTE_MANAGEMENT": "IPMI Remote Management",
    VIEW: "View Virtual Server Details",
    BILLS: "View Account Summary",
    ALL_DEVICES: "access to all virtual servers, also to new ones",
}
"""What an `up` and its `down` need: orders, larger disks, cancellations, keys, groups, port speeds, notes and restarts.

The key names, and what the vendor's console calls them (sldn.softlayer.com, "Permission Enforcement in the SoftLayer API").
Tags need VIEW and ALL_DEVICES (cloud.ibm.com/docs/account?topic=account-access); docs/never-run.md says what is not certain.
"""
SEEING = (VIEW, BILLS, ALL_DEVICES)
PORTAL = "Manage > Access (IAM) > Users > the user > Classic infrastructure"

Row = dict[str, Any]


class Account:
    """One account through one key."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.secrets = (api.credentials.api_key,)
        self.guest_list = _list_of_stack(api, "getVirtualGuests", GUEST_MASK, GUEST_DOMAIN, owner_mark.guest_is)
        self.order_list = _list_of_stack(api, "getOrders", ORDER_MASK, ORDER_DOMAIN, _is_order_of)
        self.bill_list = _list_of_stack(api, "getAllTopLevelBillingItems", BILL_MASK, BILL_DOMAIN, _is_under)
        self.key = key_by_id(api)
        self._identity: Identity | None = None
        self._users = SharedList(lambda _: [api.read("Account", "getCurrentUser", mask=USER_MASK, expect=dict)])
        self._lock = threading.Lock()

    def identity(self) -> Identity:
        """Ask once who we are; the first proof that the key is valid."""
        with self._lock:
            if self._identity is None:
                self._identity = self._ask_identity()
            return self._identity

    def user(self) -> dict[str, Any]:
        """Ask what the key's user may do and see now: a right may be taken away while a command runs."""
        return self._users.under("the key's user")[0]

    def guest(self, guest_id: str, owner: owner_mark.Owner, max_age_s: float = 0.0) -> dict[str, Any] | None:
        """Read one guest by its id, or above 0 from the list that all waiters share, if that shows it."""
        for guest in self.guest_list.under(owner, max_age_s) if max_age_s else ():
            if str(guest["id"]) == guest_id:
                return guest
        return self.api.find("Virtual_Guest", guest_id, GUEST_MASK)

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


def check_to_order(account: Account) -> None:
    """Refuse to order with a user who could not see, set up or cancel what was ordered.

    Raises:
        ProviderError: the text names what is missing, and where it is granted.
    """
    missing = lacking(account.user(), RIGHTS)
    if missing:
        raise ProviderError(
            f"checking the rights of {_user(account)}: it lacks {_named(missing)}. Nothing was ordered. {_grant(account, missing)}"
        )


def check_to_see(account: Account, guest_id: str) -> None:
    """Refuse to take a guest for gone because a user who does not see all guests does not see it.

    Raises:
        ProviderError: the text names what is missing, and where it is granted.
    """
    missing = lacking(account.user(), SEEING)
    if missing:
        raise ProviderError(
            f"looking for guest {guest_id}: the account shows neither it nor a charge for it, but {_user(account)} lacks "
            f"{_named(missing)}, so it may run and be billed. Nothing is ordered instead of it. {_grant(account, missing)}"
        )


def check_to_prove(account: Account) -> None:
    """Refuse to call an account clean for a user who does not see all of it.

    Raises:
        ProviderError: the text names what is missing, and where it is granted.
    """
    hidden = unseen(account)
    if hidden:
        raise ProviderError(f"proving that nothing is billed any more: {hidden}")


def unseen(account: Account) -> str | None:
    """Say why machines may be billed that this user does not see; None if it sees all."""
    missing = lacking(account.user(), SEEING)
    if not missing:
        return None
    return f"{_user(account)} lacks {_named(missing)}, so machines that it does not see may be billed. {_grant(account, missing)}"


def lacking(user: Mapping[str, Any], needed: Iterable[str]) -> list[str]:
    """Return the rights that a user lacks; the master user has all."""
    if user.get("isMasterUserFlag"):
        return []
    has = {str(each.get("keyName")) for each in user.get("permissions") or []}
    has |= {ALL_DEVICES} if user.get("hasFullVirtualGuestAccessFlag") else set()
    return [each for each in needed if each not in has]


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


def key_by_id(api: Api) -> SharedList:
    """One ssh key by its id, or none."""

    def fetch(key_id: str) -> list[Row]:
        found = api.find("Security_Ssh_Key", key_id, "mask[id,notes]")
        return [found] if found else []

    return SharedList(fetch)


def _named(missing: Iterable[str]) -> str:
    return ", ".join(f"'{RIGHTS[each]}' ({each})" for each in missing)


def _grant(account: Account, missing: Iterable[str]) -> str:
    wanted = " ".join(f"-p {each}" for each in missing)
    return (
        f"Have it granted ({PORTAL}, or 'slcli user edit-permissions {account.api.credentials.username} --enable {wanted}') "
        "and run the command again."
    )


def _user(account: Account) -> str:
    return f"user {account.api.credentials.username} at {account.api.credentials.endpoint}"


def _list_of_stack(
    api: Api, method: str, mask: str, domain: Sequence[str], is_ours: Callable[[Row, owner_mark.Owner], bool]
) -> SharedList:
    """List what carries stack and mark in its domain, closed billing items included.

    Args:
        is_ours: looks again, as the service ignores a filter that it does not know, and lists everybody's.
    """

    def fetch(owner: owner_mark.Owner) -> list[Row]:
        rooted: Any = {"operation": f"$= {owner}.{owner_mark.ZONE}"}
        for key in reversed(domain):
            rooted = {key: rooted}
        found = api.read_all("Account", method, mask=mask, filter=rooted)
        return [each for each in found if is_ours(each, owner)]

    return SharedList(fetch)


def _is_order_of(order: Row, owner: owner_mark.Owner) -> bool:
    return any(_is_under(item, owner) for item in order.get("items") or [])


def _is_under(item: Row, owner: owner_mark.Owner) -> bool:
    return owner_mark.owner_in_domain(item.get("domainName")) == owner
