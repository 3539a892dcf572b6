"""An account, read: who it is, what carries a mark, what is billed. Works without Pulumi and its state."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from providers.softlayer import credentials, mark
from providers.softlayer.calls import READ_ATTEMPTS, Api
from providers.softlayer.errors import ApiError, ProviderError
from providers.softlayer.goods import is_billed
from providers.softlayer.listing import GUEST_MASK, bill_list, guest_list, order_list
from providers.softlayer.money import per_hour, per_month, whole
from providers.softlayer.vlans import VLANS
from providers.softlayer.volumes import VOLUMES

LOCAL_ATTEMPTS = 3
CHARGE_MASK = (
    "mask[id,description,hostName,domainName,categoryCode,hourlyFlag,createDate,cancellationDate,"
    "hourlyRecurringFee,recurringFee,currentHourlyCharge,hoursUsed,orderItem[preset[keyName]],"
    "children[id,cancellationDate,hourlyRecurringFee,recurringFee,currentHourlyCharge]]"
)


class AccountError(ProviderError):
    """The account cannot be read: no key, a wrong one, or nobody answers."""


@dataclass(frozen=True)
class Identity:
    """Whose account it is, and who we are in it."""

    account_id: str
    name: str
    username: str
    endpoint: str


@dataclass(frozen=True)
class GuestSummary:
    """A guest of the account, in one line."""

    guest_id: str
    hostname: str
    domain: str
    public_ip: str | None
    private_ip: str | None
    is_billed: bool
    is_ready: bool


@dataclass(frozen=True)
class Charge:
    """One top-level billing item with all that is billed under it."""

    id: str
    description: str
    host: str
    category: str
    opened: datetime
    closed: datetime | None
    ends: datetime | None
    """When a cancellation in the future takes effect; until then it is billed."""
    hourly: bool
    per_hour: Decimal
    per_month: Decimal
    """What an item costs that is not billed by the hour."""
    so_far: Decimal
    currency: str

    @property
    def is_open(self) -> bool:
        """Tell whether it still costs money."""
        return self.closed is None


@dataclass(frozen=True)
class Receipt:
    """What was rented, and what is left of it."""

    rows: tuple[Charge, ...]
    total: Decimal
    open_count: int


class Account:
    """One account through one key."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.guest_list, self.order_list, self.bill_list = guest_list(api), order_list(api), bill_list(api)
        self._identity: Identity | None = None
        self._lock = threading.Lock()

    def identity(self) -> Identity:
        """Ask once who we are; the first proof that the key is valid."""
        with self._lock:
            if self._identity is None:
                self._identity = self._ask_identity()
            return self._identity

    def guests(self, owner_mark: str) -> tuple[GuestSummary, ...]:
        """List the guests that carry this mark, those being reclaimed included."""
        return tuple(_summary(guest) for guest in self.guest_list.under(owner_mark))

    def guest(self, guest_id: str, owner_mark: str, max_age_s: float = 0.0) -> dict[str, Any] | None:
        """Read one guest, from the list that all waiters share; what no list shows is asked for by its id."""
        for guest in self.guest_list.under(owner_mark, max_age_s):
            if str(guest["id"]) == guest_id:
                return guest
        return self.api.find("Virtual_Guest", guest_id, GUEST_MASK)

    def charges(self, owner_mark: str) -> tuple[Charge, ...]:
        """List what was and is billed under this mark, oldest first."""
        ending = {"allTopLevelBillingItems": {"domainName": {"operation": f"$= -{owner_mark}.{mark.ZONE}"}}}
        rows = self.api.read_all("Account", "getAllTopLevelBillingItems", mask=CHARGE_MASK, filter=ending)
        ours = [row for row in rows if mark.domain_is(row.get("domainName"), owner_mark)]
        running = {str(item["id"]): (guest, item) for guest, item in self._billed_guests(owner_mark)}
        charges = [_charge(row, still_billed=str(row["id"]) in running) for row in ours]
        listed = {charge.id for charge in charges}
        charges += [_unlisted(guest, item) for id, (guest, item) in running.items() if id not in listed]
        charges += [
            _of_goods(row) for kind in (VOLUMES, VLANS) for row in kind.marked(self.api, owner_mark) if is_billed(row)
        ]
        return tuple(sorted(charges, key=lambda charge: (charge.opened, charge.host)))

    def _billed_guests(self, owner_mark: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        guests = self.guest_list.under(owner_mark)
        return [(guest, guest["billingItem"]) for guest in guests if guest.get("billingItem")]

    def _ask_identity(self) -> Identity:
        key = self.api.credentials
        try:
            # On this machine there is no weather: where nobody listens nobody will, and a person waits for the sentence.
            attempts = LOCAL_ATTEMPTS if key.is_local else READ_ATTEMPTS
            found = self.api.read("Account", "getObject", mask="mask[id,companyName]", attempts=attempts)
        except ApiError as error:
            raise AccountError(_unreadable("opening the account", error, key)) from error
        return Identity(str(found["id"]), str(found.get("companyName") or ""), key.username, key.endpoint)


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


def read_charges(account: Account, owner_mark: str) -> tuple[Charge, ...]:
    """List what was and is billed under this mark.

    Raises:
        AccountError: with a sentence for the person.
    """
    with reading(account, "the bill"):
        return account.charges(owner_mark)


@contextmanager
def reading(account: Account, what: str) -> Iterator[None]:
    """Turn a fault of the API while ``what`` is read into an AccountError with a sentence for the person."""
    try:
        yield
    except ApiError as error:
        raise AccountError(_unreadable(f"reading {what}", error, account.api.credentials)) from error


def receipt(charges: Iterable[Charge]) -> Receipt:
    """Add the charges up."""
    rows = tuple(charges)
    return Receipt(rows, sum((row.so_far for row in rows), Decimal(0)), sum(row.is_open for row in rows))


def _charge(row: dict[str, Any], *, still_billed: bool) -> Charge:
    cancelled = dated(row.get("cancellationDate"))
    # The account's clock need not be ours: a guest that still has its billing item says that its end lies ahead, and an
    # hourly item ends at once. Only monthly items are compared with our clock.
    ahead = still_billed or (cancelled is not None and not row.get("hourlyFlag") and cancelled > datetime.now(UTC))
    return Charge(
        id=str(row["id"]),
        description=_described(row),
        host=str(row.get("hostName") or ""),
        category=str(row.get("categoryCode") or ""),
        opened=dated(row.get("createDate")) or datetime.now(UTC),
        closed=None if ahead else cancelled,
        ends=cancelled if ahead else None,
        hourly=bool(row.get("hourlyFlag")),
        per_hour=per_hour(row),
        per_month=per_month(row),
        so_far=whole(row, "currentHourlyCharge"),
        currency="USD",
    )


def _unlisted(guest: dict[str, Any], item: dict[str, Any]) -> Charge:
    """Write the charge of a guest that is billed while the list of billing items, which lags, does not show it yet."""
    flavored = _charge({**item, "hourlyFlag": True, "description": "a guest"}, still_billed=True)
    opened = dated(guest.get("createDate")) or flavored.opened
    return replace(flavored, host=str(guest.get("hostname") or ""), category="guest_core", opened=opened)


def _of_goods(row: dict[str, Any]) -> Charge:
    """Write the charge of a volume or VLAN; its billing item bears no mark, so that the thing itself leads to it."""
    return replace(
        _charge(row["billingItem"], still_billed=True), host=str(row.get("username") or row.get("name") or "")
    )


def _described(row: dict[str, Any]) -> str:
    """Say what it is: a guest's item bears the name of its cores, which tells nobody that it stands for the GPUs as well."""
    flavor = ((row.get("orderItem") or {}).get("preset") or {}).get("keyName")
    return f"{flavor}, disks and port" if flavor else str(row.get("description") or "")


def dated(text: Any) -> datetime | None:
    """Read a date of the API."""
    return datetime.fromisoformat(str(text)) if text else None


def _summary(guest: dict[str, Any]) -> GuestSummary:
    return GuestSummary(
        guest_id=str(guest["id"]),
        hostname=guest["hostname"],
        domain=guest["domain"],
        public_ip=guest.get("primaryIpAddress") or None,
        private_ip=guest.get("primaryBackendIpAddress") or None,
        is_billed=bool(guest.get("billingItem")),
        is_ready=bool(guest.get("provisionDate")) and not guest.get("activeTransaction"),
    )


def _unreadable(doing: str, error: ApiError, key: credentials.Credentials) -> str:
    asked = f"{doing} at {key.endpoint} as {key.username}"
    if error.is_unauthorised:
        return f"{asked}: the API refuses this key ({error.code}: {error.text}). Check the key file or SL_API_KEY."
    if error.code == "no answer":
        hint = " If this is the local account, start it with 'python -m emulator start'." if key.is_local else ""
        return f"{asked}: nobody answers.{hint or ' Check the network and run the command again.'}"
    return f"{asked}: {error.text} ({error.code}). Run the command again."
