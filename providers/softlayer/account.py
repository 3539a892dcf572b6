"""An account, read: who it is, what carries a mark, what is billed. Works without Pulumi and its state."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from providers.rental import owner_mark
from providers.rental.errors import ProviderError
from providers.rental.operation import Identity
from providers.rental.receipt import Charge
from providers.softlayer import billing, credentials, others
from providers.softlayer.billing import charge
from providers.softlayer.cached_lists import GUEST_MASK, bill_list, guest_list, key_by_id, order_list
from providers.softlayer.calls import READ_ATTEMPTS, Api
from providers.softlayer.errors import NOT_TRUSTED, ApiError

LOCAL_ATTEMPTS = 3
NOBODY_LISTENS = "Connection refused"
USER_MASK = "mask[id,username,isMasterUserFlag,hasFullVirtualGuestAccessFlag,permissions[keyName]]"


class AccountError(ProviderError):
    """The account cannot be read: no key, a wrong one, or nobody answers."""


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
        """List what was and is billed under this stack and mark, oldest first, as it is at this moment.

        The lists of the account lag behind orders and cancellations, so that whatever may be open is asked for by its id.

        Args:
            known_guests: ids that the journal or a state knows; the lists may not show them yet.
        """
        guests = self._guests_now(owner, known_guests)
        rows = {str(row["id"]): row for row in billing.listed(self.api, owner)}
        billed = [each for each in guests if each.get("billingItem")] + others.billed(self.api, owner)
        running = {str(each["billingItem"]["id"]): each for each in billed}
        doubtful = {item for item, row in rows.items() if not row.get("cancellationDate")} | set(running)
        rows |= billing.by_id(self.api, doubtful)
        found = [charge(row, still_billed=item in running, of=running.get(item)) for item, row in rows.items()]
        return tuple(sorted(found, key=lambda each: (each.opened, each.host)))

    def charges_listed(self, owner: owner_mark.Owner) -> tuple[Charge, ...]:
        """List the same from the lists alone: four calls, and up to two minutes behind."""
        running = {str((guest.get("billingItem") or {}).get("id")) for guest in self.guest_list.under(owner)}
        rows = billing.listed(self.api, owner)
        beside = {str(each["billingItem"]["id"]): each for each in others.billed(self.api, owner)}
        charges_of_guests = [
            charge(row, still_billed=str(row["id"]) in running) for row in rows if str(row["id"]) not in beside
        ]
        return (*charges_of_guests, *(charge(row["billingItem"], still_billed=True, of=row) for row in beside.values()))

    def _guests_now(self, owner: owner_mark.Owner, known: Iterable[str]) -> list[dict[str, Any]]:
        """Ask for each guest that may be billed by its id, and believe only what is this stack's."""
        listed = {str(each["id"]) for each in self.guest_list.under(owner) if each.get("billingItem")}
        with ThreadPoolExecutor(billing.WORKERS) as pool:
            found = pool.map(self._guest_now, sorted({*listed, *known}))
            return [guest for guest in found if guest and owner_mark.guest_is(guest, owner)]

    def _guest_now(self, guest_id: str) -> dict[str, Any] | None:
        try:
            return self.api.find("Virtual_Guest", guest_id, GUEST_MASK)
        except ApiError as error:
            if error.is_unready:
                return None  # Too fresh to be shown; whoever ordered it has it in the journal.
            raise

    def _ask_identity(self) -> Identity:
        key = self.api.credentials
        try:
            found = self._read_identity(LOCAL_ATTEMPTS if key.is_local else READ_ATTEMPTS)
        except ApiError as error:
            raise AccountError(_unreadable("opening the account", error, key)) from error
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


def read_charges(account: Account, owner: owner_mark.Owner, known_guests: Iterable[str] = ()) -> tuple[Charge, ...]:
    """List what was and is billed under this stack and mark, as ``Account.charges`` does.

    Raises:
        AccountError: with a sentence for the person.
    """
    with reading(account, "the bill"):
        return account.charges(owner, known_guests)


@contextmanager
def reading(account: Account, what: str) -> Iterator[None]:
    """Turn a fault of the API while ``what`` is read into an AccountError with a sentence for the person."""
    try:
        yield
    except ApiError as error:
        raise AccountError(_unreadable(f"reading {what}", error, account.api.credentials)) from error


def _unreadable(doing: str, error: ApiError, key: credentials.Credentials) -> str:
    asked = f"{doing} at {key.endpoint} as {key.username}"
    if error.is_unauthorised:
        return f"{asked}: the API refuses this key ({error.code}: {error.text}). Check the key file or SL_API_KEY."
    if error.code == NOT_TRUSTED:
        return (
            f"{asked}: its certificate is not signed by an authority that is trusted here, so that the key was not sent. "
            "Name the authority's file as 'verify' in the file of the key, or correct endpoint_url."
        )
    if error.code == "no answer":
        hint = " If this is the local account, start it with 'python -m emulator start'." if key.is_local else ""
        return f"{asked}: nobody answers.{hint or ' Check the network and run the command again.'}"
    return f"{asked}: {error.text} ({error.code}). Run the command again."
